import { KisError, NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import { type Connection, type Page, type PageArguments, readPageById, toConnection } from '../../../common/link/connection.ts'
import type { DocumentCollection } from '../../../common/ports/document-store.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { mayRead } from '../../use-cases/may-read.ts'
import type { LedgerEntry } from '../domain/ledger.ts'
import { USAGE_POSITION, type UsageRecord } from '../domain/usage.ts'
import { type Hold, organizationOfWallet, type Wallet } from '../domain/wallet.ts'

const SEQUENCE = /^[1-9]\d{0,14}$/
const ENTRY_ID = /^ent_[0-9a-f]{32}$/
const USAGE_ID = /^use_[0-9a-f]{32}$/

/** Returns the wallet; null: the organization does not exist. */
export async function findWallet({ collections }: BillingDeps, organizationId: string): Promise<Wallet | null> {
  return collections.wallets.findOne({ _id: organizationId })
}

/**
 * Returns the wallet of an organization that the caller may read.
 * @throws {NotFound}
 * @throws {PermissionDenied}
 */
export async function getWallet(deps: BillingDeps, principal: Principal, organizationId: string): Promise<Wallet> {
  requireScope(principal, 'billing:read')
  const wallet = await findWallet(deps, organizationId)
  if (!wallet) throw new NotFound('organization', organizationId)
  return wallet
}

/**
 * Returns the wallet with the id. Null: there is none, or the caller may not read its organization.
 * @throws {PermissionDenied}
 */
export async function findWalletById(deps: BillingDeps, principal: Principal, id: string): Promise<Wallet | null> {
  requireScope(principal, 'billing:read')
  const organizationId = organizationOfWallet(id)
  return organizationId && mayRead(principal, organizationId) ? findWallet(deps, organizationId) : null
}

/**
 * Returns the entry with the id. Null: as `findUsageRecord`.
 * @throws {PermissionDenied}
 */
export async function findEntry(deps: BillingDeps, principal: Principal, id: string): Promise<LedgerEntry | null> {
  requireScope(principal, 'billing:read')
  return findPosted(deps, deps.collections.entries, principal, id)
}

/** A hold with its id. */
export type OpenHold = Hold & { readonly id: string }

/** Holds of one result. */
const MAX_LISTED_HOLDS = 100

/** Returns the open holds of a wallet that end first. */
export function listHolds({ holds }: Pick<Wallet, 'holds'>): readonly OpenHold[] {
  return Object.entries(holds)
    .map(([id, hold]) => ({ ...hold, id }))
    .sort((a, b) => a.expiresAt.getTime() - b.expiresAt.getTime() || (a.id < b.id ? -1 : 1))
    .slice(0, MAX_LISTED_HOLDS)
}

/** Lists an organization's ledger, newest first, with everything posted before the call. */
export async function listEntries(deps: BillingDeps, organizationId: string, args: PageArguments): Promise<Connection<LedgerEntry>> {
  const findKey = async (_id: string) => (await deps.collections.entries.findOne({ _id, organizationId }))?.sequence.toString()
  const page = await readPageById(args, SEQUENCE, ENTRY_ID, findKey)
  await deps.pump.drain(organizationId)
  const rest = page.from !== null && { sequence: page.isBackward ? { $gt: Number(page.from) } : { $lt: Number(page.from) } }
  const items = await deps.collections.entries.find(
    { organizationId, ...rest },
    { sort: { sequence: page.isBackward ? 1 : -1 }, limit: page.limit },
  )
  return toConnection(
    items,
    page,
    ({ sequence }) => String(sequence),
    (limit) => deps.collections.entries.countDocuments({ organizationId }, { limit }),
  )
}

interface UsageFilter {
  readonly modelId?: string | null
  readonly apiKeyId?: string | null
  readonly requestId?: string | null
  readonly since?: Date | null
  readonly until?: Date | null
}

/** Lists an organization's usage records, newest first, with every call settled before this one. */
export async function listUsage(
  deps: BillingDeps,
  organizationId: string,
  args: PageArguments,
  { modelId, apiKeyId, requestId, since, until }: UsageFilter,
): Promise<Connection<UsageRecord>> {
  const findKey = async (_id: string) => (await deps.collections.usage.findOne({ _id, organizationId }))?.position
  const page = await readPageById(args, USAGE_POSITION, USAGE_ID, findKey)
  await deps.pump.drain(organizationId)
  if (requestId && (modelId || apiKeyId))
    throw new KisError('invalid_request', 'Filter by `requestId` without `modelId` and `apiKeyId`.', { param: 'filter.requestId' })
  const fixed = { organizationId, ...(requestId && { requestId }), ...(apiKeyId && { apiKeyId }), ...(modelId && { modelId }) }
  // An instant without an id sorts before every position of its millisecond.
  const whole = { ...(until && { $lt: until.toISOString() }), ...(since && { $gte: since.toISOString() }) }
  const filterIn = (range: { readonly $lt?: string; readonly $gte?: string; readonly $gt?: string }) => ({
    ...fixed,
    ...(Object.keys(range).length > 0 && { position: range }),
  })
  const items = await deps.collections.usage.find(filterIn(restOf(whole, page)), {
    sort: { position: page.isBackward ? 1 : -1 },
    limit: page.limit,
  })
  return toConnection(
    items,
    page,
    ({ position }) => position,
    (limit) => deps.collections.usage.countDocuments(filterIn(whole), { limit }),
  )
}

/** Returns the part of a range that follows what was read, newest first. */
function restOf<T extends { readonly $lt?: string; readonly $gte?: string }>(range: T, { from, isBackward }: Page) {
  if (from === null) return range
  if (!isBackward) return { ...range, $lt: range.$lt !== undefined && range.$lt < from ? range.$lt : from }
  const { $gte, ...rest } = range
  return $gte !== undefined && $gte > from ? range : { ...rest, $gt: from }
}

/**
 * Returns the usage record with the id, also of a call that was settled a moment ago. Null: there is none, or the
 * caller may not read its organization.
 */
export async function findUsageRecord(deps: BillingDeps, principal: Principal, id: string): Promise<UsageRecord | null> {
  return findPosted(deps, deps.collections.usage, principal, id)
}

async function findPosted<T extends { readonly _id: string; readonly organizationId: string }>(
  { pump }: BillingDeps,
  records: DocumentCollection<T>,
  principal: Principal,
  id: string,
): Promise<T | null> {
  let record = await records.findOne({ _id: id })
  if (!record) {
    await pump.drain(principal.organizationId)
    record = await records.findOne({ _id: id })
  }
  return record && mayRead(principal, record.organizationId) ? record : null
}
