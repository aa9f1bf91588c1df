import { byTime } from '../../../../common/documents/by-time.ts'
import type { Erasure, ErasureQueue, ErasureTask } from '../../../../common/erasure/erasing.ts'
import type { BillingDeps } from '../../../use-cases/deps.ts'
import type { ErasureRecord, Organization } from '../../../use-cases/tables.ts'
import { eraseWebhooks } from '../../../webhooks/use-cases/erase-webhooks.ts'
import { beginReceipt, MAX_COUNTED, noteFound, notePartEnded, receiptId } from './erasures.ts'

/** The subgraphs that have data of organizations. Billing erases its own last: the others ask it for keys until then. */
const OTHERS = ['knowledge', 'inference'] as const
export type OtherEraser = (typeof OTHERS)[number]
const PAGE = 100

export interface ErasedOrganization {
  readonly organizationId: string
  readonly deletedAt: Date
}

/** Lists the deleted organizations that this subgraph has not erased yet, the ones deleted first. */
export async function listOrganizationsToErase(deps: BillingDeps, eraser: OtherEraser): Promise<readonly ErasedOrganization[]> {
  const organizations = await listErasing(deps, isLeftTo(eraser))
  return organizations.map(({ _id, erasingSince }) => ({ organizationId: _id, deletedAt: erasingSince! }))
}

/** Lists what this subgraph has still to erase: deleted organizations, then what was asked for, the oldest first. */
export async function listErasuresToDo(deps: BillingDeps, eraser: OtherEraser): Promise<readonly ErasureTask[]> {
  const { erasures } = deps.collections
  const organizations = await listErasing(deps, isLeftTo(eraser))
  for (const organization of organizations) await beginReceipt(deps, organization)
  const ids = organizations.map(({ _id }) => receiptId(_id))
  const receipts = ids.length === 0 ? [] : await erasures.find({ _id: { $in: ids } }, { limit: PAGE })
  const asked = await listOpen(deps, (erasure) => {
    if (erasure.kind === 'organization' || erasure.ended[eraser]) return false
    // What was unpacked from a document is known to knowledge alone.
    return eraser === 'knowledge' || erasure.kind !== 'document' || erasure.documentIds !== undefined
  })
  return [...receipts, ...asked].map((erasure) => toTask(erasure, eraser))
}

/** Records that a subgraph has erased all of an erasure. Idempotent. False: there is no such erasure. */
export async function noteEnded(
  deps: BillingDeps,
  eraser: OtherEraser,
  { id, kept }: { readonly id: string; readonly kept: Parameters<typeof notePartEnded>[3] },
): Promise<boolean> {
  const erasure = await deps.collections.erasures.findOne({ _id: id })
  if (!erasure) return false
  if (erasure.kind === 'organization') await noteErased(deps, eraser, erasure.organizationId)
  return notePartEnded(deps, eraser, id, kept)
}

/** Records that a subgraph has erased the organization. Idempotent. False: the organization is not being deleted. */
export async function noteErased({ collections }: BillingDeps, eraser: OtherEraser, id: string): Promise<boolean> {
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
      return [...last, ...oldest].map(toOwnTask)
    },
    async noteFound() {},
    async finish({ organizationId: _id }) {
      await deps.collections.organizations.findOneAndUpdate({ _id }, { $unset: { erasingSince: '', erasedBy: '' } })
    },
  }
}

/** Billing's own part of all erasures. */
export function ownErasure(deps: BillingDeps): Erasure {
  return {
    queue: ownErasureQueue(deps),
    // `eraseAccounts` notes it.
    find: async () => ({ found: {} }),
    erase: async ({ organizationId }) => ({ isEmpty: await eraseAccounts(deps, organizationId) }),
    clock: deps.clock,
    log: deps.log,
  }
}

/**
 * Erases webhooks, sessions, members and invitations at once, and the keys once no other subgraph needs them. The
 * organization, its wallet, ledger and usage stay.
 */
export async function eraseAccounts(deps: BillingDeps, organizationId: string): Promise<boolean> {
  const { organizations, apiKeys, sessions, members, invitations } = deps.collections
  await noteOwn(deps, organizationId)
  await eraseWebhooks(deps, organizationId)
  for (const records of [sessions, members, invitations]) while ((await records.deleteMany({ organizationId })) > 0);
  const organization = await organizations.findOne({ _id: organizationId })
  if (!organization || !isErasedByOthers(organization)) return false
  while ((await apiKeys.deleteMany({ organizationId })) > 0);
  return true
}

/** Begins the receipt of a deleted organization, and notes in it what billing has. Repeatable: what was noted first stays. */
export async function noteOwn(deps: BillingDeps, organizationId: string): Promise<void> {
  const { organizations, erasures, apiKeys, sessions, members, invitations, webhookEndpoints, webhookEvents } = deps.collections
  const organization = await organizations.findOne({ _id: organizationId })
  if (!organization?.erasingSince) return
  await beginReceipt(deps, organization)
  const receipt = await erasures.findOne({ _id: receiptId(organizationId) })
  if (receipt?.found.billing) return
  const limit = { limit: MAX_COUNTED }
  const found = {
    api_keys: await apiKeys.countDocuments({ organizationId }, limit),
    sessions: await sessions.countDocuments({ organizationId }, limit),
    members: await members.countDocuments({ organizationId }, limit),
    invitations: await invitations.countDocuments({ organizationId }, limit),
    webhook_endpoints: await webhookEndpoints.countDocuments({ organizationId }, limit),
    webhook_events: await webhookEvents.countDocuments({ organizationId }, limit),
  }
  await noteFound(deps, 'billing', receiptId(organizationId), { found })
}

function isErasedByOthers({ erasedBy }: Organization): boolean {
  return OTHERS.every((eraser) => erasedBy?.includes(eraser))
}

/** At most a page of them, the ones deleted first. It looks past those that are not wanted, however many they are. */
function listErasing({ collections, clock }: BillingDeps, isWanted: (organization: Organization) => boolean): Promise<Organization[]> {
  return firstPage(byTime(collections.organizations, 'erasingSince', clock.now()), isWanted)
}

/** At most a page of the erasures under way, the oldest first. It looks past those that are not wanted. */
function listOpen({ collections, clock }: BillingDeps, isWanted: (erasure: ErasureRecord) => boolean): Promise<ErasureRecord[]> {
  return firstPage(byTime(collections.erasures, 'openSince', clock.now()), isWanted)
}

async function firstPage<T>(documents: AsyncIterable<T>, isWanted: (document: T) => boolean): Promise<T[]> {
  const wanted: T[] = []
  for await (const document of documents) {
    if (isWanted(document)) wanted.push(document)
    if (wanted.length === PAGE) break
  }
  return wanted
}

const isLeftTo =
  (eraser: OtherEraser) =>
  ({ erasedBy }: Organization) =>
    !erasedBy?.includes(eraser)

function toTask(erasure: ErasureRecord, eraser: OtherEraser): ErasureTask {
  const { _id: id, organizationId, kind, documentId, documentIds = [], apiKeyIds, requestedAt, found } = erasure
  const notes = eraser === 'knowledge' ? (erasure.notes ?? null) : null
  return { id, organizationId, kind, documentId, documentIds, apiKeyIds, requestedAt, isFound: found[eraser] !== undefined, notes }
}

function toOwnTask({ _id: organizationId, erasingSince }: Organization): ErasureTask {
  const none = { documentId: null, documentIds: [], apiKeyIds: [], notes: null }
  return { ...none, id: receiptId(organizationId), organizationId, kind: 'organization', requestedAt: erasingSince!, isFound: true }
}
