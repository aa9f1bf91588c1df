import { NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import { type Connection, type PageArguments, readPageById, toConnection } from '../../../common/link/connection.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { mayRead } from '../../use-cases/may-read.ts'
import type { LedgerEntry } from '../domain/ledger.ts'
import { USAGE_POSITION, type UsageRecord } from '../domain/usage.ts'
import type { Wallet } from '../domain/wallet.ts'

const SEQUENCE = /^[1-9]\d{0,14}$/
const ENTRY_ID = /^ent_[0-9a-f]{32}$/
const USAGE_ID = /^use_[0-9a-f]{32}$/

/** Null for an organization that is not there. */
export async function findWallet({ collections }: BillingDeps, organizationId: string): Promise<Wallet | null> {
  return collections.wallets.findOne({ _id: organizationId })
}

/** The wallet of an organization that the caller may read. @throws {NotFound} @throws {PermissionDenied} */
export async function getWallet(deps: BillingDeps, principal: Principal, organizationId: string): Promise<Wallet> {
  requireScope(principal, 'billing:read')
  const wallet = await findWallet(deps, organizationId)
  if (!wallet) throw new NotFound('organization', organizationId)
  return wallet
}

/** An organization's ledger, newest first, with everything posted before the call. */
export async function listEntries(deps: BillingDeps, organizationId: string, args: PageArguments): Promise<Connection<LedgerEntry>> {
  const findKey = async (_id: string) => (await deps.collections.entries.findOne({ _id, organizationId }))?.sequence.toString()
  const page = await readPageById(args, SEQUENCE, ENTRY_ID, findKey)
  await deps.pump.drain(organizationId)
  const filter = { organizationId, ...(page.after !== null && { sequence: { $lt: Number(page.after) } }) }
  const items = await deps.collections.entries.find(filter, { sort: { sequence: -1 }, limit: page.limit })
  return toConnection(items, page, ({ sequence }) => String(sequence))
}

export interface UsageFilter {
  readonly modelId?: string | null
  readonly apiKeyId?: string | null
  readonly since?: Date | null
  readonly until?: Date | null
}

/** An organization's usage records, newest first, with every call settled before this one. */
export async function listUsage(
  deps: BillingDeps,
  organizationId: string,
  args: PageArguments,
  { modelId, apiKeyId, since, until }: UsageFilter,
): Promise<Connection<UsageRecord>> {
  const findKey = async (_id: string) => (await deps.collections.usage.findOne({ _id, organizationId }))?.position
  const page = await readPageById(args, USAGE_POSITION, USAGE_ID, findKey)
  await deps.pump.drain(organizationId)
  // A bare instant sorts before every position of its millisecond.
  const before = [page.after, until?.toISOString()].filter((bound) => typeof bound === 'string').sort()[0]
  const range = { ...(before !== undefined && { $lt: before }), ...(since && { $gte: since.toISOString() }) }
  const filter = {
    organizationId,
    ...(apiKeyId && { apiKeyId }),
    ...(modelId && { modelId }),
    ...(Object.keys(range).length > 0 && { position: range }),
  }
  const items = await deps.collections.usage.find(filter, { sort: { position: -1 }, limit: page.limit })
  return toConnection(items, page, ({ position }) => position)
}

/**
 * Of an organization that the caller may read, also of a call that was settled a moment ago; null when there is none.
 */
export async function findUsageRecord({ collections, pump }: BillingDeps, principal: Principal, id: string): Promise<UsageRecord | null> {
  let record = await collections.usage.findOne({ _id: id })
  if (!record) {
    await pump.drain(principal.organizationId)
    record = await collections.usage.findOne({ _id: id })
  }
  return record && mayRead(principal, record.organizationId) ? record : null
}
