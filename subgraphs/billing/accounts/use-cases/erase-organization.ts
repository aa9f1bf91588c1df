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
  return (await listErasing(deps)).filter(({ erasedBy }) => !erasedBy?.includes(eraser)).map(toErased)
}

/** Records that a subgraph has erased the organization. Idempotent. False: the organization is not being deleted. */
export async function noteErased({ collections }: BillingDeps, eraser: Eraser, id: string): Promise<boolean> {
  const organization = await collections.organizations.findOne({ _id: id })
  if (!organization?.erasingSince) return false
  if (organization.erasedBy?.includes(eraser)) return true
  return (await collections.organizations.findOneAndUpdate({ _id: id }, { $push: { erasedBy: eraser } })) !== null
}

/** Billing's own queue: every organization that is being erased. */
export function ownErasureQueue(deps: BillingDeps): ErasureQueue {
  return {
    list: async () => (await listErasing(deps)).map(toErased),
    async finish(_id) {
      await deps.collections.organizations.findOneAndUpdate({ _id }, { $unset: { erasingSince: '', erasedBy: '' } })
    },
  }
}

/**
 * Erases webhooks at once, and the keys once no other subgraph needs them. The organization, its wallet, ledger and
 * usage stay.
 */
export async function eraseAccounts(deps: BillingDeps, organizationId: string): Promise<boolean> {
  const { organizations, apiKeys } = deps.collections
  await eraseWebhooks(deps, organizationId)
  const organization = await organizations.findOne({ _id: organizationId })
  if (!OTHERS.every((eraser) => organization?.erasedBy?.includes(eraser))) return false
  while ((await apiKeys.deleteMany({ organizationId })) > 0);
  return true
}

function listErasing({ collections, clock }: BillingDeps): Promise<readonly Organization[]> {
  return collections.organizations.find({ erasingSince: { $lte: clock.now() } }, { sort: { erasingSince: 1 }, limit: PAGE })
}

function toErased({ _id, erasingSince }: Organization): ErasedOrganization {
  return { organizationId: _id, deletedAt: erasingSince! }
}
