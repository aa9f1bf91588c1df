import { setImmediate as nextTurn } from 'node:timers/promises'

/** Work on the event loop after which all else has its turn. A request then waits no longer for it than for another one. */
const MAX_MS = 2

let workedMs = 0

/**
 * Call it after work that began at `begunMs` of `performance.now()`, with its result. Gives the result at once, or after
 * a turn of the event loop when such work has taken 2 ms since the last one: else a loop of reads would let no other
 * request, timer or abort through until its end.
 */
export function inTurns<T>(begunMs: number, result: T): T | Promise<T> {
  workedMs += performance.now() - begunMs
  if (workedMs < MAX_MS) return result
  workedMs = 0
  return nextTurn(result)
}
