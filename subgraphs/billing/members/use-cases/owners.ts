import { KisError, NotFound } from '../../../common/errors.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Member, Organization } from '../../use-cases/tables.ts'

/** Attempts while other callers change the owners of the same organization. */
const MAX_TRIES = 10

// An organization that has had an owner always has one. The list in its document enforces this in one write. The list
// names owners only: the role of a new owner is written before they are added, and an owner is removed from the list
// before the role is.

/**
 * Adds a member whose role was written to the list if they are an owner by now, and removes them otherwise. Of several
 * concurrent changes, the last role wins: each reads the role again after it has written the list.
 */
export async function listAsOwner(deps: BillingDeps, { _id, organizationId }: Pick<Member, '_id' | 'organizationId'>): Promise<void> {
  const isOwner = async () => {
    const member = await deps.collections.members.findOne({ _id })
    return member?.role === 'owner' && member.removedAt === null
  }
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const is = await isOwner()
    await changeOwners(deps, organizationId, (owners) => {
      if (owners.includes(_id) === is) return null
      return is ? { $push: { owners: _id } } : { $pull: { owners: _id } }
    })
    if ((await isOwner()) === is) return
  }
  throw busy()
}

/**
 * Removes a member from the list before they lose the role. Idempotent.
 * @throws {KisError} `in_use`: the member is the last owner
 */
export async function dropOwner(deps: BillingDeps, organizationId: string, memberId: string): Promise<void> {
  await changeOwners(deps, organizationId, (owners) => {
    if (!owners.includes(memberId)) return null
    if (owners.length === 1)
      throw new KisError('in_use', 'The member is the last owner. Make another member an owner first.', { param: 'id' })
    return { $pull: { owners: memberId } }
  })
}

async function changeOwners(
  { collections }: BillingDeps,
  id: string,
  decide: (owners: readonly string[]) => { readonly $push: { owners: string } } | { readonly $pull: { owners: string } } | null,
): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const organization: Organization | null = await collections.organizations.findOne({ _id: id })
    if (!organization) throw new NotFound('organization', id, 'organizationId')
    const change = decide(organization.owners ?? [])
    if (!change) return
    const guard = { _id: id, ownersRevision: organization.ownersRevision ?? null }
    if (await collections.organizations.findOneAndUpdate(guard, { ...change, $inc: { ownersRevision: 1 } })) return
  }
  throw busy()
}

const busy = () => new KisError('service_unavailable', 'Too many requests change the owners at once.', { retryAfterMs: 1_000 })
