import { testCatalog } from '../test/support/catalog.ts'
import { startEmbedded } from '../test/support/processes/service.ts'
import type { BenchRow } from './row.ts'
import { Child } from './support/child.ts'
import type { Load, Outcome } from './support/load-process.ts'
import type { OverloadLoad, OverloadOutcome } from './support/overload-process.ts'
import { residentBytesOfTree } from './support/process-tree.ts'
import { quantile } from './support/quantile.ts'

const CAPACITY_MS = 8_000
const OVERLOAD_MS = 15_000
const TIMES = 4
const CONNECTIONS = 2_000
/** Rate of one more client that measures precisely: the load process reads its responses late. */
const PROBES_PER_SECOND = 50
const MEBIBYTE = 1024 * 1024

/**
 * Starts chats at four times the rate that the service can serve. Measures how many it still serves, how long a refusal
 * takes, and how much memory stays in use.
 */
export async function benchOverload(): Promise<BenchRow[]> {
  await using engine = new Child('./engine-process.ts')
  await using load = new Child('./load-process.ts')
  await using overload = new Child('./overload-process.ts')
  await using prober = new Child('./overload-process.ts')
  await using healthz = new Child('./overload-process.ts')
  const service = await startEmbedded({ catalog: testCatalog(await engine.nextMessage<string>()) })
  try {
    const pid = service.processes.get('all')!.pid
    const url = `${service.rest}/v1/chat/completions`
    const headers = { authorization: `Bearer ${service.key}` }
    const body = JSON.stringify({ model: 'mock-chat', messages: [{ role: 'user', content: 'Hello' }] })
    const full: Load = { targets: [{ url, headers }], body, durationMs: CAPACITY_MS, pace: { atOnce: 32 } }
    await load.request<Outcome>({ ...full, durationMs: 2_000 })
    const { requests, seconds } = await load.request<Outcome>(full)
    const capacity = requests / seconds
    const before = residentBytesOfTree(pid)
    const loadOptions: OverloadLoad = { url, headers, body, durationMs: OVERLOAD_MS, perSecond: TIMES * capacity, connections: CONNECTIONS }
    const [outcome, health, seen] = await Promise.all([
      overload.request<OverloadOutcome>(loadOptions),
      healthz.request<OverloadOutcome>({
        ...loadOptions,
        url: `${service.rest}/healthz`,
        method: 'GET' as const,
        perSecond: PROBES_PER_SECOND,
        connections: PROBES_PER_SECOND,
      }),
      prober.request<OverloadOutcome>({ ...loadOptions, perSecond: PROBES_PER_SECOND, connections: PROBES_PER_SECOND }),
    ])
    const after = residentBytesOfTree(pid)
    const okTimesMs = outcome.timesMs[200] ?? []
    const listRefused = ({ timesMs }: OverloadOutcome) => [...(timesMs[503] ?? []), ...(timesMs[429] ?? [])]
    const refused = listRefused(outcome)
    const goodput = okTimesMs.length / outcome.seconds
    const other = Object.entries(outcome.timesMs).filter(([status]) => !['200', '429', '503'].includes(status))
    const healthMs = health.timesMs[200] ?? []
    const ms = (times: readonly number[]) =>
      times.length ? `p50 ${quantile(times, 0.5).toFixed(0)} ms, p99 ${quantile(times, 0.99).toFixed(0)} ms` : 'none'
    return [
      {
        what: `${TIMES} times the chats that it can answer, for ${OVERLOAD_MS / 1_000} s`,
        figure: `${((100 * goodput) / capacity).toFixed(0)} % of its capacity answered (${ms(okTimesMs)}); refused ${refused.length}: ${ms(refused)}, as another client sees it ${ms(listRefused(seen))}; /healthz ${ms(healthMs)}`,
        target: '≥ 60 %; /healthz ≤ 500 ms',
        beside: `capacity ${Math.round(capacity)}/s; ${outcome.unsent} not sent; memory ${Math.round(before / MEBIBYTE)} MB before, ${Math.round(after / MEBIBYTE)} MB after; other statuses ${other.map(([status, times]) => `${status}: ${times.length}`).join(', ') || 'none'}`,
      },
    ]
  } finally {
    await service.close()
  }
}
