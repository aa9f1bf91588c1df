import { endableIterator } from '../../../common/process/endable-iterator.ts'
import type { AskContext } from '../deps.ts'
import type { FollowedEvent, RunLog } from './run-log.ts'

/** Runs of one kind, as far as following them goes. */
interface Runs<Event extends { readonly type: string }> {
  readonly log: RunLog<Event>
  cancel(ask: AskContext, runId: string): Promise<unknown>
}

/** A run that has begun. `isFound`: a caller who disconnects can find it again by its idempotency key. */
interface Begun {
  readonly _id: string
  readonly organizationId: string
  readonly isFound?: boolean
}

/**
 * Starts a run and follows it. If the caller disconnects before the first event, nobody knows its id and it is
 * cancelled. After that it goes on.
 */
export function followed<Event extends { readonly type: string }>(
  runs: Runs<Event>,
  ask: AskContext,
  start: () => Promise<Begun>,
): AsyncIterableIterator<FollowedEvent<Event>, undefined> {
  let events: AsyncIterableIterator<FollowedEvent<Event>, undefined> | undefined
  let unnamed: string | undefined
  let isOver = false
  const leave = () => {
    isOver = true
    void events?.return?.()
    if (unnamed) runs.cancel(ask, unnamed).catch(() => undefined)
  }
  return endableIterator(
    async () => {
      if (!events) {
        const { _id, organizationId, isFound } = await start()
        unnamed = isFound ? undefined : _id
        events = runs.log.follow(organizationId, _id, null)
        if (isOver) leave()
      }
      const item = await events.next()
      if (!isOver) unnamed = undefined
      return item
    },
    leave,
    ask.signal,
  )
}
