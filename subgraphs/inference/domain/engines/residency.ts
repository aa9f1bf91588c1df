import type { Principal, ResidencyPolicy } from '../../../common/identity/principal.ts'
import type { Model, Residency } from '../catalog.ts'

const PERMITTED: Readonly<Record<ResidencyPolicy, readonly Residency[]>> = {
  unrestricted: ['local', 'regional', 'cloud'],
  regional: ['local', 'regional'],
  local_only: ['local'],
}

/** Whether the policy permits the residency. A policy that this version does not know permits nothing. */
export function permits(policy: ResidencyPolicy, residency: Residency): boolean {
  return PERMITTED[policy]?.includes(residency) ?? false
}

/** Empty for a policy that this version does not know. */
export function permittedResidencies(policy: ResidencyPolicy): readonly Residency[] {
  return PERMITTED[policy] ?? []
}

/** Whether the caller's residency policy permits the model. */
export function isInResidency(model: Model, { residencyPolicy }: Principal): boolean {
  return permits(residencyPolicy, model.residency)
}

/** Whether the caller's allowlist has the model, by its id or an alias. */
export function isOnAllowlist(model: Model, { modelAllowlist }: Principal): boolean {
  return modelAllowlist === null || modelAllowlist.includes(model.id) || model.aliases.some((alias) => modelAllowlist.includes(alias))
}

/** Whether the caller's `models` lists the model and a call may use it. */
export function isOffered(model: Model, principal: Principal): boolean {
  return model.available && isOnAllowlist(model, principal) && isInResidency(model, principal)
}
