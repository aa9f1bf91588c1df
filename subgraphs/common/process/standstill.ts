/**
 * A process that did nothing for this long has been stopped (SIGSTOP, a frozen container, a machine that slept). What
 * waited for it was given up by whoever sent it, or will be: a link gives a silent process 4 s.
 */
const STILL_MS = 3_800
/** Within this time after it went on, what a process reads may be what waited. */
const WAKING_MS = 1_000
const LOOK_MS = 250

let seenAtMs: number | undefined
let wakingUntilMs = 0

/**
 * Whether this process has just stood still. It then begins nothing for another process, which may have had it done
 * elsewhere. The first call begins to watch.
 */
export function hasJustStoodStill(): boolean {
  look()
  return performance.now() < wakingUntilMs
}

function look(): void {
  const nowMs = performance.now()
  if (seenAtMs === undefined) setInterval(look, LOOK_MS).unref()
  else if (nowMs - seenAtMs > STILL_MS) wakingUntilMs = nowMs + WAKING_MS
  seenAtMs = nowMs
}
