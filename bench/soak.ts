import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { testCatalog } from '../test/support/catalog.ts'
import { addDocument, type Caller, newCollection } from '../test/support/client.ts'
import { startMockEngine } from '../test/support/engines/mock-engine.ts'
import { soaking } from '../test/support/soak.ts'
import { createTxt } from './documents.ts'
import type { BenchRow } from './row.ts'
import { residentBytesOfTree } from './support/process-tree.ts'
import { quantile } from './support/quantile.ts'
import { WatchedService } from './support/watched-service.ts'

/** Length of the test. The second sixth is compared with the last one: in the first, caches fill. */
const MINUTES = soaking ? 30 : 10
const SAMPLES_A_MINUTE = 12
const SAMPLES = MINUTES * SAMPLES_A_MINUTE
const SAMPLE_MS = 60_000 / SAMPLES_A_MINUTE
const SIXTHS = [0, 1, 2, 3, 4, 5]
const DOCUMENTS = 50
const LIST = `query List($id: ID!) { collection(id: $id) { documents(first: 50) { edges { node { id name status file { id name sizeBytes } } } } } }`

/** The work that one caller repeats. */
type Work = () => Promise<void>

interface Sample {
  readonly megabytes: number
  readonly resources: number
  readonly openFiles: number
  readonly files: number
}

/**
 * A soak test of mixed work: chats, streams, searches, lists by GraphQL, documents that are added and deleted. Each
 * caller rests as long as its last call took, so the service has half of the load that these callers could produce. The
 * resources of the service must not grow.
 */
export async function benchSoak(): Promise<BenchRow[]> {
  await using engine = await startMockEngine()
  await using service = await WatchedService.start(testCatalog(engine.url))
  const works = await prepare(service.caller)
  let isOver = false
  let calls = 0
  const callers = Object.values(works).map(async (work) => {
    while (!isOver) {
      const start = performance.now()
      await work()
      calls += 1
      await sleep(performance.now() - start)
    }
  })
  // A call that fails ends the measurement.
  const failed = Promise.all(callers)
  const samples: Sample[] = []
  for (let count = 0; count < SAMPLES; count++) {
    await Promise.race([sleep(SAMPLE_MS), failed])
    samples.push(await takeSample(service))
  }
  isOver = true
  await failed
  /** Returns the medians of each sixth of the time. */
  const course = (read: (sample: Sample) => number) =>
    SIXTHS.map((sixth) => quantile(samples.slice((sixth * SAMPLES) / 6, ((sixth + 1) * SAMPLES) / 6).map(read), 0.5))
  const compare = (sixths: readonly number[]) => `${Math.round(sixths[1]!)} to ${Math.round(sixths[5]!)}`
  const memory = course(({ megabytes }) => megabytes)
  const counts = [
    ['handles and timers', course(({ resources }) => resources)],
    ['open files', course(({ openFiles }) => openFiles)],
    ['files of the data folder', course(({ files }) => files)],
  ] as const
  return [
    {
      what: `${MINUTES} minutes of mixed work at half load, ${calls} calls: resident after a sixth of the time, and at the end`,
      figure: `${compare(memory)} MB, ${((100 * (memory[5]! - memory[1]!)) / memory[1]!).toFixed(1)} %`,
      target: '± 5 %',
      beside: [
        `by sixths ${memory.map(Math.round).join(', ')} MB`,
        ...counts.map(([name, sixths]) => `${name} ${compare(sixths)}`),
        ...(soaking ? [] : ['`KIS_SOAK=1`: 30 minutes']),
      ].join('; '),
    },
  ]
}

async function prepare(caller: Caller): Promise<Readonly<Record<string, Work>>> {
  const collection = (await newCollection(caller, 'mock-embed')).id
  for (let number = 0; number < DOCUMENTS; number++) await addDocument(caller, collection, `${number}.txt`, textOf(number))
  const chat = { model: 'mock-chat', messages: [{ role: 'user' as const, content: 'hello' }] }
  const request = async (method: string, path: string, body: unknown, expected = 200) => {
    const response = await caller.rest(method, path, body)
    if (response.status !== expected) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
  }
  return {
    chat: () => request('POST', '/v1/chat/completions', chat),
    stream: async () => {
      for await (const _ of await caller.openai.chat.completions.create({ ...chat, stream: true }));
    },
    search: () => request('POST', `/v1/collections/${collection}/search`, { query: `How many days of leave? ${Math.random()}` }),
    list: async () => {
      const { errors } = await caller.graphql(LIST, { id: collection })
      if (errors) throw new Error(JSON.stringify(errors))
    },
    documents: async () => {
      const { id, status } = await addDocument(caller, collection, 'come-and-go.txt', textOf(Math.random()))
      if (status !== 'ready') throw new Error(`a document is ${status}`)
      await request('DELETE', `/v1/collections/${collection}/documents/${id}`, undefined)
    },
  }
}

/** Returns a different text for each file: equal files would be one document. */
function textOf(number: number): string {
  return `${number}\n\n${createTxt(2)}`
}

async function takeSample(service: WatchedService): Promise<Sample> {
  return {
    megabytes: residentBytesOfTree(service.pid) / 1e6,
    resources: await service.resources(),
    openFiles: readdirSync(`/proc/${service.pid}/fd`).length,
    files: readdirSync(service.dataFolder, { recursive: true }).length,
  }
}
