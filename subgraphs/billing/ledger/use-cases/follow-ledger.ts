import { KisError, NotFound } from '../../../common/errors.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { LedgerEntry } from '../domain/ledger.ts'
import { lastCopied } from '../domain/wallet.ts'

/** Entries that are read together. */
const PAGE_ENTRIES = 100

/**
 * Follows an organization's ledger after a cursor, or from now on, without end. The ledger itself is the log: its
 * sequence has no gaps, and a reader stops before the first entry that is still in the outbox, so it misses nothing. A
 * cursor is a sequence number and never expires.
 * @throws {KisError} `invalid_request`: the cursor is not from this ledger
 */
export function followLedger<T>(
  deps: BillingDeps,
  organizationId: string,
  after: string | null,
  toEvents: (entries: readonly LedgerEntry[]) => Promise<readonly T[]>,
): AsyncIterableIterator<T, undefined> {
  let position: number | undefined
  const start = findStart(deps, organizationId, after)
  start.catch(() => undefined)

  async function read(): Promise<readonly T[]> {
    position ??= await start
    for (;;) {
      const entries = await entriesAfter(deps, organizationId, position)
      if (entries.length === 0) return []
      position = entries.at(-1)!.sequence
      const events = await toEvents(entries)
      if (events.length > 0) return events
    }
  }
  return deps.pump.followers.follow(organizationId, read, () => position!)
}

async function findStart({ collections }: BillingDeps, organizationId: string, after: string | null): Promise<number> {
  const wallet = await collections.wallets.findOne({ _id: organizationId })
  if (!wallet) throw new NotFound('organization', organizationId)
  if (after === null) return wallet.sequence
  const position = /^\d{1,15}$/.test(after) ? Number(after) : Number.NaN
  if (!(position <= wallet.sequence))
    throw new KisError('invalid_request', 'The cursor does not come from these events.', { param: 'after' })
  return position
}

/** Gives the next copied entries. Their usage records are complete, because the pump copies those first. */
export async function entriesAfter(
  { collections }: Pick<BillingDeps, 'collections'>,
  organizationId: string,
  position: number,
): Promise<readonly LedgerEntry[]> {
  const wallet = await collections.wallets.findOne({ _id: organizationId })
  const copied = wallet ? lastCopied(wallet) : 0
  if (copied <= position) return []
  return collections.entries.find(
    { organizationId, sequence: { $gt: position, $lte: copied } },
    { sort: { sequence: 1 }, limit: PAGE_ENTRIES },
  )
}
