import { testCatalog } from '../test/support/catalog.ts'
import { type Peer, type Subject, startPeers } from './peers.ts'
import type { BenchOptions, BenchRow } from './row.ts'
import { Child } from './support/child.ts'
import type { Delay, Started } from './support/event-loop-process.ts'
import { residentBytesOfTree } from './support/process-tree.ts'
import type { Arrived, Streams } from './support/streams-process.ts'
import { delayText, WatchedService } from './support/watched-service.ts'

const STREAMS = 500
/** 20 chunks, one each second: all streams are open together for ten seconds. */
const CHUNKS = 20
const PER_SECOND = 50
const BODY = JSON.stringify({ model: 'mock-chat', stream: true, messages: [{ role: 'user', content: 'slow' }] })
/** How often memory is measured. */
const SAMPLE_MS = 250

/** Many clients read long streams. Measures memory, what arrives, and the event-loop delay. */
export async function benchSlowStreams({ peers }: BenchOptions): Promise<BenchRow[]> {
  await using engine = new Child('./engine-process.ts')
  await using load = new Child('./streams-process.ts')
  const engineUrl = await engine.nextMessage<string>()
  const { figure, reference } = await ours(load, engineUrl)
  const beside = [`event loop delay of an idle process ${delayText(reference)}`]
  if (peers) beside.push(...(await theirs(load, engineUrl)))
  return [
    {
      what: `${STREAMS} streams at once of ${CHUNKS} chunks, a second apart`,
      figure,
      target: '≤ 60 MB more, no chunk lost, event loop delay p99 ≤ 20 ms',
      beside: beside.join('; '),
    },
  ]
}

async function ours(load: Child, engineUrl: string): Promise<{ figure: string; reference: Delay }> {
  await using service = await WatchedService.start(testCatalog(engineUrl))
  await using idle = new Child('./event-loop-process.ts', ['idle'])
  await idle.nextMessage<Started>()
  const headers = { authorization: `Bearer ${service.caller.key}` }
  const subject: Subject = { name: 'ours', url: `${service.rest}/v1/chat/completions`, headers, pid: service.pid }
  await Promise.all([service.delay(), idle.request<Delay>({})])
  const streams = await measureStreams(load, subject)
  const [delay, reference] = await Promise.all([service.delay(), idle.request<Delay>({})])
  return { figure: `${streams}, event loop delay ${delayText(delay)}`, reference }
}

async function theirs(load: Child, engineUrl: string): Promise<readonly string[]> {
  const peers: readonly Peer[] = await startPeers(engineUrl)
  try {
    const figures: string[] = []
    for (const peer of peers) figures.push(`${peer.name} ${await measureStreams(load, peer)}`)
    return figures
  } finally {
    await Promise.all(peers.map((peer) => peer[Symbol.asyncDispose]()))
  }
}

async function measureStreams(load: Child, { url, headers, pid }: Subject): Promise<string> {
  const beforeMb = measureMegabytes(pid)
  let mostMb = 0
  const poller = setInterval(() => {
    mostMb = Math.max(mostMb, measureMegabytes(pid))
  }, SAMPLE_MS)
  try {
    const streamOptions: Streams = { target: { url, headers }, body: BODY, count: STREAMS, perSecond: PER_SECOND }
    const { whole, chunks, atOnce, failure } = await load.request<Arrived>(streamOptions)
    const failed = failure === null ? '' : `, ${STREAMS - whole} streams failed (${failure.replace(/\s+/g, ' ')})`
    return `${mostMb} MB, ${mostMb - beforeMb} more than before, ${STREAMS * CHUNKS - chunks} of ${STREAMS * CHUNKS} chunks lost${failed}, at most ${atOnce} open`
  } finally {
    clearInterval(poller)
  }
}

function measureMegabytes(pid: number): number {
  return Math.round(residentBytesOfTree(pid) / 1e6)
}
