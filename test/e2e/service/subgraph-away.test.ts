import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { type DistributedService, startFiveProcesses } from '../../support/processes/service.ts'

/** A read has 5 s at a subgraph, and a busy machine takes its time. */
const GIVEN_UP_MS = 9_000
/** Nobody is asked, and nobody waited for. */
const AT_ONCE_MS = 2_000

let service: DistributedService
beforeAll(async () => {
  service = await startFiveProcesses()
}, 240_000)
afterAll(() => service?.close())

async function ask(query: string) {
  const at = performance.now()
  const response = await fetch(service.graphql, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  const body = (await response.json()) as { data?: unknown; errors?: { path?: unknown; extensions: { code: string } }[] }
  return { ...body, ms: performance.now() - at }
}

const readiness = async () => {
  const response = await fetch(service.graphql.replace('/graphql', '/readyz'))
  return { status: response.status, body: await response.json() }
}

it('answers in part and quickly while a subgraph is stopped, stays ready, and goes on when it does', async () => {
  const { pid } = service.processes.get('inference-1')!
  expect(await readiness()).toEqual({ status: 200, body: { status: 'ready', problems: [] } })
  process.kill(pid, 'SIGSTOP')
  try {
    const first = await ask('{ models { id } }')
    expect(first.errors?.[0]).toMatchObject({ path: ['models'], extensions: { code: 'PART_UNAVAILABLE' } })
    expect(first.ms).toBeLessThan(GIVEN_UP_MS)
    const inPart = await ask('{ model(id: "multilingual-e5-small") { id } organization { name } collections { edges { cursor } } }')
    expect(inPart).toMatchObject({ data: { model: null, organization: { name: expect.any(String) }, collections: { edges: [] } } })
    expect(inPart.errors?.map(({ extensions }) => extensions.code)).toEqual(['PART_UNAVAILABLE'])
    expect(inPart.ms).toBeLessThan(AT_ONCE_MS)
    const at = performance.now()
    const rest = await fetch(`${service.rest}/v1/models`, { headers: { authorization: `Bearer ${service.key}` } })
    expect(rest.status).toBe(503)
    expect(performance.now() - at).toBeLessThan(AT_ONCE_MS)
    expect(await readiness()).toEqual({ status: 200, body: { status: 'degraded', problems: ['inference'] } })
    expect((await fetch(`${service.rest}/readyz`)).status).toBe(200)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  await eventually(async () => (await ask('{ models { id } }')).errors === undefined)
  expect(await readiness()).toEqual({ status: 200, body: { status: 'ready', problems: [] } })
}, 60_000)

it('keeps the key that one mutation shows once, and the reads beside, where the other part is dead', async () => {
  await service.processes.get('knowledge-1')!.end('SIGKILL')
  const made = await ask(`mutation {
    made: createApiKey(input: { name: "kept" }) { key }
    lost: createCollection(input: { code: "c", name: "C", embeddingModel: "multilingual-e5-small" }) { collection { id } }
  }`)
  expect(made.data).toEqual({ made: { key: expect.stringMatching(/^kis_live_/) }, lost: null })
  const code = { code: 'PART_UNAVAILABLE', shouldRetry: true }
  expect(made.errors).toMatchObject([{ path: ['lost'], locations: [{ line: 3, column: 5 }], extensions: code }])
  const read = await ask('{ mine: organization { id quota { vectors { used } } } collections { edges { cursor } } models { id } }')
  expect(read.data).toMatchObject({ mine: { id: expect.any(String), quota: null }, collections: null, models: expect.any(Array) })
  expect(read.errors?.map(({ path }) => path).toSorted()).toEqual([['collections'], ['mine', 'quota']])
  for (const { extensions } of read.errors ?? []) expect(extensions).toMatchObject(code)
  const rest = await fetch(`${service.rest}/v1/collections`, { headers: { authorization: `Bearer ${service.key}` } })
  expect([rest.status, await rest.json()]).toMatchObject([503, { error: { code: 'service_unavailable' } }])
}, 60_000)
