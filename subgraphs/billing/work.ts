import { erasing } from '../common/erasure/erasing.ts'
import { webhookPump } from '../common/events/webhook-events.ts'
import type { Clock } from '../common/process/clock.ts'
import type { Task, Tasks } from '../common/process/tasks.ts'
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
/** Interval of the check for erasures of which nothing is left. */
const ERASURE_END_MS = 5_000
/** How long an expired session may stay on lists. */
const SESSION_SWEEP_MS = 60_000

/** Runs billing's background work until the signal aborts. */
export async function work(deps: BillingDeps, sender: WebhookSender, tasks: Tasks, signal: AbortSignal): Promise<void> {
  const { pump, log, isExclusive } = deps
  const resumed = pump
    .resume(signal)
    .catch((error) => log.warn({ err: error }, 'outboxes of an earlier run could not be emptied; the next write of each wallet does it'))
  await Promise.all([resumed, sender.run(isExclusive, signal), tasks.run(tableOf(deps), signal)])
}

function tableOf(deps: BillingDeps): readonly Task[] {
  let swept = ''
  const sweepSomeWebhooks = async () => {
    swept = await sweepWebhooks(deps, swept)
  }
  return [
    { name: 'end_expired_holds', everyMs: REAP_INTERVAL_MS, run: holdReaper(deps) },
    { name: 'sweep_webhooks', everyMs: WEBHOOK_SWEEP_MS, isShared: true, run: sweepSomeWebhooks },
    { name: 'sweep_sessions', everyMs: SESSION_SWEEP_MS, isShared: true, run: () => sweepSessions(deps) },
    { name: 'end_erasures', everyMs: ERASURE_END_MS, isShared: true, run: (signal) => endErasures(deps, signal) },
    erasing(ownErasure(deps)),
    webhookPump(ledgerSource(deps), ownInbox(deps)),
  ]
}

function holdReaper(deps: BillingDeps): Task['run'] {
  const { clock, log } = deps
  let offset = clockOffset(clock)
  const jump = () => {
    const jumpMs = clockOffset(clock) - offset
    offset += jumpMs
    return jumpMs
  }
  return async (signal) => {
    for (let jumpMs = jump(); jumpMs > CLOCK_SET_MS; jumpMs = jump()) {
      log.warn({ jumpMs }, 'the clock was set forward: holds of running calls get time to be renewed')
      await clock.sleep(RENEWED_WITHIN_MS, signal)
    }
    await reapHolds(deps, signal)
  }
}

/**
 * Returns the difference between the clock and evenly passing time. The difference changes only when the clock is set.
 */
function clockOffset(clock: Clock): number {
  return clock.now().getTime() - performance.now()
}
