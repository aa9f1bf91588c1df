import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../test/support/memory-document-store.ts'
import { full } from '../../../test/support/soak.ts'
import { KisError } from '../../common/errors.ts'
import { idSource } from '../../common/ids.ts'
import { balanceChange } from '../domain/ledger.ts'
import type { Quantities } from '../domain/money.ts'
import { audit } from '../test-support/audit.ts'
import { fundedOrganization, ManualClock, openBilling } from '../test-support/world.ts'
import { checkpointHold } from './checkpoint-hold.ts'
import { creditWallet } from './credit-wallet.ts'
import type { BillingDeps } from './deps.ts'
import { dispatchHold } from './dispatch-hold.ts'
import type { HoldOutcome } from './end-hold.ts'
import { placeHold } from './place-hold.ts'
import { reapHolds } from './reap-holds.ts'
import { settleHold } from './settle-hold.ts'
import { voidHold } from './void-hold.ts'

const RUNS = full(10_000)
const SLOTS = 6

type Command =
  | { readonly kind: 'place'; readonly org: number; readonly slot: number; readonly tokens: number; readonly ttlSeconds: number }
  | { readonly kind: 'dispatch' | 'checkpoint' | 'settle'; readonly org: number; readonly slot: number; readonly tokens: number }
  | { readonly kind: 'void'; readonly org: number; readonly slot: number }
  | { readonly kind: 'credit'; readonly org: number; readonly reference: number; readonly amount: number; readonly topUp: boolean }
  | { readonly kind: 'read'; readonly org: number }
  | { readonly kind: 'reap' }

interface Step {
  /** Run at once, each by one of two processes. */
  readonly commands: readonly { readonly process: number; readonly command: Command }[]
  readonly fault: { readonly nth: number; readonly effect: 'failed' | 'lost answer' } | null
  readonly afterwards: 'go on' | 'crash' | 'wait 2 s' | 'wait 15 s' | 'wait 70 s'
}

const org = fc.nat({ max: 1 })
const slot = fc.nat({ max: SLOTS - 1 })
const tokens = fc.nat({ max: 60 })
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('place'), org, slot, tokens, ttlSeconds: fc.constantFrom(10, 20, 60) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('dispatch', 'checkpoint', 'settle'), org, slot, tokens }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('settle'), org, slot, tokens }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('void'), org, slot }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('credit'),
      org,
      reference: fc.nat({ max: 2 }),
      amount: fc.integer({ min: -60, max: 60 }),
      topUp: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('read'), org }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'reap' }) },
) as fc.Arbitrary<Command>

const step: fc.Arbitrary<Step> = fc.record({
  commands: fc.array(fc.record({ process: fc.nat({ max: 1 }), command }), { minLength: 1, maxLength: 4 }),
  fault: fc.option(fc.record({ nth: fc.integer({ min: 1, max: 12 }), effect: fc.constantFrom('failed', 'lost answer') }), { freq: 2 }),
  afterwards: fc.constantFrom('go on', 'go on', 'go on', 'crash', 'wait 2 s', 'wait 15 s', 'wait 70 s'),
})

/** A rate of one nano-USD a token: amounts are the tokens. */
const RATE_CARD = { version: '1', inputTokens: 1_000_000n, cachedInputTokens: 0n, outputTokens: 0n, audioMilliseconds: 0n }
const used = (inputTokens: number): Quantities => ({ inputTokens, cachedInputTokens: 0, outputTokens: 0, audioMilliseconds: 0 })

/** Two organizations on one store, and what was promised to their callers. */
class Run {
  readonly store = new MemoryDocumentStore()
  readonly clock = new ManualClock()
  readonly #ids = idSource(this.clock)
  readonly #holds: string[] = []
  readonly organizations: string[] = []
  readonly outcomes = new Map<string, HoldOutcome>()
  readonly credits = new Map<string, { readonly id: string; readonly sequence: number }>()
  readonly processes: BillingDeps[] = [0, 1].map(() => openBilling(this.store, this.clock, this.#ids))

  /** The organizations use the same hold ids: neither may notice. */
  #holdId(slot: number): string {
    this.#holds[slot] ??= this.#ids('hold')
    return this.#holds[slot]
  }

  async execute(deps: BillingDeps, command: Command): Promise<void> {
    if (command.kind === 'reap') return reapHolds(deps, new AbortController().signal)
    const organizationId = this.organizations[command.org]!
    const principal = { organizationId, apiKeyId: 'key_1' } as Parameters<typeof placeHold>[1]
    if (command.kind === 'read') return deps.pump.drain(organizationId)
    if (command.kind === 'credit') {
      const { entry } = await creditWallet(deps, {
        kind: command.topUp ? 'top_up' : 'adjustment',
        organizationId,
        amount: BigInt(command.amount),
        reference: `r${command.reference}`,
      })
      const key = `${organizationId} r${command.reference}`
      expect({ id: entry._id, sequence: entry.sequence }).toEqual(this.credits.get(key) ?? { id: entry._id, sequence: entry.sequence })
      this.credits.set(key, { id: entry._id, sequence: entry.sequence })
      return
    }
    const id = this.#holdId(command.slot)
    if (command.kind === 'place') {
      const { ttlSeconds } = command
      const ceiling = used(command.tokens)
      const call = { operation: 'embedding', modelId: 'm', requestId: 'req_1', rateCard: RATE_CARD } as const
      const hasEnded = this.outcomes.has(`${organizationId} ${id}`)
      await placeHold(deps, principal, { id, ...call, ceiling, ttlSeconds })
      expect(hasEnded).toBe(false)
    } else if (command.kind === 'dispatch') await dispatchHold(deps, principal, id, used(command.tokens))
    else if (command.kind === 'checkpoint') await checkpointHold(deps, principal, id, used(command.tokens), 20)
    else {
      const outcome =
        command.kind === 'settle'
          ? await settleHold(deps, principal, id, used(command.tokens), 'counted')
          : await voidHold(deps, principal, id)
      const key = `${organizationId} ${id}`
      expect(outcome).toEqual(this.outcomes.get(key) ?? outcome)
      this.outcomes.set(key, outcome)
    }
  }

  /** The old objects are not stopped: what they had under way goes on against the store, as a process that is slow to die would. */
  crash(): BillingDeps {
    this.processes.shift()
    this.processes.push(openBilling(this.store, this.clock, this.#ids))
    return this.processes.at(-1)!
  }
}

describe('the ledger', () => {
  it('keeps its laws whatever calls, failures, lost answers and crashes come', { timeout: 600_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
        const run = new Run()
        for (const credit of [100n, 150n]) run.organizations.push((await fundedOrganization(run.processes[0]!, credit)).organizationId)
        for (const { commands, fault, afterwards } of steps) {
          if (fault) run.store.failCall(fault.nth, fault.effect)
          const results = await Promise.allSettled(commands.map(({ process, command }) => run.execute(run.processes[process]!, command)))
          for (const result of results) if (result.status === 'rejected' && !(result.reason instanceof KisError)) throw result.reason
          run.store.healFaults()
          if (afterwards === 'crash') run.crash()
          if (afterwards.startsWith('wait')) run.clock.advance(Number(afterwards.split(' ')[1]) * 1_000)
          for (const organizationId of run.organizations) await audit(run.processes[0]!, organizationId)
        }

        const deps = run.crash()
        run.clock.advance(120_000)
        await reapHolds(deps, new AbortController().signal)
        for (const organizationId of run.organizations) {
          const before = await audit(deps, organizationId)
          await deps.pump.drain(organizationId)
          const after = await audit(deps, organizationId)
          expect(after).toEqual(before)
          expect(after.openHolds).toEqual([])
          expect((await deps.collections.wallets.findOne({ _id: organizationId }))!.outbox).toEqual([])
          for (const [key, credit] of run.credits)
            if (key.startsWith(organizationId)) expect(after.entries[credit.sequence - 1]!._id).toBe(credit.id)
          for (const [key, outcome] of run.outcomes) {
            if (!key.startsWith(organizationId)) continue
            const charges = after.entries.filter((entry) => entry.reference === outcome.id).map((entry) => balanceChange(entry.postings))
            expect(charges.reduce((sum, charge) => sum - charge, 0)).toBe(Number(outcome.charged))
          }
        }
      }),
      { numRuns: RUNS },
    )
  })
})
