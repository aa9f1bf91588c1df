import fc from 'fast-check'
import { expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { full } from '../../../../test/support/soak.ts'
import { KisError } from '../../../common/errors.ts'
import { idSource } from '../../../common/process/ids.ts'
import { type SpendPeriod, spentIn } from '../../ledger/domain/key-spending.ts'
import { NOTHING } from '../../ledger/domain/money.ts'
import { dispatchHold } from '../../ledger/holds/dispatch-hold.ts'
import { placeHold } from '../../ledger/holds/place-hold.ts'
import { reapHolds } from '../../ledger/holds/reap-holds.ts'
import { settleHold } from '../../ledger/holds/settle-hold.ts'
import { voidHold } from '../../ledger/holds/void-hold.ts'
import { audit } from '../../test-support/audit.ts'
import { createCard, fundedOrganization, ManualClock, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { newApiKey } from './new-api-key.ts'
import { putSpendLimit } from './spend-limit.ts'

const RUNS = full(3_000)
const [LIMIT, LIMIT_OF_CHILD] = [100, 60]
/** Keys with their ancestors. */
const ANCESTORS = {
  key_limited: [],
  key_child: ['key_limited'],
  key_sibling: ['key_limited'],
  key_grandchild: ['key_limited', 'key_child'],
  key_free: [],
} as const
const KEYS = Object.keys(ANCESTORS) as (keyof typeof ANCESTORS)[]
const LIMITS = { key_limited: LIMIT, key_child: LIMIT_OF_CHILD }
const PERIODS: readonly SpendPeriod[] = ['day', 'month', 'total']
/** A token costs 1 nano-USD. */
const RATE_CARD = createCard({ inputTokens: 1_000_000n })
const used = (inputTokens: number) => ({ ...NOTHING, inputTokens })

const slot = fc.nat({ max: 7 })
const tokens = fc.nat({ max: 70 })
const command = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('place' as const), key: fc.constantFrom(...KEYS), slot, tokens }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('dispatch' as const), slot, tokens }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('settle' as const), slot, tokens }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('void' as const), slot }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'reap' as const }) },
)
const step = fc.record({
  commands: fc.array(fc.record({ process: fc.nat({ max: 1 }), command }), { minLength: 1, maxLength: 5 }),
  fault: fc.option(fc.record({ nth: fc.integer({ min: 1, max: 8 }), effect: fc.constantFrom('failed' as const, 'lost answer' as const) })),
  waitMs: fc.constantFrom(0, 0, 15_000, 6 * 3_600_000, 20 * 86_400_000),
})

it('no mix of outcomes, processes and faults lets a key and its descendants spend and hold more than its limit in a period', {
  timeout: 600_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...PERIODS), fc.array(step, { minLength: 1, maxLength: 12 }), async (period, steps) => {
      const [store, clock] = [new MemoryDocumentStore(), new ManualClock()]
      const ids = idSource(clock)
      const processes = [openBilling(store, clock, ids), openBilling(store, clock, ids)]
      const { organizationId } = await fundedOrganization(processes[0]!, 10_000n)
      for (const [id, amount] of Object.entries(LIMITS)) await putSpendLimit(processes[0]!, organizationId, id, { amount, period })
      for (const id of KEYS) await insertKey(processes[0]!, organizationId, id)
      const holds: string[] = []

      const run = async (process: number, nextCommand: typeof command extends fc.Arbitrary<infer C> ? C : never) => {
        const deps = processes[process]!
        const principal = { organizationId } as Parameters<typeof placeHold>[1]
        if (nextCommand.kind === 'reap') return reapHolds(deps, new AbortController().signal)
        if (nextCommand.kind === 'place') {
          holds[nextCommand.slot] = ids('hold')
          const call = { operation: 'embedding', modelId: 'm', requestId: 'r', rateCard: RATE_CARD, ttlSeconds: 10 } as const
          const caller = { ...principal, apiKeyId: nextCommand.key, ancestors: ANCESTORS[nextCommand.key] }
          return placeHold(deps, caller, { id: holds[nextCommand.slot]!, ...call, ceiling: used(nextCommand.tokens) })
        }
        const id = holds[nextCommand.slot] ?? ids('hold')
        if (nextCommand.kind === 'dispatch') return dispatchHold(deps, principal, id, used(nextCommand.tokens))
        if (nextCommand.kind === 'settle') return settleHold(deps, principal, id, used(nextCommand.tokens), 'counted')
        return voidHold(deps, principal, id)
      }

      for (const { commands, fault, waitMs } of steps) {
        if (fault) store.failCall(fault.nth, fault.effect)
        const results = await Promise.allSettled(commands.map(({ process, command: nextCommand }) => run(process, nextCommand)))
        for (const result of results) if (result.status === 'rejected' && !(result.reason instanceof KisError)) throw result.reason
        store.healFaults()
        clock.advance(waitMs)

        const { usageRecords } = await audit(processes[0]!, organizationId)
        const wallet = (await processes[0]!.collections.wallets.findOne({ _id: organizationId }))!
        const since = { day: clock.now().toISOString().slice(0, 10), month: clock.now().toISOString().slice(0, 7), total: '' }[period]
        for (const [id, limit] of Object.entries(LIMITS)) {
          const family: readonly string[] = KEYS.filter((key) => key === id || ANCESTORS[key].some((ancestor) => ancestor === id))
          const ofFamily = usageRecords.filter(({ apiKeyId, at }) => family.includes(apiKeyId) && at.toISOString().startsWith(since))
          const spent = ofFamily.reduce((sum, { amount }) => sum + amount, 0)
          const held = Object.values(wallet.holds).reduce((sum, hold) => (family.includes(hold.apiKeyId) ? sum + hold.amount : sum), 0)
          expect(spentIn(wallet.spending[id]!, period, clock.now())).toBe(spent)
          expect(spent + held).toBeLessThanOrEqual(limit)
        }
      }
    }),
    { numRuns: RUNS },
  )
})

async function insertKey(deps: BillingDeps, organizationId: string, id: keyof typeof ANCESTORS): Promise<void> {
  const grants = { scopes: ['inference'], modelAllowlist: null, expiresAt: null } as const
  const { apiKey } = newApiKey(deps, { organizationId, name: id, ancestors: ANCESTORS[id], ...grants })
  await deps.collections.apiKeys.insertOne({ ...apiKey, _id: id })
}
