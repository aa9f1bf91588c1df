import type { Erasure, ErasureQueue, ErasureTask } from '../../../../common/erasure/erasing.ts'
import { byTime } from '../../../domain/by-time.ts'
import type { BillingDeps } from '../../../use-cases/deps.ts'
import type { Eraser, ErasureRecord } from '../../../use-cases/tables.ts'
import { eraseWebhooks } from '../../../webhooks/use-cases/erase-webhooks.ts'
import { createReceipt, MAX_COUNTED, noteFound, notePartEnded, receiptId } from './erasures.ts'

/** The subgraphs that have data of organizations. Billing erases its own last: the others ask it for keys until then. */
const OTHERS = ['knowledge', 'inference'] as const
export type OtherEraser = (typeof OTHERS)[number]
const PAGE = 100

/** Lists what this subgraph has still to erase: deleted organizations, then what was asked for, the oldest first. */
export async function listErasuresToDo(deps: BillingDeps, eraser: OtherEraser): Promise<readonly ErasureTask[]> {
  const organizations = await listOpen(deps, ({ kind, ended }) => kind === 'organization' && !ended[eraser])
  const requested = await listOpen(deps, ({ kind, ended, documentIds }) => {
    if (kind === 'organization' || ended[eraser]) return false
    // What was unpacked from a document is known to knowledge alone.
    return eraser === 'knowledge' || kind !== 'document' || documentIds !== undefined
  })
  return [...organizations, ...requested].map((erasure) => toTask(erasure, eraser))
}

/** Billing's own queue: what only billing has still to erase, and the oldest of the others, for their webhooks. */
export function ownErasureQueue(deps: BillingDeps): ErasureQueue {
  return {
    async list() {
      const isOwn = ({ kind, ended }: ErasureRecord) => kind === 'organization' && !ended.billing
      const last = await listOpen(deps, (erasure) => isOwn(erasure) && isErasedByOthers(erasure))
      const oldest = await listOpen(deps, (erasure) => isOwn(erasure) && !isErasedByOthers(erasure))
      return [...last, ...oldest].map((erasure) => toTask(erasure, 'billing'))
    },
    noteFound: async () => {},
    finish: async ({ id }) => void (await notePartEnded(deps, 'billing', id, [])),
  }
}

/** Billing's own part of all erasures. */
export function ownErasure(deps: BillingDeps): Erasure {
  return {
    queue: ownErasureQueue(deps),
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
  const { erasures, apiKeys, sessions, members, invitations } = deps.collections
  await noteOwn(deps, organizationId)
  await eraseWebhooks(deps, organizationId)
  for (const records of [sessions, members, invitations]) while ((await records.deleteMany({ organizationId })) > 0);
  const erasure = await erasures.findOne({ _id: receiptId(organizationId) })
  if (!erasure || !isErasedByOthers(erasure)) return false
  while ((await apiKeys.deleteMany({ organizationId })) > 0);
  return true
}

/** Begins the receipt of a deleted organization, and notes in it what billing has. Repeatable: what was noted first stays. */
export async function noteOwn(deps: BillingDeps, organizationId: string): Promise<void> {
  const { organizations, erasures, apiKeys, sessions, members, invitations, webhookEndpoints, webhookEvents } = deps.collections
  const organization = await organizations.findOne({ _id: organizationId })
  if (!organization?.erasingSince) return
  await createReceipt(deps, organization)
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

function isErasedByOthers({ ended }: ErasureRecord): boolean {
  return OTHERS.every((eraser) => ended[eraser] !== undefined)
}

/** At most a page of the erasures under way, the oldest first. It looks past those that are not wanted. */
async function listOpen({ collections, clock }: BillingDeps, isWanted: (erasure: ErasureRecord) => boolean): Promise<ErasureRecord[]> {
  const wanted: ErasureRecord[] = []
  for await (const erasure of byTime(collections.erasures, 'openSince', clock.now())) {
    if (isWanted(erasure)) wanted.push(erasure)
    if (wanted.length === PAGE) break
  }
  return wanted
}

function toTask(erasure: ErasureRecord, eraser: Eraser): ErasureTask {
  const { _id: id, organizationId, kind, documentId, documentIds = [], apiKeyIds, openSince, found } = erasure
  const notes = eraser === 'knowledge' ? (erasure.notes ?? null) : null
  // Billing notes what it has as it erases.
  const isFound = eraser === 'billing' || found[eraser] !== undefined
  return { id, organizationId, kind, documentId, documentIds, apiKeyIds, requestedAt: openSince!, isFound, notes }
}
