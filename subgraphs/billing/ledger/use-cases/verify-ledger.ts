import { type Caller, requireScope } from '../../../common/identity/principal.ts'
import { decodeScanCursor, encodeScanCursor } from '../../../common/link/scan-cursor.ts'
import type { Collections } from '../../use-cases/tables.ts'
import { usageRecordIdOf } from '../domain/ids.ts'
import { balanceChange, isEnd, type LedgerEntry } from '../domain/ledger.ts'
import { auditEntry, auditWallet, describeSums, type LedgerFault, type LedgerState, NO_ENTRIES, usd } from '../domain/ledger-audit.ts'
import { UNITS } from '../domain/money.ts'
import { addSums, NO_USAGE, sumsOfRecord, toSums, toTotal, type UsageSums, type UsageTotal } from '../domain/usage-total.ts'
import { lastCopied, type Wallet } from '../domain/wallet.ts'

/** Ledger entries of one page. */
const ENTRIES = 500
/** Totals and usage records of one page. */
const TOTALS = 100
const RECORDS = 1_000

export interface LedgerFinding extends LedgerFault {
  readonly organizationId: string
}

interface LedgerVerification {
  /** Organizations begun on this page, and entries and totals checked. */
  readonly organizations: number
  readonly entries: number
  readonly totals: number
  readonly findings: readonly LedgerFinding[]
  /** The cursor of the next page; null: all is checked. */
  readonly next: string | null
}

/** `bigint`s as digits, because JSON has none. */
type Stored<T> = { readonly [K in keyof T]: T[K] extends bigint ? string : T[K] extends object ? Stored<T[K]> : T[K] }

/**
 * One organization after another: first its entries, which end with the wallet, then its totals. `total`: one whose
 * records fill more than a page.
 */
type LedgerScanCursor =
  | { readonly at: 'organizations'; readonly after: string }
  | { readonly at: 'entries'; readonly organizationId: string; readonly state: Stored<LedgerState> }
  | {
      readonly at: 'totals'
      readonly organizationId: string
      readonly after: string
      readonly total?: { readonly id: string; readonly upTo: number; readonly after: string; readonly sums: Stored<UsageSums> }
    }

interface Page extends Omit<LedgerVerification, 'next'> {
  readonly next: LedgerScanCursor | null
}

type VerifyDeps = { readonly collections: Collections }

const NOTHING = { organizations: 0, entries: 0, totals: 0, findings: [] }

/**
 * Checks one page of the ledger against its own rules, over all organizations. Money moves meanwhile: a wallet is
 * compared with its entries at one sequence number, and a total that grows during the check is left for later. Changes
 * nothing.
 * @throws {KisError} `permission_denied`: the caller lacks the scope `operator`
 * @throws {KisError} `invalid_request`: `after` is not a cursor of this check
 * @throws {KisError} `service_unavailable`: the store does not answer
 */
export async function verifyLedger(deps: VerifyDeps, caller: Caller | null, after: string | null): Promise<LedgerVerification> {
  requireScope(caller, 'operator')
  return verifyLedgerPage(deps, after)
}

/** As `verifyLedger`, for the operator's own commands, which have no caller. */
async function verifyLedgerPage(deps: VerifyDeps, after: string | null): Promise<LedgerVerification> {
  const cursor: LedgerScanCursor = after === null ? { at: 'organizations', after: '' } : decodeScanCursor(after, isCursor, 'after')
  const { next, ...page } = await verifyAt(deps, cursor)
  return { ...page, next: next && encodeScanCursor(next) }
}

async function verifyAt(deps: VerifyDeps, cursor: LedgerScanCursor): Promise<Page> {
  const { organizations } = deps.collections
  switch (cursor.at) {
    case 'organizations': {
      const [organization] = await organizations.find({ _id: { $gt: cursor.after } }, { sort: { _id: 1 }, limit: 1 })
      if (!organization) return { ...NOTHING, next: null }
      return { ...(await verifyEntries(deps, organization._id, NO_ENTRIES)), organizations: 1 }
    }
    case 'entries': {
      const { balance, available, held, ...state } = cursor.state
      const sums = { balance: BigInt(balance), available: BigInt(available), held: BigInt(held) }
      return verifyEntries(deps, cursor.organizationId, { ...state, ...sums })
    }
    case 'totals':
      return verifyTotals(deps, cursor)
  }
}

async function verifyEntries({ collections }: VerifyDeps, organizationId: string, before: LedgerState): Promise<Page> {
  const totals: LedgerScanCursor = { at: 'totals', organizationId, after: '' }
  // Before the entries: everything that has left its outbox by now is among them, with its usage record and total.
  const wallet = await collections.wallets.findOne({ _id: organizationId })
  if (!wallet) {
    const lost = { kind: 'wallet', subject: null, expected: 'a wallet', found: null } as const
    return { ...NOTHING, findings: [{ ...lost, organizationId }], next: totals }
  }
  const entries = await collections.entries.find(
    { organizationId, sequence: { $gt: before.sequence, $lte: lastCopied(wallet) } },
    { sort: { sequence: 1 }, limit: ENTRIES },
  )
  const isLast = entries.length < ENTRIES
  const faults: LedgerFault[] = []
  let state = before
  for (const entry of isLast ? [...entries, ...wallet.outbox.map(({ entry }) => entry)] : entries) {
    const judged = auditEntry(state, entry)
    faults.push(...judged.faults)
    state = judged.after
  }
  if (isLast) faults.push(...auditWallet(state, wallet))
  faults.push(...(await usageFaults(collections, entries)))
  return {
    ...NOTHING,
    entries: entries.length,
    findings: faults.map((fault) => ({ ...fault, organizationId })),
    next: isLast ? totals : { at: 'entries', organizationId, state: { ...state, ...toDigits(state) } },
  }
}

function toDigits({ balance, available, held }: LedgerState) {
  return { balance: String(balance), available: String(available), held: String(held) }
}

/** Finds charges without a usage record or with another amount, and records that are in no total. */
async function usageFaults(collections: Collections, entries: readonly LedgerEntry[]): Promise<LedgerFault[]> {
  const ends = entries.filter(isEnd)
  const ids = ends.map(usageRecordIdOf)
  const records = ids.length === 0 ? [] : await collections.usage.find({ _id: { $in: ids } }, { limit: ids.length })
  const byId = new Map(records.map((record) => [record._id, record]))
  const faults = ends.flatMap((entry, i): readonly LedgerFault[] => {
    const charged = 0 - balanceChange(entry.postings)
    const record = byId.get(ids[i]!)
    if (record ? record.amount === charged : charged === 0 && entry.kind !== 'settle') return []
    return [{ kind: 'usage', subject: ids[i]!, expected: usd(charged), found: record ? usd(record.amount) : null }]
  })
  const totals = new Map(records.map((record) => toTotal(record)).map((total) => [total._id, total]))
  const found = totals.size === 0 ? [] : await collections.usageTotals.find({ _id: { $in: [...totals.keys()] } }, { limit: totals.size })
  for (const { _id } of found) totals.delete(_id)
  for (const { _id, modelId, operation, position } of totals.values())
    faults.push({ kind: 'total', subject: _id, expected: `${operation} by ${modelId} on ${readDay({ position })}`, found: null })
  return faults
}

async function verifyTotals({ collections }: VerifyDeps, cursor: Extract<LedgerScanCursor, { readonly at: 'totals' }>): Promise<Page> {
  const { organizationId } = cursor
  const totals = await collections.usageTotals.find(
    { organizationId, position: { $gt: cursor.after } },
    { sort: { position: 1 }, limit: TOTALS },
  )
  // After the totals: the records of everything that has left its outbox by now exist.
  const wallet = await collections.wallets.findOne({ _id: organizationId })
  const findings: LedgerFinding[] = []
  let left = RECORDS
  let { after } = cursor
  for (const [looked, total] of totals.entries()) {
    if (left === 0) return { ...NOTHING, totals: looked, findings, next: { at: 'totals', organizationId, after } }
    const begun = cursor.total?.id === total._id ? cursor.total : undefined
    const isSettled = wallet !== null && total.upTo <= lastCopied(wallet) && (begun?.upTo ?? total.upTo) === total.upTo
    if (isSettled) {
      const summed = await sumRecords(collections, total, begun ? { after: begun.after, sums: readSums(begun.sums) } : null, left)
      left = summed.left
      if (summed.after !== null) {
        const begunNow = { id: total._id, upTo: total.upTo, after: summed.after, sums: storedSums(summed.sums) }
        return { ...NOTHING, totals: looked, findings, next: { at: 'totals', organizationId, after, total: begunNow } }
      }
      const [expected, found] = [describeSums(summed.sums), describeSums(toSums(total))]
      if (expected !== found && (await isUnchanged(collections, total)))
        findings.push({ organizationId, kind: 'total', subject: total._id, expected, found })
    }
    after = total.position
  }
  const next: LedgerScanCursor =
    totals.length < TOTALS ? { at: 'organizations', after: organizationId } : { at: 'totals', organizationId, after }
  return { ...NOTHING, totals: totals.length, findings, next }
}

/** Sums the usage records of a total, at most `left` of them. `after` is where the rest begins. */
async function sumRecords(
  { usage }: Collections,
  total: UsageTotal,
  begun: { readonly after: string; readonly sums: UsageSums } | null,
  left: number,
): Promise<{ readonly sums: UsageSums; readonly after: string | null; readonly left: number }> {
  const { organizationId, apiKeyId, modelId, operation } = total
  const day = readDay(total)
  // Positions of the day begin with it and a `T`.
  const range = { ...(begun ? { $gt: begun.after } : { $gte: `${day}T` }), $lt: `${day}U` }
  const records = await usage.find({ organizationId, apiKeyId, modelId, position: range }, { sort: { position: 1 }, limit: left })
  const sums = records
    .filter((record) => record.operation === operation)
    .reduce((sum, record) => addSums(sum, sumsOfRecord(record)), begun?.sums ?? NO_USAGE)
  return { sums, after: records.length === left ? records.at(-1)!.position : null, left: left - records.length }
}

/**
 * Whether the total is unchanged and no record of it is on its way. Reads the wallet first: what has left its outbox by
 * then is in the total.
 */
async function isUnchanged({ wallets, usageTotals }: Collections, { _id, organizationId, upTo }: UsageTotal): Promise<boolean> {
  const wallet: Wallet | null = await wallets.findOne({ _id: organizationId })
  if (wallet?.outbox.some(({ usage }) => usage && toTotal(usage)._id === _id)) return false
  return (await usageTotals.findOne({ _id }))?.upTo === upTo
}

/** The day in a total's position. */
function readDay({ position }: Pick<UsageTotal, 'position'>): string {
  return position.slice(0, 10)
}

function storedSums({ calls, amount, quantities }: UsageSums): Stored<UsageSums> {
  const units = UNITS.map((unit) => [unit, String(quantities[unit])])
  return { calls: String(calls), amount: String(amount), quantities: Object.fromEntries(units) }
}

function readSums({ calls, amount, quantities }: Stored<UsageSums>): UsageSums {
  const units = UNITS.map((unit) => [unit, BigInt(quantities[unit])])
  return { calls: BigInt(calls), amount: BigInt(amount), quantities: Object.fromEntries(units) }
}

type Fields = Readonly<Record<string, unknown>>
const isText = (value: unknown) => typeof value === 'string'
const isDigits = (value: unknown) => typeof value === 'string' && /^-?\d{1,40}$/.test(value)
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null

function isCursor({ at, after, organizationId, state, total }: Fields): boolean {
  if (at === 'organizations') return isText(after)
  if (at === 'totals') return isText(organizationId) && isText(after) && (total === undefined || (isFields(total) && isBegun(total)))
  const isState = isFields(state) && Number.isSafeInteger(state.sequence) && [state.balance, state.available, state.held].every(isDigits)
  return at === 'entries' && isText(organizationId) && isState
}

function isBegun({ id, upTo, after, sums }: Fields): boolean {
  if (!isText(id) || !Number.isSafeInteger(upTo) || !isText(after) || !isFields(sums) || !isFields(sums.quantities)) return false
  return [sums.calls, sums.amount, ...UNITS.map((unit) => (sums.quantities as Fields)[unit])].every(isDigits)
}
