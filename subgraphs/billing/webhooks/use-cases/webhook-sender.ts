import { claimSeen, releaseAllLeases, renewLease } from '../../../common/documents/jobs.ts'
import { FairSemaphore } from '../../../common/process/fair-semaphore.ts'
import { wakeUp } from '../../../common/process/wake-up.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { DisabledReason, WebhookDelivery, WebhookEndpoint, WebhookLane } from '../domain/records.ts'
import { retryWaitMs } from '../domain/retry.ts'
import { deliver, EndpointForbidden, type Outcome } from './deliver.ts'
import { purgeQueue } from './endpoints.ts'

/** Concurrent requests of one process to one endpoint. */
const MAX_PER_ENDPOINT = 4
/** Concurrent webhook requests of one process: half of all its outgoing requests. Organizations share them. */
const MAX_IN_FLIGHT = 32
/** Endpoints with pending events that one round checks. */
const MAX_LOOKED_AT = 100
/** Limit of consecutive events of one subject, before other subjects are served. */
const MAX_IN_A_ROW = 20
/** Interval between checks of a queue that was not woken. */
const IDLE_MS = 1_000
/** An endpoint that has accepted nothing for this long is switched off: five days, longer than one event is tried. */
const MAX_FAILING_MS = 5 * 86_400_000
/** Attempts stored for one delivery. */
const MAX_STORED_ATTEMPTS = 20

/**
 * Sends queued deliveries. A lane is leased while one of its events is sent, so that the next one waits for it, in any
 * process. Different lanes run concurrently. If a process dies while sending, the event is sent again with the same id.
 */
export class WebhookSender {
  readonly #deps: BillingDeps
  readonly #wakeUp = wakeUp()
  readonly #inFlight = new Map<Promise<void>, string>()
  readonly #permits = new FairSemaphore(MAX_IN_FLIGHT)
  #after = ''

  constructor(deps: BillingDeps) {
    this.#deps = deps
  }

  wake(): void {
    this.#wakeUp.wake()
  }

  /**
   * Runs until the signal aborts, which also ends running requests. `isExclusive`: no other process uses the store, so
   * leases found at the start belong to dead workers.
   */
  async run(isExclusive: boolean, signal: AbortSignal): Promise<void> {
    const { collections, clock, log } = this.#deps
    if (isExclusive)
      await releaseAllLeases(collections.webhookLanes, clock).catch((error) =>
        log.warn({ err: error }, 'leases of webhooks could not be released; they expire by themselves'),
      )
    while (!signal.aborted) {
      await this.sendDue(signal).catch((error) => {
        if (!signal.aborted) log.warn({ err: error }, 'webhooks could not be sent; they are tried again')
      })
      await this.#wakeUp.wait(IDLE_MS, signal)
    }
    await this.idle()
  }

  /** Starts to send what is due, within the limits of concurrency, in round robin over the endpoints. */
  async sendDue(signal: AbortSignal): Promise<void> {
    const { webhookLanes } = this.#deps.collections
    const first = this.#after
    let hasWrapped = false
    for (let looked = 0; looked < MAX_LOOKED_AT && !this.#permits.isFull && !signal.aborted; looked++) {
      const [lane] = await webhookLanes.find({ endpointId: { $gt: this.#after } }, { sort: { endpointId: 1 }, limit: 1 })
      if (!lane && (hasWrapped || this.#after === '')) break
      if (!lane) {
        hasWrapped = true
        this.#after = ''
        continue
      }
      if (hasWrapped && lane.endpointId > first) break
      this.#after = lane.endpointId
      await this.#sendTo(lane.endpointId, signal)
    }
  }

  /** Resolves when nothing is being sent. */
  async idle(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight.keys())
  }

  async #sendTo(endpointId: string, signal: AbortSignal): Promise<void> {
    const { collections, clock } = this.#deps
    const endpoint = await collections.webhookEndpoints.findOne({ _id: endpointId })
    if (!endpoint) return purgeQueue(this.#deps, endpointId)
    if (!endpoint.isActive) return
    const free = MAX_PER_ENDPOINT - [...this.#inFlight.values()].filter((id) => id === endpointId).length
    if (free <= 0) return
    const now = clock.now()
    const due = await collections.webhookLanes.find({ endpointId, 'job.dueAt': { $lte: now } }, { sort: { 'job.dueAt': 1 }, limit: free })
    for (const seen of due) {
      const release = this.#permits.tryAcquire(endpoint.organizationId)
      if (!release) return
      const lane = await claimSeen(collections.webhookLanes, seen, now).catch((error) => {
        release()
        throw error
      })
      if (!lane) {
        release()
        continue
      }
      const work = this.#work(lane, signal).finally(() => {
        this.#inFlight.delete(work)
        release()
        this.wake()
      })
      this.#inFlight.set(work, endpointId)
    }
  }

  /** Sends a lane's events. Never rejects: a lane that could not be released becomes due when its lease expires. */
  async #work(lane: WebhookLane, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps
    try {
      const waitMs = await this.#empty(lane, signal)
      if (waitMs === null) return
      await this.#releaseLane(lane, waitMs)
      if (waitMs > 0 && waitMs < IDLE_MS)
        clock.sleep(waitMs, signal).then(
          () => this.wake(),
          () => undefined,
        )
    } catch (error) {
      if (!signal.aborted) log.error({ err: error, endpointId: lane.endpointId }, 'a webhook could not be sent; it is tried again')
      // After a defect, the lane is not due at once.
      await this.#releaseLane(lane, signal.aborted ? 0 : IDLE_MS).catch(() => undefined)
    }
  }

  /**
   * Sends the lane's events in order. Returns the wait until the lane is due again, in milliseconds; null: it is empty,
   * or another process has it.
   */
  async #empty(lane: WebhookLane, signal: AbortSignal): Promise<number | null> {
    const { collections, clock } = this.#deps
    let { revision } = lane
    for (let sent = 0; sent < MAX_IN_A_ROW; ) {
      const [head] = await collections.webhookDeliveries.find({ queuedIn: lane._id }, { sort: { position: 1 }, limit: 1 })
      if (!head) {
        const { _id, job } = lane
        if (await collections.webhookLanes.findOneAndDelete({ _id, revision, 'job.lease': job.lease })) return null
        const current = await collections.webhookLanes.findOne({ _id, 'job.lease': job.lease })
        if (!current) return null
        revision = current.revision
        continue
      }
      if (sent++ > 0 && !(await renewLease(collections.webhookLanes, clock, lane))) return null
      const waitMs = await this.#send(head, signal)
      if (waitMs !== null) return waitMs
    }
    return 0
  }

  /** Sends a delivery. Returns how long its subject must wait, in milliseconds; null: the next event may be sent. */
  async #send(delivery: WebhookDelivery, signal: AbortSignal): Promise<number | null> {
    const { collections, retryBackoffMs } = this.#deps
    const endpoint = await collections.webhookEndpoints.findOne({ _id: delivery.endpointId })
    if (!endpoint?.isActive) return IDLE_MS
    const event = await collections.webhookEvents.findOne({ _id: delivery.eventId })
    if (!event) {
      await collections.webhookDeliveries.findOneAndDelete({ _id: delivery._id })
      return null
    }
    const outcome = await deliver(this.#deps, endpoint, event, signal).catch((error: unknown) => {
      if (error instanceof EndpointForbidden) return null
      throw error
    })
    if (outcome === null) {
      await this.#disable(endpoint, 'residency')
      return IDLE_MS
    }
    const failures = delivery.tries + 1
    const isAccepted = outcome.attempt.error === null
    const waitMs = isAccepted ? null : retryWaitMs(failures, retryBackoffMs, outcome.retryAfterMs, Math.random())
    await this.#record(delivery, outcome, isAccepted ? 'delivered' : waitMs === null ? 'failed' : 'pending')
    await this.#judge(endpoint, outcome, isAccepted)
    return waitMs
  }

  async #record(
    { _id, tries, attempts, queuedIn }: WebhookDelivery,
    { attempt }: Outcome,
    status: WebhookDelivery['status'],
  ): Promise<void> {
    const latest = [...attempts, attempt].slice(-MAX_STORED_ATTEMPTS)
    await this.#deps.collections.webhookDeliveries.findOneAndUpdate(
      { _id, queuedIn: queuedIn!, tries },
      { $set: { status, tries: tries + 1, attempts: latest }, ...(status !== 'pending' && { $unset: { queuedIn: '' } }) },
    )
  }

  /** Applies the outcome to the endpoint. */
  async #judge(endpoint: WebhookEndpoint, { attempt, isGone }: Outcome, isAccepted: boolean): Promise<void> {
    const { collections } = this.#deps
    const { _id, failingSince } = endpoint
    if (isGone) return this.#disable(endpoint, 'gone')
    if (isAccepted) {
      if (failingSince) await collections.webhookEndpoints.findOneAndUpdate({ _id }, { $set: { failingSince: null } })
    } else if (!failingSince) {
      await collections.webhookEndpoints.findOneAndUpdate({ _id, failingSince: null }, { $set: { failingSince: attempt.at } })
    } else if (attempt.at.getTime() - failingSince.getTime() > MAX_FAILING_MS) {
      await this.#disable(endpoint, 'failing')
    }
  }

  async #disable({ _id, organizationId }: WebhookEndpoint, reason: DisabledReason): Promise<void> {
    const { collections, clock, log } = this.#deps
    log.warn({ endpointId: _id, organizationId, reason }, 'a webhook endpoint is switched off')
    await collections.webhookEndpoints.findOneAndUpdate(
      { _id, isActive: true },
      { $set: { isActive: false, disabledReason: reason, disabledAt: clock.now() } },
    )
  }

  async #releaseLane({ _id, job }: WebhookLane, waitMs: number): Promise<void> {
    const { collections, clock } = this.#deps
    await collections.webhookLanes.findOneAndUpdate(
      { _id, 'job.lease': job.lease },
      { $set: { 'job.dueAt': new Date(clock.now().getTime() + waitMs), 'job.lease': null } },
    )
  }
}
