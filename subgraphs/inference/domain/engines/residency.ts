import type { Principal, ResidencyPolicy } from '../../../common/identity/principal.ts'
import type { Model, Residency } from '../catalog.ts'

const PERMITTED: Readonly<Record<ResidencyPolicy, readonly Residency[]>> = {
  unrestricted: ['local', 'regional', 'cloud'],
  regional: ['local', 'regional'],
  local_only: ['local'],
}

/** A policy that this version does not know permits nothing. */
export function permits(policy: ResidencyPolicy, residency: Residency): boolean {
  return PERMITTED[policy]?.includes(residency) ?? false
}

export function isInResidency(model: Model, { residencyPolicy }: Principal): boolean {
  return permits(residencyPolicy, model.residency)
}

/** A list names a model by its id or by an alias: whoever allows a name allows what it stands for. */
export function isOnAllowlist(model: Model, { modelAllowlist }: Principal): boolean {
  return modelAllowlist === null || modelAllowlist.includes(model.id) || model.aliases.some((alias) => modelAllowlist.includes(alias))
}

/** What `models` lists and a call may use. */
export function isOffered(model: Model, principal: Principal): boolean {
  return model.available && isOnAllowlist(model, principal) && isInResidency(model, principal)
}
