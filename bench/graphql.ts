import { loadavg } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import { mockCatalog } from '../test/support/catalog.ts'
import { addDocument, createCaller, newCollection, newOrganization } from '../test/support/client.ts'
import { startMockEngine } from '../test/support/engines/mock-engine.ts'
import { type Service, startEmbedded, startFiveProcesses } from '../test/support/processes/service.ts'
import type { Subject } from './peers.ts'
import type { BenchRow } from './row.ts'
import { Child } from './support/child.ts'
import { type Case, type Cost, compared } from './support/compared.ts'
import { quantile } from './support/quantile.ts'
import { OPERATIONS } from './support/trivial-subgraphs.ts'

const WARM_UP = { warmUpMs: 6_000, roundMs: 500, rounds: 1 }
const ROUND = { warmUpMs: 0, roundMs: 2_000, rounds: 1 }
/** Number of rounds, whose median counts. */
const ROUNDS = 5
const SHARE = 0.75
const DOCUMENTS = 50
/** Documents that are added in one call. */
const AT_ONCE = 10

/** Operations for the real service. */
const OF_SERVICE = {
  'three subgraphs': {
    query: '{ viewer { id name organization { id name } } models { id kind } collections(first: 1) { edges { node { id name } } } }',
  },
  'list of 50': {
    query: `query ($id: ID!, $first: Int!) { collection(id: $id) { id name
      documents(first: $first) { edges { node { id name status chunkCount file { id name sizeBytes } } } } } }`,
  },
} as const
type OfService = keyof typeof OF_SERVICE

/** Compares the CPU of an operation in our gateway with that in Apollo's, over the same subgraphs. */
export async function benchGraphql(): Promise<BenchRow[]> {
  await using load = new Child('./load-process.ts')
  await using subgraphs = new Child('./trivial-subgraphs-process.ts')
  const supergraph = await subgraphs.nextMessage<string>()
  const env = { ...process.env, NODE_ENV: 'production' }
  await using own = new Child('./own-gateway-process.ts', [supergraph], env)
  await using apollo = new Child('./apollo-gateway-process.ts', [supergraph], { ...env, APOLLO_TELEMETRY_DISABLED: '1' })
  const ours: Subject = {
    name: 'ours',
    url: await own.nextMessage(),
    headers: { authorization: `Bearer kis_live_${'a'.repeat(36)}` },
    pid: own.pid,
  }
  const theirs: Subject = { name: 'Apollo Gateway', url: await apollo.nextMessage(), headers: {}, pid: apollo.pid }
  const rows: BenchRow[] = []
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    const body = JSON.stringify(operation)
    const responses = await Promise.all([ours, theirs].map((subject) => fetchResult(subject, body)))
    if (!isDeepStrictEqual(responses[0], responses[1])) throw new Error(`the gateways answer otherwise: ${JSON.stringify(responses)}`)
    const { costs, ratio } = await medians(load, [
      { subject: ours, body },
      { subject: theirs, body },
    ])
    rows.push({
      what: `GraphQL, the gateway's CPU: ${name}`,
      figure: `${formatCost(costs[0]!)}: ${ratio.toFixed(2)} × Apollo Gateway's`,
      target: `≤ ${SHARE} × Apollo Gateway's CPU`,
      beside: `@apollo/gateway 2.14.4 behind @apollo/server ${formatCost(costs[1]!)}; load ${loadavg()[0]!.toFixed(0)}`,
    })
  }
  return rows
}

/** Measures the CPU of an operation in all processes of the real service. */
export async function benchGraphqlService(): Promise<BenchRow[]> {
  await using load = new Child('./load-process.ts')
  await using engine = await startMockEngine()
  const catalog = mockCatalog(engine.url)
  const rows: BenchRow[] = []
  for (const [kind, start] of [
    ['distributed', () => startFiveProcesses({ catalog })],
    ['embedded', () => startEmbedded({ catalog })],
  ] as const) {
    const service: Service = await start()
    try {
      const pids = new Map([...service.processes].map(([name, { pid }]) => [name, pid]))
      const { key, collectionId } = await furnish(service)
      const gateway = pids.get('gateway-1') ?? pids.get('all')!
      const others = ['billing-1', 'knowledge-1', 'inference-1'].flatMap((name) => pids.get(name) ?? [])
      const subject: Subject = { name: kind, url: service.graphql, headers: { authorization: `Bearer ${key}` }, pid: gateway }
      for (const name of Object.keys(OF_SERVICE) as OfService[]) {
        const body = JSON.stringify({ ...OF_SERVICE[name], variables: { id: collectionId, first: DOCUMENTS } })
        await fetchResult(subject, body)
        const alone = { subject, body }
        const { costs } = await medians(load, others.length > 0 ? [{ ...alone, helpers: others }, alone] : [alone])
        rows.push({
          what: `GraphQL, the service ${kind}: ${name}`,
          figure: `${formatCost(costs[0]!)} in all processes`,
          target: '',
          beside: `${costs[1] ? `the gateway alone ${formatCost(costs[1])}; ` : ''}load ${loadavg()[0]!.toFixed(0)}`,
        })
      }
    } finally {
      await service.close()
    }
  }
  return rows
}

/** Creates an organization with a collection of as many documents as are listed. */
async function furnish(service: Service): Promise<{ readonly key: string; readonly collectionId: string }> {
  const caller = await newOrganization(createCaller(service, service.key), service)
  const { id } = await newCollection(caller, 'mock-embed')
  const add = (i: number) => addDocument(caller, id, `note-${i}.txt`, `Note ${i}: parking is free on day ${i}.`)
  for (let i = 0; i < DOCUMENTS; i += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => add(i + at)))
  return { key: caller.key, collectionId: id }
}

/** @throws {Error} the result has errors, or no data */
async function fetchResult({ url, headers }: Subject, body: string): Promise<unknown> {
  const response = await fetch(url, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body })
  const { data, errors } = (await response.json()) as { readonly data?: unknown; readonly errors?: unknown }
  if (!data || errors) throw new Error(`${response.status}: ${JSON.stringify(errors)}`)
  return data
}

/** Returns the median cost of each case over alternating rounds, and the median ratio of the first to the second. */
async function medians(load: Child, cases: readonly Case[]): Promise<{ readonly costs: readonly Cost[]; readonly ratio: number }> {
  await compared(load, cases, WARM_UP)
  const rounds: (readonly Cost[])[] = []
  for (let i = 0; i < ROUNDS; i++) rounds.push(await compared(load, cases, ROUND))
  const median = (of: (round: readonly Cost[]) => number) => quantile(rounds.map(of), 0.5)
  const costs = cases.map((_, at) => ({
    cpuMs: median((round) => round[at]!.cpuMs),
    perSecond: median((round) => round[at]!.perSecond),
  }))
  return { costs, ratio: cases.length > 1 ? median((round) => round[0]!.cpuMs / round[1]!.cpuMs) : 1 }
}

function formatCost({ cpuMs, perSecond }: Cost): string {
  return `${cpuMs.toFixed(2)} ms CPU, ${Math.round(perSecond)}/s`
}
