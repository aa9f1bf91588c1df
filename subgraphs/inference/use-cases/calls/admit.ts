import { KisError, ModelNotFound } from '../../../common/errors.ts'
import { type Caller, type Principal, requirePrincipal, requireScope, type Scope } from '../../../common/identity/principal.ts'
import type { Catalog, Model, ModelKind } from '../../domain/catalog.ts'
import { isInResidency, isOnAllowlist } from '../../domain/engines/residency.ts'

/** The checks of a call before money is held. */
export interface Admission<Request extends { readonly model: string }> {
  /** The scope that the call needs. Null: work that was accepted earlier continues whatever scopes the key has now. */
  readonly scope: Scope | null
  readonly kind: ModelKind
  /** Name of the argument with the model's id. */
  readonly modelParam: string
  /**
   * Reads and checks the request without its model.
   * @throws {KisError} `invalid_request` and the like: the request is invalid.
   */
  readonly check: () => Request
}

/** A call that passed the checks, with its model. */
export interface Admitted<Request> {
  readonly principal: Principal
  readonly request: Request
  readonly model: Model
}

/**
 * Checks a billable call, always in this order: scope, request, model, kind, residency. So a key without the scope
 * learns nothing about models, and no caller learns about models outside its allowlist.
 * @throws {KisError} the error of `requireScope` or `check`.
 * @throws {KisError} `model_not_found`: the model does not exist, is not on the allowlist or is of another kind.
 * @throws {KisError} `residency_policy_violation`: the policy forbids the model's location.
 */
export function admit<Request extends { readonly model: string }>(
  catalog: Catalog,
  caller: Caller | null,
  { scope, kind, modelParam, check }: Admission<Request>,
): Admitted<Request> {
  const principal = scope === null ? requirePrincipal(caller) : requireScope(caller, scope)
  const request = check()
  const model = catalog.find(request.model)
  if (!model?.available || !isOnAllowlist(model, principal)) throw new ModelNotFound(request.model, modelParam)
  if (model.kind !== kind) {
    throw new KisError('model_not_found', `The model \`${model.id}\` is of kind ${model.kind}; this operation needs one of kind ${kind}.`, {
      param: modelParam,
    })
  }
  if (!isInResidency(model, principal)) {
    const where = principal.residencyPolicy === 'local_only' ? 'local engines' : 'local and regional engines'
    throw new KisError(
      'residency_policy_violation',
      `The organization's residency policy permits ${where} only; \`${model.id}\` is ${model.residency}.`,
      {
        param: modelParam,
      },
    )
  }
  return { principal, request, model }
}
