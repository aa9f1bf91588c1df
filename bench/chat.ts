import { testCatalog } from '../test/support/catalog.ts'
import { startEmbedded } from '../test/support/processes/service.ts'
import { fsyncTimes } from './fsync.ts'
import { type Subject, startPeers } from './peers.ts'
import type { BenchOptions, BenchRow } from './row.ts'
import { Child } from './support/child.ts'
import { type Cost, compared } from './support/compared.ts'
import type { Load, Outcome } from './support/load-process.ts'
import { p50AndP99, quantile } from './support/quantile.ts'

/**
 * Streams that start each second at each target while the time to the first byte is measured. They use about a fifth of
 * a core.
 */
const PER_SECOND = 50
/**
 * The same with peers: a stream costs LiteLLM ten times as much, and its queue is not the subject of the measurement.
 */
const PER_SECOND_WITH_PEERS = 10
const FIRST_BYTE_MS = 15_000

/**
 * Measures chat through the whole embedded service with full billing, alternating with the same load on the engine
 * itself and on peers.
 */
export async function benchChat({ peers }: BenchOptions): Promise<BenchRow[]> {
  await using engine = new Child('./engine-process.ts')
  await using load = new Child('./load-process.ts')
  const engineUrl = await engine.nextMessage<string>()
  await using bare = new Child('./bare-proxy-process.ts', [engineUrl])
  const bareUrl = await bare.nextMessage<string>()
  await using running = new AsyncDisposableStack()
  const service = await startEmbedded({ catalog: testCatalog(engineUrl) })
  running.defer(() => service.close())
  const through: Subject = {
    name: 'ours',
    url: `${service.rest}/v1/chat/completions`,
    headers: { authorization: `Bearer ${service.key}` },
    pid: service.processes.get('all')!.pid,
  }
  const direct: Subject = { name: 'engine itself', url: `${engineUrl}/chat/completions`, headers: {}, pid: engine.pid }
  const proxy: Subject = { name: 'bare proxy in Node', url: `${bareUrl}/chat/completions`, headers: {}, pid: bare.pid }
  const others = peers ? await startPeers(engineUrl) : []
  for (const peer of others) running.use(peer)
  const subjects = [through, direct, ...others]
  const compares = [through, direct, proxy, ...others]
  const costs = async (body: string) => {
    const found = await compared(
      load,
      compares.map((subject) => ({ subject, body })),
    )
    return { ours: found[0]!, beside: compareCosts(found[0]!, found.slice(1), compares.slice(1)) }
  }
  const besidePeers = (litellm: number, portkey: number) => (peers ? `CPU ≤ ${litellm} × LiteLLM's, ≤ ${portkey} × Portkey's` : '')
  const unary = await costs(createBody({ stream: false }))
  const stream = await costs(createBody({ stream: true }))
  const paced = await costs(createBody({ stream: true, content: 'paced' }))
  const firstByte = async (targets: readonly Subject[], perSecond: number, fsync: string): Promise<BenchRow> => {
    const body = createBody({ stream: true })
    const loadOptions: Load = { targets, body, durationMs: FIRST_BYTE_MS, pace: { perSecond } }
    const { firstByteMs } = await load.request<Outcome>(loadOptions)
    const [ours, engines, ...theirs] = firstByteMs as [number[], number[], ...number[][]]
    const besides = [
      `engine itself ${p50AndP99(engines)}`,
      ...theirs.map((times, i) => `${others[i]!.name} added ${added(times, engines)}`),
      fsync,
    ]
    return {
      what: `time to first token, ${perSecond} streams a second`,
      figure: `added ${added(ours, engines)}`,
      target: '',
      beside: besides.join('; '),
    }
  }
  const fsync = `fsync of the disk ${p50AndP99(await fsyncTimes(service.folder))}`
  return [
    {
      what: 'chat, unary',
      figure: formatCost(unary.ours),
      target: besidePeers(0.25, 2.5),
      beside: unary.beside,
    },
    {
      what: 'chat, stream of 20 chunks at once',
      figure: formatCost(stream.ours),
      target: besidePeers(0.125, 2),
      beside: stream.beside,
    },
    { what: 'chat, stream of 20 chunks, 5 ms apart', figure: formatCost(paced.ours), target: '', beside: paced.beside },
    await firstByte([through, direct], PER_SECOND, fsync),
    ...(peers ? [await firstByte(subjects, PER_SECOND_WITH_PEERS, fsync)] : []),
  ]
}

function createBody({ stream, content = 'Hello' }: { readonly stream: boolean; readonly content?: string }): string {
  return JSON.stringify({ model: 'mock-chat', stream, messages: [{ role: 'user', content }] })
}

function formatCost({ cpuMs, perSecond }: Cost): string {
  return `${cpuMs.toFixed(2)} ms CPU, ${Math.round(perSecond)} requests/s`
}

function added(times: readonly number[], reference: readonly number[]): string {
  const by = (share: number) => (quantile(times, share) - quantile(reference, share)).toFixed(1)
  return `p50 ${by(0.5)} ms, p99 ${by(0.99)} ms`
}

/** Describes the engine's figures, and those of peers with our cost as a multiple of theirs. */
function compareCosts(ours: Cost, costs: readonly Cost[], subjects: readonly Subject[]): string {
  const texts = costs.map((cost, i) => {
    const text = `${subjects[i]!.name} ${formatCost(cost)}`
    if (i === 0) return text
    return `${text}: ours ${(ours.cpuMs / cost.cpuMs).toFixed(2)} × the CPU, ${(ours.perSecond / cost.perSecond).toFixed(2)} × the requests`
  })
  return texts.join('; ')
}
