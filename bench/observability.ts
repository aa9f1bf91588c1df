import { mockCatalog } from '../test/support/catalog.ts'
import { OtlpReceiver } from '../test/support/otlp-receiver.ts'
import { freePorts, type Service, startEmbedded } from '../test/support/processes/service.ts'
import type { Subject } from './peers.ts'
import type { BenchRow } from './row.ts'
import { Child } from './support/child.ts'
import { compared } from './support/compared.ts'
import { quantile } from './support/quantile.ts'

const WARM_UP = { warmUpMs: 5_000, roundMs: 500, rounds: 1 }
const ROUND = { warmUpMs: 0, roundMs: 1_500, rounds: 1 }
/** Number of rounds, whose median ratio counts: those of single rounds differ by some percent. */
const ROUNDS = 8
/** Scrape interval: shorter than that of Prometheus. */
const SCRAPE_MS = 5_000
const SAMPLED = '0.1'

/**
 * Compares the CPU of chats with scraped metrics and a tenth of the traces with that of chats without either,
 * alternating.
 */
export async function benchObservability(): Promise<BenchRow[]> {
  await using engine = new Child('./engine-process.ts')
  await using load = new Child('./load-process.ts')
  await using collector = await OtlpReceiver.start()
  await using running = new AsyncDisposableStack()
  const catalog = mockCatalog(await engine.nextMessage<string>())
  const [metricsPort] = (await freePorts(1)) as [number]
  const start = async (name: string, env: Record<string, string>): Promise<Subject> => {
    const service: Service = await startEmbedded({ catalog, env })
    running.defer(() => service.close())
    const headers = { authorization: `Bearer ${service.key}` }
    return { name, url: `${service.rest}/v1/chat/completions`, headers, pid: service.processes.get('all')!.pid }
  }
  const subjects = [
    await start('neither', {}),
    await start('metrics', { KIS_METRICS_PORT: String(metricsPort) }),
    await start('traces', { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER_ARG: SAMPLED }),
  ]
  const scrapes = setInterval(() => void fetch(`http://127.0.0.1:${metricsPort}/metrics`).then((response) => response.text()), SCRAPE_MS)
  running.defer(() => clearInterval(scrapes))
  const rows: BenchRow[] = []
  for (const [what, stream] of [
    ['unary', false],
    ['stream of 20 chunks at once', true],
  ] as const) {
    const body = JSON.stringify({ model: 'mock-chat', stream, messages: [{ role: 'user', content: 'Hello' }] })
    const cases = subjects.map((subject) => ({ subject, body }))
    await compared(load, cases, WARM_UP)
    const costs: (readonly number[])[] = []
    for (let round = 0; round < ROUNDS; round++) costs.push((await compared(load, cases, ROUND)).map(({ cpuMs }) => cpuMs))
    const median = (of: (cost: readonly number[]) => number) => quantile(costs.map(of), 0.5)
    const rise = (at: number) => {
      const ratios = costs.map((cost) => (cost[at]! / cost[0]! - 1) * 100)
      return `${quantile(ratios, 0.5).toFixed(1)} % (${quantile(ratios, 0.25).toFixed(1)} to ${quantile(ratios, 0.75).toFixed(1)})`
    }
    rows.push({
      what: `chat, ${what}: CPU with metrics; with a tenth of the traces`,
      figure: `+ ${rise(1)}; + ${rise(2)}`,
      target: '≤ 3 %; ≤ 8 %',
      beside: `neither: ${median(([neither]) => neither!).toFixed(2)} ms`,
    })
  }
  return rows
}
