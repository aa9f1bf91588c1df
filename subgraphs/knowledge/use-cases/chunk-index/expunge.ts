import { keepWorking } from '../../../common/process/keep-working.ts'
import type { Deps } from '../deps.ts'

/** How long deleted text may stay in the files of the index. Expunging rewrites large parts of them, so it is rare. */
const EVERY_MS = 24 * 3_600_000
const POLL_MS = 600_000
const EXPUNGED = 'expunged'

type ExpungeDeps = Pick<Deps, 'store' | 'index' | 'clock'>

/** Expunges daily, and at the first start, until the signal aborts. Every process may call it. */
export function keepExpunging(deps: ExpungeDeps & Pick<Deps, 'log'>, signal: AbortSignal): Promise<void> {
  const failed = (error: unknown) => deps.log.warn({ err: error }, 'deleted text is still in the files of the chunk index')
  return keepWorking(() => expungeIfDue(deps, signal), { clock: deps.clock, pauseMs: POLL_MS, failed }, signal)
}

/** The process that moves the due time does it. After a failure it is due again, in any process. */
export async function expungeIfDue({ store, index, clock }: ExpungeDeps, signal: AbortSignal): Promise<void> {
  const now = clock.now()
  await store.indexMarks.insertMissing([{ _id: EXPUNGED, version: 0, dueAt: now }])
  const dueAt = new Date(now.getTime() + EVERY_MS)
  if (!(await store.indexMarks.findOneAndUpdate({ _id: EXPUNGED, dueAt: { $lte: now } }, { $set: { dueAt } }))) return
  try {
    await index.expunge(signal)
  } catch (error) {
    await store.indexMarks.findOneAndUpdate({ _id: EXPUNGED, dueAt }, { $set: { dueAt: now } })
    throw error
  }
}
