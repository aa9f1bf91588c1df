import fc from 'fast-check'
import { describe, it } from 'vitest'
import { STORES } from '../../../../test/support/document-stores.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { full } from '../../../../test/support/soak.ts'
import { type Command, LedgerRun, PROCESSES } from '../../test-support/ledger-run.ts'
import { STORE_FAULTS, type StoreFault } from '../../test-support/process-store.ts'
import { NOTHING, type Quantities } from '../domain/money.ts'

/** On SQLite each write waits for the disk: a twentieth of the runs takes as long. */
const RUNS: Readonly<Record<string, number>> = { 'the fake': full(10_000), SQLite: full(500) }
const SLOTS = 6
const HOUR_MS = 3_600_000

interface Step {
  /**
   * Commands that run at once, each in one of the processes. A number refers to an earlier command, which is repeated.
   */
  readonly commands: readonly { readonly process: number; readonly command: Command | number }[]
  readonly faults: readonly { readonly process: number; readonly nth: number; readonly fault: StoreFault }[]
  readonly afterwards: { readonly waitMs: number } | { readonly crash: number } | null
}

const HOLDERS = ['process 1', 'process 2']
const org = fc.nat({ max: 1 })
const slot = fc.nat({ max: SLOTS - 1 })
const quantities: fc.Arbitrary<Quantities> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      inputTokens: fc.nat({ max: 80 }),
      cachedInputTokens: fc.nat({ max: 80 }),
      cacheWriteTokens: fc.nat({ max: 20 }),
      outputTokens: fc.nat({ max: 30 }),
      audioMilliseconds: fc.constant(0),
      searchUnits: fc.constant(0),
      pages: fc.constant(0),
    }),
  },
  // Quantities of an engine that counts nothing, and of one with a wrong count: above every hold, and above everything
  // that the ledger can write.
  {
    weight: 1,
    arbitrary: fc.constantFrom(0, 10_000, Number.MAX_SAFE_INTEGER).map((outputTokens) => ({ ...NOTHING, outputTokens })),
  },
)
const amount = fc.oneof(
  { weight: 6, arbitrary: fc.bigInt({ min: -120n, max: 120n }) },
  { weight: 1, arbitrary: fc.constantFrom(0n, 9_000_000_000_000_000n, -9_000_000_000_000_000n, 9_000_000_000_000_001n) },
)
const command: fc.Arbitrary<Command | number> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('place' as const),
      org,
      slot,
      isNew: fc.boolean(),
      quantities,
      isDear: fc.integer({ min: 1, max: 10 }).map((n) => n === 1),
      ttlSeconds: fc.constantFrom(10, 20, 60),
      holder: fc.constantFrom(null, ...HOLDERS),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constantFrom('dispatch' as const, 'checkpoint' as const, 'settle' as const), org, slot, quantities }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('settle' as const), org, slot, quantities }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('void' as const), org, slot }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('credit' as const), org, reference: fc.nat({ max: 3 }), amount, isTopUp: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pump' as const), org }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'reap' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('end holder' as const), holder: fc.constantFrom(...HOLDERS) }) },
  { weight: 3, arbitrary: fc.nat({ max: 50 }) },
)
const process = fc.nat({ max: PROCESSES - 1 })

const step: fc.Arbitrary<Step> = fc.record({
  commands: fc.array(fc.record({ process, command }), { minLength: 1, maxLength: 5 }),
  faults: fc.array(fc.record({ process, nth: fc.integer({ min: 1, max: 8 }), fault: fc.constantFrom(...STORE_FAULTS) }), { maxLength: 2 }),
  afterwards: fc.oneof(
    { weight: 5, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: process.map((crash) => ({ crash })) },
    { weight: 2, arbitrary: fc.constantFrom(2_000, 15_000, 70_000, HOUR_MS, -HOUR_MS).map((waitMs) => ({ waitMs })) },
  ),
})

for (const { name, open } of STORES)
  describe(`Ledger on ${name}`, () => {
    const isFake = name === 'the fake'
    it(`preserves invariants I1 to I10 in ${RUNS[name]} runs, under any calls, retries, failures, lost responses, crashes and clocks`, {
      timeout: 1_800_000,
    }, async () => {
      // Runs may share a store: each has organizations of its own. The fake is created for each run, because it scans
      // all its documents.
      await using shared = await open()
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
          const run = await LedgerRun.start(isFake ? new MemoryDocumentStore() : shared)
          const issued: Command[] = []
          for (const { commands, faults, afterwards } of steps) {
            for (const { process, nth, fault } of faults) run.process(process).store.strike(nth, fault)
            const these = commands.flatMap(({ process, command }) => {
              const holdId = typeof command === 'number' ? issued[command % issued.length] : command
              return holdId ? [{ process, command: holdId }] : []
            })
            issued.push(...these.map(({ command }) => command))
            await run.step(these)
            if (afterwards && 'crash' in afterwards) run.restart(afterwards.crash)
            if (afterwards && 'waitMs' in afterwards) run.clock.advance(afterwards.waitMs)
          }
          await run.end()
        }),
        { numRuns: RUNS[name]! },
      )
    })
  })
