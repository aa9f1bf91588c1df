import { endableIterator } from '../../../common/process/endable-iterator.ts'
import type { RequestContext } from '../deps.ts'
import type { FollowedEvent, RunLog } from './run-log.ts'

/** What following needs of the runs of one kind. */
interface Runs<Event extends { readonly type: string }> {
  readonly log: RunLog<Event>
  cancel(requestContext: RequestContext, runId: string): Promise<unknown>
}

/** A started run. `isFound`: a caller who disconnects can find it again by its idempotency key. */
interface Begun {
  readonly _id: string
  readonly organizationId: string
  readonly isFound?: boolean
}

/**
 * Starts a run and follows it. If the caller disconnects before the first event, it does not know the run's id, and the
 * run is cancelled unless it has an idempotency key. After the first event the run continues.
 */
export function followed<Event extends { readonly type: string }>(
  runs: Runs<Event>,
  requestContext: RequestContext,
  start: () => Promise<Begun>,
): AsyncIterableIterator<FollowedEvent<Event>, undefined> {
  let events: AsyncIterableIterator<FollowedEvent<Event>, undefined> | undefined
  let unnamed: string | undefined
  let isOver = false
  const close = () => {
    isOver = true
    void events?.return?.()
    if (unnamed) runs.cancel(requestContext, unnamed).catch(() => undefined)
  }
  return endableIterator(
    async () => {
      if (!events) {
        const { _id, organizationId, isFound } = await start()
        unnamed = isFound ? undefined : _id
        events = runs.log.follow(organizationId, _id, null)
        if (isOver) close()
      }
      const item = await events.next()
      if (!isOver) unnamed = undefined
      return item
    },
    close,
    requestContext.signal,
  )
}
