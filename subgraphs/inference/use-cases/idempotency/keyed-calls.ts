import { KisError } from '../../../common/errors.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { sha256 } from '../../domain/idempotency-key.ts'
import type { CallContext, HoldDeps } from '../deps.ts'
import { detachedWrite, HOLD_TTL_SECONDS, neverPlaced } from '../money/hold.ts'
import type { KeyedCall } from '../tables.ts'
import { Interrupted, type KeyedOutcome, lost, type PackedResponse, unpackOutcome } from './keyed-outcome.ts'
import { KeyedRun, LEASE_MS, LEASE_RENEW_MS } from './keyed-run.ts'

/** How long a key belongs to its call, from the start of the call. */
const RETENTION_MS = 24 * 3_600_000
/**
 * Time from the end of a lease until billing has certainly resolved the hold. The process was gone at least
 * `LEASE_MS - LEASE_RENEW_MS` before the lease ended, it renewed the hold last before that, and billing looks for
 * expired holds every 5 s.
 */
const HOLD_GRACE_MS = HOLD_TTL_SECONDS * 1_000 - (LEASE_MS - LEASE_RENEW_MS) + 10_000
/**
 * Limits of the retry time that a repeat gets, which is as long as the call has taken so far. Clients wait no longer
 * than the upper limit. The lower limit prevents an immediate retry.
 */
const SHORTEST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 30_000
/** Most attempts at a claim while other callers free or claim the same key. */
const MAX_TRIES = 3
/** Calls that are read at once. Each may have a result of a megabyte. */
const PAGE_CALLS = 20
const ALWAYS_FREE = () => true

/** The outcome of an earlier call, with its charge. */
export interface Recorded {
  /** The id of the call. */
  readonly id: string
  readonly outcome: KeyedOutcome
  readonly cost: bigint
}

/** A call that is a step of a run. If this process is gone, another continues the run. */
export interface StepClaim {
  readonly runId: string
  /** Unique in the run. The charge is reported under its first part, up to a `/`. */
  readonly path: string
  /** Reports whether an interrupted call costs nothing, because another process repeats it. */
  readonly isFree: () => boolean
}

type OwnDeps = Pick<HoldDeps, 'collections' | 'billing' | 'background' | 'holder' | 'clock' | 'log'>

/**
 * The calls with an idempotency key: decides which process runs a call and what a repeat gets. Disposing ends the calls
 * whose callers have disconnected.
 */
export class KeyedCalls implements Disposable {
  readonly #deps: OwnDeps
  readonly #isExclusive: boolean
  readonly #running = new Set<string>()
  readonly #stopping = new AbortController()

  /** `isExclusive`: no other process uses these stores, so a call that does not run here does not run. */
  constructor(deps: OwnDeps, isExclusive: boolean) {
    this.#deps = deps
    this.#isExclusive = isExclusive
  }

  /** Aborts when the process stops. */
  get signal(): AbortSignal {
    return this.#stopping.signal
  }

  [Symbol.dispose](): void {
    this.#stopping.abort()
  }

  /**
   * Claims a call. Returns the run of the call, which the caller must end, or the recorded outcome of an earlier run. A
   * key belongs to the API key that sends it. `streamId`: the stream by which repeats can follow the call.
   * @throws {CallInProgress} the call is in progress.
   * @throws {KisError} `idempotency_conflict`: the key belongs to another request.
   * @throws {KisError} `service_unavailable`: it cannot be known whether the call is in progress.
   */
  async claim(context: CallContext, key: string, digest: string, streamId?: string): Promise<KeyedRun | Recorded> {
    const { apiKeyId, organizationId } = context.caller
    const call = { _id: `${apiKeyId}:${sha256(key)}`, organizationId, digest, ...(streamId && { streamId }) }
    return this.#claim(context, call, ALWAYS_FREE)
  }

  /** Claims a step of a run as `claim` does. An interrupted step is repeated and not charged. */
  claimStep(context: CallContext, { runId, path, isFree }: StepClaim): Promise<KeyedRun | Recorded> {
    const { organizationId } = context.caller
    const step = { runId, path }
    // No idempotency key has a space.
    return this.#claim(context, { _id: `step ${runId} ${path}`, organizationId, digest: '', step }, isFree)
  }

  /**
   * Returns the charges of a run's calls in nano-USD, by the first part of their paths. Ends calls whose process is
   * gone.
   * @throws {KisError} `idempotency_conflict`: a call is in progress.
   */
  async listCharges(context: CallContext, runId: string): Promise<ReadonlyMap<string, bigint>> {
    const { collections, clock } = this.#deps
    const charges = new Map<string, bigint>()
    for (let after = ''; ; ) {
      const page = await collections.keyedCalls.find({ 'step.runId': runId, _id: { $gt: after } }, { sort: { _id: 1 }, limit: PAGE_CALLS })
      for (const call of page) {
        const now = clock.now()
        if (this.#runs(call, now)) throw callInProgress(0)
        const ended = call.state === 'ended' ? null : await this.#takeOver(call, now, context, ALWAYS_FREE)
        if (ended === undefined) throw callInProgress(0)
        if (ended instanceof KeyedRun) await ended.fail(new Interrupted())
        const cost = ended === null ? BigInt(call.cost!) : ended instanceof KeyedRun ? ended.charged : ended.cost
        const [name = ''] = call.step!.path.split('/')
        charges.set(name, (charges.get(name) ?? 0n) + cost)
      }
      if (page.length < PAGE_CALLS) return charges
      after = page.at(-1)!._id
    }
  }

  async #claim(
    context: CallContext,
    { _id, organizationId, digest, step, streamId }: Pick<KeyedCall, '_id' | 'organizationId' | 'digest' | 'step' | 'streamId'>,
    isFree: () => boolean,
  ): Promise<KeyedRun | Recorded> {
    const { collections, clock } = this.#deps
    const calls = collections.keyedCalls
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const now = clock.now()
      const fresh: KeyedCall = {
        _id,
        organizationId,
        digest,
        state: 'running',
        token: KeyedRun.newToken(),
        leaseUntil: later(now, LEASE_MS),
        holdId: null,
        outcome: null,
        cost: null,
        startedAt: now,
        expiresAt: later(now, RETENTION_MS),
        ...(step && { step }),
        ...(streamId && { streamId }),
      }
      if (await this.#insert(fresh)) return this.#run(fresh, isFree)
      const found = await calls.findOne({ _id })
      if (found && found.expiresAt <= now && !this.#runs(found, now)) {
        await calls.findOneAndDelete({ _id, token: found.token })
      } else if (found) {
        if (found.digest !== digest) throw reused()
        if (found.state === 'ended') return recorded(found)
        if (this.#runs(found, now)) throw callInProgress(now.getTime() - found.startedAt.getTime(), found.streamId)
        const claimed = await this.#takeOver(found, now, context, isFree, streamId)
        if (claimed) return claimed
      }
    }
    throw callInProgress(SHORTEST_WAIT_MS)
  }

  /**
   * Charges the stored results of calls whose process died before it charged them. Repeats of the calls get the
   * results. Only a process that is alone with the store may call it. A call that cannot be charged is logged and
   * skipped.
   * @throws {KisError} `service_unavailable`: billing or the store did not respond, and some calls are not charged.
   */
  async chargeAnswered(signal: AbortSignal): Promise<void> {
    const { collections, log } = this.#deps
    for (let after = ''; ; ) {
      const page = await collections.keyedCalls.find({ state: 'answered', _id: { $gt: after } }, { sort: { _id: 1 }, limit: PAGE_CALLS })
      for (const call of page) {
        await this.#charge(call, signal).catch((error) => {
          if (signal.aborted || (error instanceof KisError && error.code === 'service_unavailable')) throw error
          log.error({ err: error, holdId: call.holdId }, 'a response that an earlier process stored is not charged')
        })
      }
      if (page.length < PAGE_CALLS) return
      after = page.at(-1)!._id
    }
  }

  /** Returns the response of a call whose repeats get it as bytes. Null: there is none. */
  async findResponse(organizationId: string, id: string): Promise<PackedResponse | null> {
    const { collections, clock } = this.#deps
    const call = await collections.keyedCalls.findOne({ _id: id, organizationId, state: 'ended', expiresAt: { $gt: clock.now() } })
    return call?.outcome ? ((await unpackOutcome(call.outcome)).response ?? null) : null
  }

  /** Removes the records of expired keys, at most 1,000 per call, and returns their number. */
  async removeExpired(): Promise<number> {
    const { collections, clock } = this.#deps
    return collections.keyedCalls.deleteMany({ expiresAt: { $lte: clock.now() } })
  }

  async #insert(call: KeyedCall): Promise<boolean> {
    try {
      await this.#deps.collections.keyedCalls.insertOne(call)
      return true
    } catch (error) {
      if (error instanceof DuplicateKey) return false
      throw error
    }
  }

  #run(call: KeyedCall, isFree: () => boolean): KeyedRun {
    this.#running.add(call.token)
    return new KeyedRun(this.#deps.collections.keyedCalls, call, this.#deps, () => this.#running.delete(call.token), isFree)
  }

  async #charge(call: KeyedCall, signal: AbortSignal): Promise<void> {
    const now = this.#deps.clock.now()
    const context = call.holdId === null || this.#runs(call, now) ? null : await this.#restoreContext(call, signal)
    if (!context) return
    const ended = await this.#takeOver(call, now, context, ALWAYS_FREE)
    if (ended instanceof KeyedRun) await ended.fail(new Interrupted())
  }

  /** Returns a context for writing the call's charge, or null when its organization or its run is gone. */
  async #restoreContext({ _id, organizationId, step, holdId }: KeyedCall, signal: AbortSignal): Promise<CallContext | null> {
    const { collections, billing } = this.#deps
    const ofRun = step && { _id: step.runId }
    const run = ofRun && ((await collections.workflowRuns.findOne(ofRun)) ?? (await collections.runs.findOne(ofRun)))
    const apiKeyId = step ? run?.apiKeyId : _id.split(':', 1)[0]
    const caller = apiKeyId === undefined ? null : await billing.findPrincipal(organizationId, apiKeyId, signal)
    return caller && { caller, requestId: holdId!, signal }
  }

  #runs({ token, leaseUntil, state }: KeyedCall, now: Date): boolean {
    return state !== 'ended' && (this.#isExclusive ? this.#running.has(token) : leaseUntil > now)
  }

  /**
   * Returns how long billing may still charge a call whose process is gone, in milliseconds. After that time billing
   * knows how the call ended.
   */
  #unjudgedMs({ step, state, holdId, leaseUntil, startedAt }: KeyedCall, now: Date): number {
    if (step || state !== 'running' || !holdId) return 0
    const { aloneSince } = this.#deps.holder
    if (aloneSince && startedAt < aloneSince) return 0
    const ms = leaseUntil.getTime() + HOLD_GRACE_MS - now.getTime()
    return this.#isExclusive ? Math.min(ms, SHORTEST_WAIT_MS) : ms
  }

  /** Continues a call whose process is gone. Returns undefined when another process was faster. */
  async #takeOver(
    found: KeyedCall,
    now: Date,
    context: CallContext,
    isFree: () => boolean,
    streamId?: string,
  ): Promise<KeyedRun | Recorded | undefined> {
    const { collections, billing } = this.#deps
    const unjudgedMs = this.#unjudgedMs(found, now)
    if (unjudgedMs > 0) throw callInProgress(unjudgedMs)
    const claimed = await collections.keyedCalls.findOneAndUpdate(
      { _id: found._id, token: found.token },
      { $set: { token: KeyedRun.newToken(), leaseUntil: later(now, LEASE_MS), ...(streamId && { streamId }) } },
    )
    if (!claimed) return undefined
    const run = this.#run(claimed, isFree)
    const { holdId } = claimed
    if (!holdId) return run
    try {
      if (claimed.outcome !== null) {
        const outcome = await unpackOutcome(claimed.outcome)
        const { quantities, source } = outcome.usage!
        const { charged, isOwn } = await detachedWrite(context, (bill) => billing.settleHold(holdId, quantities, source, bill))
        if (isOwn || charged > 0n) {
          const cost = run.charged + charged
          await run.end(cost)
          return { id: found._id, outcome, cost }
        }
        await run.discard()
        return run
      }
      const charged = await detachedWrite(context, (bill) => billing.voidHold(holdId, bill)).catch(neverPlaced)
      if (charged === 0n) return run
      const cost = run.charged + charged
      return { id: found._id, outcome: await run.endCharged(cost, lost(cost)), cost }
    } catch (error) {
      run.release()
      throw error
    }
  }
}

async function recorded(call: KeyedCall): Promise<Recorded> {
  const cost = BigInt(call.cost!)
  const outcome = call.outcome === null ? { usage: null, value: null, events: [], failure: lost(cost) } : await unpackOutcome(call.outcome)
  return { id: call._id, outcome, cost }
}

/** The error for a key that was sent with another request. */
export function reused(): KisError {
  return new KisError('idempotency_conflict', 'This idempotency key was sent with another request before.', { param: 'idempotencyKey' })
}

/**
 * The call with this idempotency key is in progress. `streamId`: the stream by which a repeat can follow the call, if
 * there is one.
 */
export class CallInProgress extends KisError {
  readonly streamId: string | undefined

  constructor(retryAfterMs: number, streamId?: string) {
    const message = 'The first request with this idempotency key is still in progress. Repeat the request for its outcome.'
    super('idempotency_conflict', message, { param: 'idempotencyKey', retryAfterMs, shouldRetry: true })
    this.streamId = streamId
  }
}

function callInProgress(waitMs: number, streamId?: string): CallInProgress {
  return new CallInProgress(Math.min(LONGEST_WAIT_MS, Math.max(SHORTEST_WAIT_MS, waitMs)), streamId)
}

function later(date: Date, ms: number): Date {
  return new Date(date.getTime() + ms)
}
