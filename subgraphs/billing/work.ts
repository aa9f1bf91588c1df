import { keepErasing } from '../common/erasure/keep-erasing.ts'
import { pumpWebhooks } from '../common/events/pump-webhooks.ts'
import type { Clock } from '../common/process/clock.ts'
import { keepWorking } from '../common/process/keep-working.ts'
import { ownErasure } from './accounts/use-cases/erasures/erase-organization.ts'
import { endErasures } from './accounts/use-cases/erasures/erasures.ts'
import { reapHolds } from './ledger/holds/reap-holds.ts'
import { sweepSessions } from './sessions/use-cases/manage-sessions.ts'
import type { BillingDeps } from './use-cases/deps.ts'
import { ownInbox } from './webhooks/use-cases/feeds.ts'
import { ledgerSource } from './webhooks/use-cases/ledger-source.ts'
import { sweepWebhooks } from './webhooks/use-cases/sweep-webhooks.ts'
import type { WebhookSender } from './webhooks/use-cases/webhook-sender.ts'

/** How long after its expiry a hold may still reserve money. */
const REAP_INTERVAL_MS = 5_000
/**
 * If the clock advances this much more than real time, it was set. By then holds that are renewed every few seconds
 * would look expired.
 */
const CLOCK_SET_MS = 10_000
/** Holds in use are renewed within this time: inference's time to live for its holds. */
const RENEWED_WITHIN_MS = 45_000
/** How often old webhook data is deleted. */
const WEBHOOK_SWEEP_MS = 60_000
/** How soon an erasure of which nothing is left has ended. */
const ERASURE_END_MS = 5_000
/** How long a session that is over may stay on lists. */
const SESSION_SWEEP_MS = 60_000

/** Billing's background work, until the signal aborts. `isExclusive`: no other process uses the store. */
export async function work(deps: BillingDeps, sender: WebhookSender, isExclusive: boolean, signal: AbortSignal): Promise<void> {
  const { pump, log } = deps
  await Promise.all([
    pump
      .resume(signal)
      .catch((error) => log.warn({ err: error }, 'outboxes of an earlier run could not be emptied; the next write of each wallet does it')),
    keepReaping(deps, signal),
    sender.run(isExclusive, signal),
    pumpWebhooks(ledgerSource(deps), ownInbox(deps), deps, signal),
    keepSweepingWebhooks(deps, signal),
    keepSweepingSessions(deps, signal),
    keepErasing(ownErasure(deps), signal),
    keepEndingErasures(deps, signal),
  ])
}

async function keepEndingErasures(deps: BillingDeps, signal: AbortSignal): Promise<void> {
  const { clock, log } = deps
  const failed = (error: unknown) => log.warn({ err: error }, 'erasures could not be ended')
  await keepWorking(() => endErasures(deps, signal), { clock, pauseMs: ERASURE_END_MS, failed }, signal)
}

async function keepSweepingWebhooks(deps: BillingDeps, signal: AbortSignal): Promise<void> {
  const { clock, log } = deps
  let after = ''
  const round = async () => {
    after = await sweepWebhooks(deps, after)
  }
  const failed = (error: unknown) => log.warn({ err: error }, 'old webhook data could not be deleted')
  await keepWorking(round, { clock, pauseMs: WEBHOOK_SWEEP_MS, failed }, signal)
}

async function keepSweepingSessions(deps: BillingDeps, signal: AbortSignal): Promise<void> {
  const { clock, log } = deps
  const failed = (error: unknown) => log.warn({ err: error }, 'sessions that are over could not be deleted')
  await keepWorking(() => sweepSessions(deps), { clock, pauseMs: SESSION_SWEEP_MS, failed }, signal)
}

async function keepReaping(deps: BillingDeps, signal: AbortSignal): Promise<void> {
  const { clock, log } = deps
  let offset = clockOffset(clock)
  const jump = () => {
    const jumpMs = clockOffset(clock) - offset
    offset += jumpMs
    return jumpMs
  }
  const round = async () => {
    for (let jumpMs = jump(); jumpMs > CLOCK_SET_MS; jumpMs = jump()) {
      log.warn({ jumpMs }, 'the clock was set forward: holds of running calls are given time to be renewed')
      await clock.sleep(RENEWED_WITHIN_MS, signal)
    }
    await reapHolds(deps, signal)
  }
  const failed = (error: unknown) => log.warn({ err: error }, 'expired holds could not be ended')
  await keepWorking(round, { clock, pauseMs: REAP_INTERVAL_MS, failed }, signal)
}

/** The difference between the clock and evenly passing time. It changes only when the clock is set. */
function clockOffset(clock: Clock): number {
  return clock.now().getTime() - performance.now()
}
