import { createHash } from 'node:crypto'
import { listById } from '../../../../common/documents/lists.ts'
import type { Found, RetainedRecords } from '../../../../common/erasure/erasing.ts'
import { KisError, NotFound } from '../../../../common/errors.ts'
import { type Principal, requireScope } from '../../../../common/identity/principal.ts'
import type { Connection, PageArguments } from '../../../../common/link/connection.ts'
import { DuplicateKey } from '../../../../common/ports/document-store.ts'
import { byTime } from '../../../domain/by-time.ts'
import type { BillingDeps } from '../../../use-cases/deps.ts'
import { mayRead } from '../../../use-cases/may-read.ts'
import type { Eraser, ErasureRecord, KeptRecords, Organization } from '../../../use-cases/tables.ts'
import { MAX_API_KEYS } from '../../domain/api-key.ts'

const ERASURE_ID = /^ers_[0-9a-f]{32}$/
const DOCUMENT_ID = /^doc_[0-9a-f]{32}$/
/**
 * Running erasures of an organization. Each reads all its runs, one after the other. The limit is below a page of the
 * queue, so that the queue also contains erasures of other organizations.
 */
const MAX_OPEN = 20
/** Receipts of documents and persons that are retained for an organization: the newest. */
export const MAX_RECEIPTS = 10_000
/** Keys of one erasure. */
const MAX_KEYS = 100
/** The contract says that counts end here: counting a million records takes SQLite some 0.1 s. */
export const MAX_COUNTED = 1_000_000
/** Limits of what another part of the service records: kinds, and documents that were unpacked from one. */
const MAX_KINDS = 50
const MAX_DOCUMENTS = 10_000
const MAX_NOTES_CHARACTERS = 1_000_000
const KIND = /^[a-z_]{1,40}$/

const ACCOUNTS = 'They are the accounts: ids, models, amounts and times, and nothing that was asked or answered.'

interface EraseInput {
  readonly documentId?: string | null
  readonly memberId?: string | null
  readonly apiKeyIds?: readonly string[] | null
}

type Subject = Pick<ErasureRecord, 'kind' | 'documentId' | 'memberId' | 'apiKeyIds'>

/**
 * Starts an erasure in the caller's organization, or returns the running one for the same target.
 * @throws {KisError} `invalid_request`: not exactly one target is named, or 20 erasures are running
 * @throws {NotFound} the organization has no such member or key
 */
export async function requestErasure(deps: BillingDeps, principal: Principal, input: EraseInput): Promise<ErasureRecord> {
  requireScope(principal, 'admin')
  const { organizationId, apiKeyId } = principal
  const { erasures } = deps.collections
  const subject = await readSubject(deps, organizationId, input)
  const openKey = `${organizationId}:${digestOf(subject)}`
  const earlier = await erasures.findOne({ openKey })
  if (earlier) return earlier
  if ((await erasures.countDocuments({ openOf: organizationId }, { limit: MAX_OPEN })) >= MAX_OPEN)
    throw new KisError('invalid_request', `${MAX_OPEN} erasures of the organization are in progress. Wait until one has ended.`)
  const requestedAt = deps.clock.now()
  const begun: ErasureRecord = {
    ...newErasure(deps.ids('ers'), organizationId, apiKeyId, requestedAt),
    ...subject,
    openKey,
  }
  try {
    await erasures.insertOne(begun)
    await dropOldReceipt(deps, organizationId)
    return begun
  } catch (error) {
    const first = error instanceof DuplicateKey ? await erasures.findOne({ openKey }) : null
    if (first) return first
    throw error
  }
}

/** Deletes the oldest receipt above the limit. Each new erasure does this, so there are never more. */
async function dropOldReceipt({ collections: { erasures } }: BillingDeps, organizationId: string): Promise<void> {
  if ((await erasures.countDocuments({ organizationId }, { limit: MAX_RECEIPTS + 1 })) <= MAX_RECEIPTS) return
  // Running erasures and the receipt of the organization stay.
  const first = await erasures.find({ organizationId }, { sort: { _id: 1 }, limit: MAX_OPEN + 2 })
  const oldest = first.find(({ kind, endedAt }) => kind !== 'organization' && endedAt !== null)
  if (oldest) await erasures.findOneAndDelete({ _id: oldest._id })
}

/** Starts the erasure of a deleted organization. Repeatable: there is only one. */
export async function createReceipt({ collections }: BillingDeps, { _id, erasingSince, lastChange }: Organization): Promise<void> {
  if (!erasingSince) return
  await collections.erasures.insertMissing([newErasure(receiptId(_id), _id, lastChange?.apiKeyId ?? '', erasingSince)])
}

/**
 * Opens the ended erasure of a deleted organization again, because data was written after its end: every part erases
 * again. Repeatable.
 */
export async function eraseAgain({ collections, clock }: Pick<BillingDeps, 'collections' | 'clock'>, _id: string): Promise<void> {
  const openSince = clock.now()
  await collections.organizations.findOneAndUpdate({ _id }, { $set: { erasingSince: openSince } })
  const open = { ended: {}, endedAt: null, openOf: _id, openSince }
  await collections.erasures.findOneAndUpdate({ _id: receiptId(_id) }, { $set: open })
}

/** Returns the id of the erasure of a whole organization, which is derived from the organization's id. */
export function receiptId(organizationId: string): string {
  return organizationId.replace(/^org_/, 'ers_')
}

function newErasure(_id: string, organizationId: string, requestedBy: string, requestedAt: Date): ErasureRecord {
  return {
    ...{ _id, organizationId, kind: 'organization', documentId: null, memberId: null, apiKeyIds: [] },
    ...{ requestedBy, requestedAt, found: {}, ended: {}, kept: [], endedAt: null },
    ...{ openOf: organizationId, openSince: requestedAt },
  }
}

/** Returns an erasure of the caller's organization, or for an operator of any; null for others. */
export async function findErasure({ collections }: BillingDeps, principal: Principal, id: string): Promise<ErasureRecord | null> {
  requireScope(principal, 'admin')
  const erasure = await collections.erasures.findOne({ _id: id })
  return erasure && mayRead(principal, erasure.organizationId) ? erasure : null
}

/** Lists the erasures of an organization that the caller may read, newest first. */
export function listErasures(
  { collections }: BillingDeps,
  principal: Principal,
  { _id: organizationId }: Organization,
  page: PageArguments,
): Promise<Connection<ErasureRecord>> {
  requireScope(principal, 'admin')
  return listById(collections.erasures, { organizationId }, page, ERASURE_ID)
}

/** Returns the records found by all parts. Kinds without records are left out. */
export function erasedRecords({ found }: ErasureRecord): readonly { readonly kind: string; readonly count: number }[] {
  return Object.values(found).flatMap((part = {}) =>
    Object.entries(part).flatMap(([kind, count]) => (count > 0 ? [{ kind, count: Math.min(count, MAX_COUNTED) }] : [])),
  )
}

/** Records what a part of the service has found. The first record stays. False: there is no such running erasure. */
export async function noteFound({ collections }: BillingDeps, part: Eraser, id: string, noted: Found): Promise<boolean> {
  const { found, documentIds, notes } = noted
  const kinds = Object.entries(found)
  if (kinds.length > MAX_KINDS || !kinds.every(([kind, count]) => KIND.test(kind) && Number.isSafeInteger(count) && count >= 0))
    throw new Error(`${part} found what is no count of records`)
  if ((documentIds?.length ?? 0) > MAX_DOCUMENTS || (notes?.length ?? 0) > MAX_NOTES_CHARACTERS)
    throw new Error(`${part} found too much for one erasure`)
  const set = { [`found.${part}`]: found, ...(documentIds && { documentIds }), ...(notes !== undefined && { notes }) }
  if (await collections.erasures.findOneAndUpdate({ _id: id, endedAt: null, [`found.${part}`]: null }, { $set: set })) return true
  return (await collections.erasures.findOne({ _id: id }))?.endedAt === null
}

/** Records that a part of the service has erased all its data. False: there is no such erasure. Repeatable. */
export async function notePartEnded(
  { collections, clock }: BillingDeps,
  part: Eraser,
  id: string,
  retained: readonly RetainedRecords[],
): Promise<boolean> {
  const set = { [`ended.${part}`]: { at: clock.now(), kept: retained.map((each) => ({ ...each })) } }
  if (await collections.erasures.findOneAndUpdate({ _id: id, endedAt: null, [`ended.${part}`]: null }, { $set: set })) return true
  return (await collections.erasures.findOne({ _id: id })) !== null
}

/**
 * Starts erasures of organizations whose deletion was interrupted, and ends erasures that every part has finished,
 * until the signal aborts. At the end it counts what the accounts retain. Repeatable.
 */
export async function endErasures(deps: BillingDeps, signal: AbortSignal): Promise<void> {
  const { erasures, organizations } = deps.collections
  for await (const organization of byTime(organizations, 'erasingSince', deps.clock.now())) await createReceipt(deps, organization)
  for await (const erasure of byTime(erasures, 'openSince', deps.clock.now())) {
    if (signal.aborted) return
    if (!isErased(erasure)) continue
    const own = await countRetained(deps, erasure)
    if (erasure.kind === 'organization')
      await organizations.findOneAndUpdate({ _id: erasure.organizationId }, { $unset: { erasingSince: '' } })
    await erasures.findOneAndUpdate(
      { _id: erasure._id, openSince: erasure.openSince! },
      {
        $set: { endedAt: deps.clock.now(), kept: [...own, ...Object.values(erasure.ended).flatMap((part) => part?.kept ?? [])] },
        $unset: { openKey: '', openOf: '', openSince: '', notes: '' },
      },
    )
  }
}

function isErased({ kind, ended }: ErasureRecord): boolean {
  const parts: readonly Eraser[] = kind === 'organization' ? ['billing', 'knowledge', 'inference'] : ['knowledge', 'inference']
  return parts.every((part) => ended[part] !== undefined)
}

async function countRetained(
  { collections, pump }: BillingDeps,
  { kind, organizationId, apiKeyIds }: ErasureRecord,
): Promise<readonly KeptRecords[]> {
  const { entries, usage, usageTotals, wallets } = collections
  const limit = { limit: MAX_COUNTED }
  // Entries that are pending in the wallet count, too.
  await pump.drain(organizationId)
  const retained = (what: string, count: number): readonly KeptRecords[] => (count > 0 ? [{ kind: what, count, reason: ACCOUNTS }] : [])
  if (kind === 'organization')
    return [
      { kind: 'organizations', count: 1, reason: 'Its name, its plan and what operators changed say whose accounts these are.' },
      ...retained('wallets', (await wallets.findOne({ _id: organizationId })) ? 1 : 0),
      ...retained('ledger_entries', await entries.countDocuments({ organizationId }, limit)),
      ...retained('usage_records', await usage.countDocuments({ organizationId }, limit)),
      ...retained('usage_totals', await usageTotals.countDocuments({ organizationId }, limit)),
    ]
  let records = 0
  for (const apiKeyId of apiKeyIds) records += await usage.countDocuments({ organizationId, apiKeyId }, limit)
  return retained('usage_records', Math.min(records, MAX_COUNTED))
}

async function readSubject(
  { collections }: BillingDeps,
  organizationId: string,
  { documentId, memberId, apiKeyIds }: EraseInput,
): Promise<Subject> {
  const provided = [documentId, memberId, apiKeyIds].filter((one) => one != null)
  if (provided.length !== 1) throw new KisError('invalid_request', 'Name exactly one: a document, a member, or keys.', { param: 'input' })
  const nothing = { documentId: null, memberId: null, apiKeyIds: [] }
  if (documentId != null) {
    if (!DOCUMENT_ID.test(documentId))
      throw new KisError('invalid_request', 'The id of a document is `doc_` and 32 hexadecimal digits.', { param: 'input.documentId' })
    return { ...nothing, kind: 'document', documentId }
  }
  if (memberId != null) {
    const member = await collections.members.findOne({ _id: memberId })
    if (member?.organizationId !== organizationId) throw new NotFound('member', memberId, 'input.memberId')
    // The person has one key for each time that they became a member.
    const own = await collections.apiKeys.find({ organizationId, memberId }, { limit: MAX_API_KEYS })
    return { ...nothing, kind: 'person', memberId, apiKeyIds: [...new Set([member.apiKeyId, ...own.map(({ _id }) => _id)])].sort() }
  }
  const ids = [...new Set(apiKeyIds)].sort()
  if (ids.length < 1 || ids.length > MAX_KEYS)
    throw new KisError('invalid_request', `Name 1 to ${MAX_KEYS} keys.`, { param: 'input.apiKeyIds' })
  const keys = await collections.apiKeys.find({ _id: { $in: ids } }, { limit: MAX_KEYS })
  const own = keys.flatMap((key) => (key.organizationId === organizationId ? key._id : []))
  const unknown = ids.find((id) => !own.includes(id))
  if (unknown !== undefined) throw new NotFound('API key', unknown, 'input.apiKeyIds')
  return { ...nothing, kind: 'person', apiKeyIds: ids }
}

function digestOf({ kind, documentId, memberId, apiKeyIds }: Subject): string {
  return createHash('sha256')
    .update(JSON.stringify([kind, documentId, memberId, apiKeyIds]))
    .digest('hex')
}
