import { PermissionDenied } from '../../common/errors.ts'
import { hasScope, type Principal, type Scope } from '../../common/principal.ts'

/** What a key may do. */
export interface Grants {
  readonly scopes: readonly Scope[]
  /** Ids of models; null: every model. */
  readonly modelAllowlist: readonly string[] | null
}

/**
 * Nobody hands out, changes or takes over a key that may do more than their own. @throws {PermissionDenied} a scope is missing (in
 * practice `operator`), or the key may call models that the caller's may not.
 */
export function requireGrantable(principal: Principal, { scopes, modelAllowlist }: Grants): void {
  for (const scope of scopes) if (!hasScope(principal, scope)) throw new PermissionDenied(scope)
  const own = principal.modelAllowlist
  if (own && !(modelAllowlist ?? ['every model']).every((model) => own.includes(model)))
    throw new PermissionDenied('of a model allowlist that covers the key')
}
