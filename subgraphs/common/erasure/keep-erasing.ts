import type { Clock } from '../process/clock.ts'
import { keepWorking } from '../process/keep-working.ts'
import type { Log } from '../process/log.ts'

/** How soon a deleted organization is looked at. */
const ROUND_MS = 5_000
/** While billing is away, the pauses grow up to this. */
const MAX_PAUSE_MS = 60_000
/** A part of the service that is starting may be away for this many rounds. */
const MAX_QUIET_FAILURES = 3
/**
 * What calls that began before the deletion may still write comes within this time: their tokens are valid for 60 s,
 * and clocks of two hosts may differ by 30 s.
 */
export const LATE_WRITES_MS = 120_000

/** An organization whose data is to be erased. */
export interface ErasedOrganization {
  readonly organizationId: string
  readonly deletedAt: Date
}

/** The deleted organizations that a subgraph has not erased yet. */
export interface ErasureQueue {
  /** The ones deleted first, at most a page. */
  list(signal: AbortSignal): Promise<readonly ErasedOrganization[]>
  /** Takes the organization from the queue. Idempotent. */
  finish(organizationId: string, signal: AbortSignal): Promise<void>
}

export interface Erasure {
  readonly queue: ErasureQueue
  /** Erases a part, or all, of what the subgraph has. True if nothing was left to erase. Can be repeated. */
  erase(organizationId: string, signal: AbortSignal): Promise<boolean>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Erases deleted organizations until the signal aborts. It keeps no state, so it goes on after a crash, and several
 * processes may do the same work.
 */
export async function keepErasing(erasure: Erasure, signal: AbortSignal): Promise<void> {
  const { clock, log } = erasure
  const pauseMs = (failures: number) => Math.min(ROUND_MS * 2 ** failures, MAX_PAUSE_MS)
  const failed = (error: unknown, failures: number) =>
    log[failures > MAX_QUIET_FAILURES ? 'warn' : 'info']({ err: error }, 'deleted organizations could not be listed; it is tried again')
  await keepWorking(() => eraseOnce(erasure, signal), { clock, pauseMs, failed }, signal)
}

/** Runs one round. A failure of one organization does not delay the others. */
export async function eraseOnce({ queue, erase, clock, log }: Erasure, signal: AbortSignal): Promise<void> {
  for (const { organizationId, deletedAt } of await queue.list(signal)) {
    if (signal.aborted) return
    try {
      const isEmpty = await erase(organizationId, signal)
      if (isEmpty && clock.now().getTime() - deletedAt.getTime() >= LATE_WRITES_MS) await queue.finish(organizationId, signal)
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, organizationId }, 'a deleted organization could not be erased; it is tried again')
    }
  }
}
