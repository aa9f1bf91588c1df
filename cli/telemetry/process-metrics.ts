import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Metrics } from '../../subgraphs/common/telemetry/metrics.ts'

/** How often the event-loop delay is sampled. */
const RESOLUTION_MS = 20
const NANOSECONDS = 1e9
const MICROSECONDS = 1e6

/** Reports the process itself: memory, processor, event loop. The names are those that dashboards for Node know. */
export function watchProcess(metrics: Metrics): Disposable {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  const startedSeconds = Date.now() / 1_000 - process.uptime()
  metrics.gauge('kis_event_loop_delay_seconds', () => {
    // Each measurement includes the sampling interval itself.
    const seconds = (nanoseconds: number) => Math.max(0, (nanoseconds || 0) / NANOSECONDS - RESOLUTION_MS / 1_000)
    const readings = [
      [seconds(delay.percentile(50)), '50'],
      [seconds(delay.percentile(99)), '99'],
      [seconds(delay.max), '100'],
    ] as const
    delay.reset()
    return readings
  })
  metrics.gauge('process_resident_memory_bytes', () => [[process.memoryUsage.rss()]])
  metrics.gauge('nodejs_heap_size_used_bytes', () => [[process.memoryUsage().heapUsed]])
  metrics.gauge('nodejs_external_memory_bytes', () => [[process.memoryUsage().external]])
  metrics.gauge('process_start_time_seconds', () => [[startedSeconds]])
  metrics.gauge('process_cpu_seconds_total', () => {
    const { user, system } = process.cpuUsage()
    return [[(user + system) / MICROSECONDS]]
  })
  return { [Symbol.dispose]: () => void delay.disable() }
}
