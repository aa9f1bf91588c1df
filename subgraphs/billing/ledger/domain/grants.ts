import { KisError, PermissionDenied } from '../../../common/errors.ts'
import { hasScope, type Principal, type Scope } from '../../../common/identity/principal.ts'

/** The permissions and limits of a key. */
export interface Grants {
  readonly scopes: readonly Scope[]
  /** Ids of models; null: every model. */
  readonly modelAllowlist: readonly string[] | null
  /** Null: the key never expires. */
  readonly expiresAt: Date | null
  /** Null or absent: only the plan's limit applies. */
  readonly requestsPerMinute?: number | null
  readonly tokensPerMinute?: number | null
}

/**
 * Prevents a caller from granting, changing or taking over a key that may do more, or lives longer, than the caller's
 * stored key `own`. An access token may do less than its key, so the scopes of the principal count, too.
 * @throws {KisError} `permission_denied`: a scope is missing (in practice `operator`), the key could call other models
 * or make more calls per minute, or it would outlive the caller's key
 */
export function requireGrantable(principal: Pick<Principal, 'scopes' | 'isRun'>, own: Grants, wanted: Grants): void {
  const stored = { ...principal, scopes: own.scopes }
  for (const scope of wanted.scopes) if (!hasScope(principal, scope) || !hasScope(stored, scope)) throw new PermissionDenied(scope)
  const { modelAllowlist } = own
  if (modelAllowlist && !(wanted.modelAllowlist ?? ['every model']).every((model) => modelAllowlist.includes(model)))
    throw new KisError('permission_denied', 'The key may only use models that your own key may use.')
  if (!isWithin(wanted.expiresAt?.getTime(), own.expiresAt?.getTime()))
    throw new KisError('permission_denied', 'The key must not expire later than your own key.')
  if (!isWithin(wanted.requestsPerMinute, own.requestsPerMinute) || !isWithin(wanted.tokensPerMinute, own.tokensPerMinute))
    throw new KisError('permission_denied', 'The rates of the key must not exceed those of your own key.')
}

/** Null and undefined: no limit. */
function isWithin(wanted: number | null | undefined, own: number | null | undefined): boolean {
  return own == null || (wanted != null && wanted <= own)
}
