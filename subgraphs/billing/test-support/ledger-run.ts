import { expect } from 'vitest'
import { KisError } from '../../common/errors.ts'
import type { Principal } from '../../common/identity/principal.ts'
import type { DocumentStore } from '../../common/ports/document-store.ts'
import { idSource } from '../../common/process/ids.ts'
import { usageRecordIdOf } from '../ledger/domain/ids.ts'
import { balanceChange, isEnd } from '../ledger/domain/ledger.ts'
import { computePrice, MAX_NANO_USD, type Quantities, type Rates } from '../ledger/domain/money.ts'
import { computeWorstCase } from '../ledger/domain/rate-card.ts'
import type { CallHold } from '../ledger/domain/wallet.ts'
import { checkpointHold } from '../ledger/holds/checkpoint-hold.ts'
import { dispatchHold } from '../ledger/holds/dispatch-hold.ts'
import type { HoldOutcome } from '../ledger/holds/end-hold.ts'
import { endHoldsOf } from '../ledger/holds/end-holds-of.ts'
import { placeHold } from '../ledger/holds/place-hold.ts'
import { reapHolds } from '../ledger/holds/reap-holds.ts'
import { settleHold } from '../ledger/holds/settle-hold.ts'
import { voidHold } from '../ledger/holds/void-hold.ts'
import { creditWallet } from '../ledger/use-cases/credit-wallet.ts'
import { checkRateCard } from '../use-cases/checks.ts'
import type { BillingDeps } from '../use-cases/deps.ts'
import { type Audit, audit } from './audit.ts'
import { ProcessDied, ProcessStore } from './process-store.ts'
import { createPrincipal, fundedOrganization, ManualClock, openBilling } from './world.ts'

/** A request to billing. Calls are identified by their slot, credits by their reference. */
export type Command =
  | {
      readonly kind: 'place'
      readonly org: number
      readonly slot: number
      /** A new call, in place of the slot's last one. */
      readonly isNew: boolean
      readonly quantities: Quantities
      readonly isDear: boolean
      readonly ttlSeconds: number
      readonly holder: string | null
    }
  | { readonly kind: 'dispatch' | 'checkpoint' | 'settle'; readonly org: number; readonly slot: number; readonly quantities: Quantities }
  | { readonly kind: 'void'; readonly org: number; readonly slot: number }
  | { readonly kind: 'credit'; readonly org: number; readonly reference: number; readonly amount: bigint; readonly isTopUp: boolean }
  | { readonly kind: 'pump'; readonly org: number }
  | { readonly kind: 'reap' }
  | { readonly kind: 'end holder'; readonly holder: string }

/**
 * Fractions of a nano-USD for each token, so that rounding shows. With the expensive card, a few tokens exceed any
 * balance.
 */
const CHEAP = {
  version: '1',
  ...createRates(700_000n, 70_000n, 2_500_000n),
  tiers: [{ aboveInputTokens: 60, ...createRates(900_000n, 90_000n, 3_500_000n) }],
}
const DEAR = { version: '2', ...createRates(MAX_NANO_USD, MAX_NANO_USD, MAX_NANO_USD), tiers: [] }
const CREDITS = [200n, 300n]
export const PROCESSES = 3

/** What was promised about one call, by answers that its caller has received. */
interface Promised {
  amount?: bigint
  /** The furthest progress of the call that billing has acknowledged. */
  progress?: Quantities
  outcome?: HoldOutcome
}

interface Process {
  readonly store: ProcessStore
  readonly deps: BillingDeps
}

/**
 * Two organizations on one store that several processes of billing serve, with an independent record of what their
 * callers were told. After every step both are checked: the documents by `audit`, the promises here.
 */
export class LedgerRun {
  readonly clock = new ManualClock()
  readonly #shared: DocumentStore
  readonly #ids = idSource(this.clock)
  readonly #organizations: string[] = []
  readonly #slots: string[] = []
  readonly #calls = new Map<string, Promised>()
  readonly #credits = new Map<string, { readonly amount: bigint; readonly kind: string; readonly id: string; readonly sequence: number }>()
  #audits: readonly Audit[] = []
  #started = 0
  #processes: Process[]

  private constructor(shared: DocumentStore) {
    this.#shared = shared
    this.#processes = Array.from({ length: PROCESSES }, () => this.#start())
  }

  static async start(shared: DocumentStore): Promise<LedgerRun> {
    const run = new LedgerRun(shared)
    for (const credit of CREDITS) run.#organizations.push((await fundedOrganization(run.#processes[0]!.deps, credit)).organizationId)
    run.#audits = await run.#auditAll()
    return run
  }

  process(number: number): Process {
    return this.#processes[number]!
  }

  /** kill -9, followed by a start. */
  restart(number: number): void {
    this.#processes[number]!.store.kill()
    this.#processes[number] = this.#start()
  }

  /** Runs the commands concurrently, each in one process, and checks every rule. Dead processes start again. */
  async step(commands: readonly { readonly process: number; readonly command: Command }[]): Promise<void> {
    const results = await Promise.allSettled(commands.map(({ process, command }) => this.#execute(this.process(process).deps, command)))
    for (const result of results)
      if (result.status === 'rejected' && !(result.reason instanceof KisError) && !(result.reason instanceof ProcessDied))
        throw result.reason
    for (const [number, { store }] of this.#processes.entries()) {
      store.heal()
      if (store.isDead) this.restart(number)
    }
    const before = this.#audits
    this.#audits = await this.#auditAll()
    for (const [org, after] of this.#audits.entries()) {
      const earlier = before[org]!
      expect(after.entries.slice(0, earlier.entries.length), 'I7: entries are only added').toEqual(earlier.entries)
      const isConcerned = commands.some(({ command }) => !('org' in command) || command.org === org)
      if (!isConcerned) expect(after, 'I10: nothing happens to another organization').toEqual(earlier)
      this.#checkPromises(org)
    }
  }

  /** The last live process ends all open holds, and everything must be in its final state. */
  async end(): Promise<void> {
    for (let number = 0; number < PROCESSES; number++) this.restart(number)
    const { deps } = this.process(0)
    // Longer than the longest hold, from the latest time that the clock has shown.
    this.clock.advance(this.clock.latest - this.clock.now().getTime() + 120_000)
    await this.step([{ process: 0, command: { kind: 'reap' } }])
    for (const [org, organizationId] of this.#organizations.entries()) {
      await deps.pump.drain(organizationId)
      const after = await audit(deps, organizationId)
      expect(after, 'I7: copying entries out of the wallet changes nothing').toEqual(this.#audits[org])
      expect(after.openHolds, 'no hold is left').toEqual([])
      expect((await deps.collections.wallets.findOne({ _id: organizationId }))!.outbox, 'the outbox is empty').toEqual([])
    }
  }

  #start(): Process {
    const store = new ProcessStore(this.#shared)
    // Half of them write ids as the version before did.
    const isExclusive = this.#started++ % 2 === 0
    return { store, deps: { ...openBilling(store, this.clock, this.#ids), isExclusive } }
  }

  /** In a process of its own, so that the check does not trigger planned faults. */
  async #auditAll(): Promise<readonly Audit[]> {
    const { deps } = this.#start()
    return Promise.all(this.#organizations.map((organizationId) => audit(deps, organizationId)))
  }

  async #execute(deps: BillingDeps, command: Command): Promise<void> {
    if (command.kind === 'reap') return reapHolds(deps, new AbortController().signal)
    if (command.kind === 'end holder') return void (await endHoldsOf(deps, command.holder))
    const organizationId = this.#organizations[command.org]!
    if (command.kind === 'pump') return deps.pump.drain(organizationId)
    if (command.kind === 'credit') return this.#credit(deps, organizationId, command)
    const principal = createPrincipal(organizationId)
    // The organizations use the same hold ids. Neither may notice.
    if (!this.#slots[command.slot] || (command.kind === 'place' && command.isNew)) this.#slots[command.slot] = this.#ids('hold')
    const id = this.#slots[command.slot]!
    const key = `${organizationId} ${id}`
    const promised = this.#calls.get(key) ?? {}
    this.#calls.set(key, promised)
    const isKnown = promised.amount !== undefined
    try {
      await this.#call(deps, principal, id, command, promised)
    } catch (error) {
      const isMissing = error instanceof KisError && error.code === 'not_found'
      expect(isMissing && isKnown, 'I8: an acknowledged hold is found').toBe(false)
      throw error
    }
  }

  async #call(
    deps: BillingDeps,
    principal: Principal,
    id: string,
    command: Exclude<Command, { readonly kind: 'credit' | 'pump' | 'reap' | 'end holder' }>,
    promised: Promised,
  ): Promise<void> {
    if (command.kind === 'place') {
      const hasEnded = promised.outcome !== undefined
      const before = promised.amount
      const rateCard = command.isDear ? DEAR : CHEAP
      const amount = computeWorstCase(checkRateCard(rateCard, 'rateCard'), command.quantities)
      const call = { operation: 'chat_completion', modelId: 'm', requestId: 'req_1', rateCard, ceiling: command.quantities } as const
      await placeHold(deps, principal, { id, ...call, ttlSeconds: command.ttlSeconds, holder: command.holder })
      expect(hasEnded, 'I4: what has ended is not placed again').toBe(false)
      expect(amount, 'I6: the id stands for one amount').toBe(before ?? amount)
      promised.amount = amount
    } else if (command.kind === 'dispatch') {
      const { checkpoint } = (await dispatchHold(deps, principal, id, command.quantities)) as CallHold
      this.#progressed(promised, checkpoint)
    } else if (command.kind === 'checkpoint') {
      const { checkpoint } = (await checkpointHold(deps, principal, id, command.quantities, 20)) as CallHold
      this.#progressed(promised, checkpoint)
    } else {
      const outcome =
        command.kind === 'settle'
          ? await settleHold(deps, principal, id, command.quantities, 'counted')
          : await voidHold(deps, principal, id)
      expect(outcome, 'I4: the first outcome stands').toEqual(promised.outcome ?? outcome)
      promised.outcome = outcome
    }
  }

  async #credit(deps: BillingDeps, organizationId: string, { amount, isTopUp, reference }: Command & { readonly kind: 'credit' }) {
    const key = `${organizationId} r${reference}`
    const kind = isTopUp ? 'top_up' : 'adjustment'
    const first = this.#credits.get(key)
    const credit = { kind, organizationId, amount, reference: `r${reference}` } as const
    try {
      const { entry } = await creditWallet(deps, credit)
      // Another process may have got the answer meanwhile.
      const known = this.#credits.get(key) ?? { amount, kind, id: entry._id, sequence: entry.sequence }
      expect({ amount, kind, id: entry._id, sequence: entry.sequence }, 'I6: a repeated credit gives the first one').toEqual(known)
      this.#credits.set(key, known)
    } catch (error) {
      const isConflict = error instanceof KisError && error.code === 'idempotency_conflict'
      if (first) expect(isConflict && first.amount === amount && first.kind === kind, 'I6: a repeat is no conflict').toBe(false)
      throw error
    }
  }

  #progressed(promised: Promised, progress: Quantities): void {
    if (!promised.progress || computePrice(progress, CHEAP) > computePrice(promised.progress, CHEAP)) promised.progress = progress
  }

  #checkPromises(org: number): void {
    const { entries, usageRecords, openHolds } = this.#audits[org]!
    const organizationId = this.#organizations[org]!
    for (const [key, { id, sequence, amount }] of this.#credits) {
      if (!key.startsWith(organizationId)) continue
      const entry = entries[sequence - 1]
      expect(entry?._id, 'I8: an acknowledged credit is in the ledger').toBe(id)
      expect(BigInt(balanceChange(entry!.postings)), 'I8: with its amount').toBe(amount)
    }
    const ends = new Map(entries.filter(isEnd).map((entry) => [entry.reference, entry]))
    const recordsById = new Map(usageRecords.map((record) => [record._id, record]))
    const placed = new Map(entries.filter(({ kind }) => kind === 'hold').map((entry) => [entry.reference, entry]))
    for (const [key, { amount, progress, outcome }] of this.#calls) {
      if (!key.startsWith(organizationId)) continue
      const id = key.slice(organizationId.length + 1)
      const end = ends.get(id)
      if (amount !== undefined)
        expect(BigInt(placed.get(id)?.postings.held ?? -1), 'I8: an acknowledged hold is in the ledger').toBe(amount)
      if (outcome) {
        expect(end && BigInt(-balanceChange(end.postings)), 'I8: an acknowledged end is in the ledger').toBe(outcome.charged)
      } else if (progress) {
        expect(openHolds.includes(id) || end !== undefined, 'I9: a dispatched call is open, or has ended').toBe(true)
        const record = end && recordsById.get(usageRecordIdOf(end))
        if (end?.kind !== 'expire' || (!record && computePrice(progress, CHEAP) === 0n)) continue
        expect(record?.source, 'I9: a call that nobody ended is estimated').toBe('estimated')
        expect(computePrice(record!.quantities, CHEAP), 'I9: by no less than its last checkpoint').toBeGreaterThanOrEqual(
          computePrice(progress, CHEAP),
        )
      }
    }
  }
}

function createRates(inputTokens: bigint, cachedInputTokens: bigint, outputTokens: bigint): Rates {
  return {
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens: inputTokens + cachedInputTokens,
    outputTokens,
    audioMilliseconds: 0n,
    searchUnits: 0n,
    pages: 0n,
  }
}
