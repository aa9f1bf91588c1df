import { monitorEventLoopDelay } from 'node:perf_hooks'
import { readConfig } from '../../cli/settings/config.ts'
import { start } from '../../cli/start.ts'

/**
 * Runs the whole service in this process if the argument is `service`, or nothing if it is `idle`. Reports the
 * event-loop delay since the last request; or, on `resources`, the number of handles, requests and timers.
 */

export interface Started {
  /** The lines that the service prints. */
  readonly lines: readonly string[]
}

/** Event-loop delay in ms. */
export interface Delay {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** Period of the timer. Node's histogram contains the time between two runs, so the period is part of each value. */
const RESOLUTION_MS = 5

const lines: string[] = []
const running =
  process.argv[2] === 'service'
    ? await start('all', readConfig(process.env), (line) => lines.push(line), new AbortController().signal)
    : undefined
await running?.ready
const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
histogram.enable()
process.on('message', ({ resources }: { readonly resources?: boolean }) => {
  if (resources) return void process.send!(process.getActiveResourcesInfo().length)
  const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
  const delay: Delay = { p50: late(histogram.percentile(50)), p99: late(histogram.percentile(99)), max: late(histogram.max) }
  histogram.reset()
  process.send!(delay)
})
process.on('SIGTERM', async () => {
  await running?.[Symbol.asyncDispose]()
  process.exit()
})
process.send!({ lines } satisfies Started)
