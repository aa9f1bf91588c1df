import { hasScope, requirePrincipal } from '../../common/identity/principal.ts'
import type { LinkContext } from '../../common/link/link.ts'
import { readUsage } from './count-usage.ts'
import type { Deps } from './deps.ts'

interface Quota {
  readonly used: number
  /** Null: unlimited. */
  readonly limit: number | null
}

/**
 * Returns what the caller's organization stores, in bytes and vectors, and the limits of its plan. Returns null for
 * another organization.
 */
export async function getQuota(
  { store }: Pick<Deps, 'store'>,
  { caller }: LinkContext,
  organizationId: string,
): Promise<{ readonly storageBytes: Quota; readonly vectors: Quota } | null> {
  const { plan, ...principal } = requirePrincipal(caller)
  if (organizationId !== principal.organizationId) return null
  const { storageBytes, vectors } = await readUsage(store, organizationId)
  return { storageBytes: { used: storageBytes, limit: plan.storageBytes }, vectors: { used: vectors, limit: plan.vectors } }
}

/**
 * Returns what an organization stores. Returns null for another organization than the caller's, unless the caller is an
 * operator.
 */
export async function getStored(
  { store }: Pick<Deps, 'store'>,
  { caller }: LinkContext,
  organizationId: string,
): Promise<{ readonly storageBytes: number; readonly vectors: number } | null> {
  const principal = requirePrincipal(caller)
  if (organizationId !== principal.organizationId && !hasScope(principal, 'operator')) return null
  return readUsage(store, organizationId)
}
