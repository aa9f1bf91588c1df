import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { placeHold } from '../subgraphs/billing/ledger/holds/place-hold.ts'
import { settleHold } from '../subgraphs/billing/ledger/holds/settle-hold.ts'
import { fundedOrganization, openBilling } from '../subgraphs/billing/test-support/world.ts'
import type { BillingDeps } from '../subgraphs/billing/use-cases/deps.ts'
import { openSqliteDocumentStore } from '../subgraphs/common/adapters/sqlite/documents/document-store.ts'
import type { Principal } from '../subgraphs/common/identity/principal.ts'
import { systemClock } from '../subgraphs/common/process/clock.ts'
import { silentLog } from '../subgraphs/common/process/log.ts'
import { fsyncTimes } from './fsync.ts'
import type { BenchRow } from './row.ts'
import { p50AndP99 } from './support/quantile.ts'

/** Concurrent calls of the organization. */
const AT_ONCE = 64
const WARM_UP_MS = 2_000
const MEASURED_MS = 4_000
const RATE_CARD = {
  version: 'v1',
  inputTokens: 1_000_000n,
  cachedInputTokens: 0n,
  cacheWriteTokens: 0n,
  outputTokens: 1_000_000n,
  audioMilliseconds: 0n,
  searchUnits: 0n,
  pages: 0n,
  tiers: [],
}
const used = (inputTokens: number) => ({
  inputTokens,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  audioMilliseconds: 0,
  searchUnits: 0,
  pages: 0,
})

/**
 * Measures the ledger alone on SQLite: holds of one wallet are placed and settled, with their entries and usage
 * records.
 */
export async function benchHolds(): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'kis-bench-holds-'))
  try {
    await using store = await openSqliteDocumentStore({ file: join(folder, 'billing.sqlite'), log: silentLog })
    const deps = openBilling(store, systemClock)
    await using pump = deps.pump
    const owner = await fundedOrganization(deps, 1_000_000_000_000n)
    await placeAndSettle(deps, owner, WARM_UP_MS)
    const before = process.cpuUsage()
    const start = performance.now()
    const holds = await placeAndSettle(deps, owner, MEASURED_MS)
    // The entries in the outbox are part of the work.
    await pump.drain(owner.organizationId)
    const seconds = (performance.now() - start) / 1_000
    const { user, system } = process.cpuUsage(before)
    return [
      {
        what: `holds placed and settled, one wallet, ${AT_ONCE} at once`,
        figure: `${Math.round(holds / seconds)} a second, ${((user + system) / 1_000 / holds).toFixed(2)} ms CPU each`,
        target: '≥ 1,000 a second',
        beside: `fsync of the disk ${p50AndP99(await fsyncTimes(folder))}`,
      },
    ]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Places and settles holds for this long, and returns their number. */
async function placeAndSettle(deps: BillingDeps, owner: Principal, durationMs: number): Promise<number> {
  const end = performance.now() + durationMs
  let holds = 0
  const worker = async () => {
    while (performance.now() < end) {
      const id = deps.ids('hold')
      const call = { operation: 'chat_completion', modelId: 'mock-chat', requestId: id, rateCard: RATE_CARD, ttlSeconds: 60 } as const
      await placeHold(deps, owner, { ...call, id, ceiling: used(100) })
      await settleHold(deps, owner, id, used(50), 'provider')
      holds += 1
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return holds
}
