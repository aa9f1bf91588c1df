import type { ErasedOrganization, ErasureQueue } from '../../../common/erasure/keep-erasing.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Organization } from '../../use-cases/tables.ts'
import { eraseWebhooks } from '../../webhooks/use-cases/erase-webhooks.ts'

/** The subgraphs that have data of organizations. Billing erases its own last: the others ask it for keys until then. */
const OTHERS = ['knowledge', 'inference'] as const
export type Eraser = (typeof OTHERS)[number]
const PAGE = 100

/** Lists the deleted organizations that this subgraph has not erased yet, the ones deleted first. */
export async function listOrganizationsToErase(deps: BillingDeps, eraser: Eraser): Promise<readonly ErasedOrganization[]> {
  return (await listErasing(deps, ({ erasedBy }) => !erasedBy?.includes(eraser))).map(toErased)
}

/** Records that a subgraph has erased the organization. Idempotent. False: the organization is not being deleted. */
export async function noteErased({ collections }: BillingDeps, eraser: Eraser, id: string): Promise<boolean> {
  const organization = await collections.organizations.findOne({ _id: id })
  if (!organization?.erasingSince) return false
  if (organization.erasedBy?.includes(eraser)) return true
  return (await collections.organizations.findOneAndUpdate({ _id: id }, { $push: { erasedBy: eraser } })) !== null
}

/** Billing's own queue: what only billing has still to erase, and the oldest of the others, for their webhooks. */
export function ownErasureQueue(deps: BillingDeps): ErasureQueue {
  return {
    async list() {
      const last = await listErasing(deps, isErasedByOthers)
      const oldest = await listErasing(deps, (organization) => !isErasedByOthers(organization))
      return [...last, ...oldest].map(toErased)
    },
    async finish(_id) {
      await deps.collections.organizations.findOneAndUpdate({ _id }, { $unset: { erasingSince: '', erasedBy: '' } })
    },
  }
}

/**
 * Erases webhooks, sessions, members and invitations at once, and the keys once no other subgraph needs them. The
 * organization, its wallet, ledger and usage stay.
 */
export async function eraseAccounts(deps: BillingDeps, organizationId: string): Promise<boolean> {
  const { organizations, apiKeys, sessions, members, invitations } = deps.collections
  await eraseWebhooks(deps, organizationId)
  for (const records of [sessions, members, invitations]) while ((await records.deleteMany({ organizationId })) > 0);
  const organization = await organizations.findOne({ _id: organizationId })
  if (!organization || !isErasedByOthers(organization)) return false
  while ((await apiKeys.deleteMany({ organizationId })) > 0);
  return true
}

function isErasedByOthers({ erasedBy }: Organization): boolean {
  return OTHERS.every((eraser) => erasedBy?.includes(eraser))
}

/** At most a page of them, the ones deleted first. It looks past those that are not wanted, however many they are. */
async function listErasing(
  { collections, clock }: BillingDeps,
  isWanted: (organization: Organization) => boolean,
): Promise<readonly Organization[]> {
  const filter = { erasingSince: { $lte: clock.now() } }
  for (let limit = PAGE; ; limit *= 2) {
    const found = await collections.organizations.find(filter, { sort: { erasingSince: 1 }, limit })
    const wanted = found.filter(isWanted)
    if (wanted.length >= PAGE || found.length < limit) return wanted.slice(0, PAGE)
  }
}

function toErased({ _id, erasingSince }: Organization): ErasedOrganization {
  return { organizationId: _id, deletedAt: erasingSince! }
}
