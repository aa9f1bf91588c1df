import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { type DistributedService, startFiveProcesses } from '../../support/processes/service.ts'

/** A read has 5 s at a subgraph, and a busy machine takes its time. */
const TIMED_OUT_MS = 9_000
/** Nobody is asked, and nobody waited for. */
const AT_ONCE_MS = 2_000

let service: DistributedService
beforeAll(async () => {
  service = await startFiveProcesses()
}, 240_000)
afterAll(() => service?.close())

async function execute(query: string) {
  const at = performance.now()
  const response = await fetch(service.graphql, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  const body = (await response.json()) as { data?: unknown; errors?: { path?: unknown; extensions: { code: string } }[] }
  return { ...body, ms: performance.now() - at }
}

/** Of the gateway and of the rest-adapter. */
const readiness = () =>
  Promise.all(
    [service.graphql.replace('/graphql', ''), service.rest].map(async (address) => {
      const response = await fetch(`${address}/readyz`)
      return { status: response.status, body: await response.json() }
    }),
  )
const both = (status: number, body: { readonly status: string; readonly problems: readonly string[] }) => [
  { status, body },
  { status, body },
]
const READY = both(200, { status: 'ready', problems: [] })
const areReady = async () => JSON.stringify(await readiness()) === JSON.stringify(READY)

it('responds partially and quickly while a subgraph is stopped, stays ready, and recovers with it', async () => {
  const { pid } = service.processes.get('inference-1')!
  expect(await readiness()).toEqual(READY)
  process.kill(pid, 'SIGSTOP')
  try {
    const first = await execute('{ models { id } }')
    expect(first.errors?.[0]).toMatchObject({ path: ['models'], extensions: { code: 'PART_UNAVAILABLE' } })
    expect(first.ms).toBeLessThan(TIMED_OUT_MS)
    const inPart = await execute('{ model(id: "multilingual-e5-small") { id } organization { name } collections { edges { cursor } } }')
    expect(inPart).toMatchObject({ data: { model: null, organization: { name: expect.any(String) }, collections: { edges: [] } } })
    expect(inPart.errors?.map(({ extensions }) => extensions.code)).toEqual(['PART_UNAVAILABLE'])
    expect(inPart.ms).toBeLessThan(AT_ONCE_MS)
    const at = performance.now()
    const rest = await fetch(`${service.rest}/v1/models`, { headers: { authorization: `Bearer ${service.key}` } })
    expect(rest.status).toBe(503)
    expect(performance.now() - at).toBeLessThan(AT_ONCE_MS)
    expect(await readiness()).toEqual(both(200, { status: 'degraded', problems: ['inference'] }))
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  await eventually(async () => (await execute('{ models { id } }')).errors === undefined)
  await eventually(areReady)
}, 60_000)

it('is not ready while billing is stopped, without which nothing works, and is ready again when billing resumes', async () => {
  const { pid } = service.processes.get('billing-1')!
  process.kill(pid, 'SIGSTOP')
  try {
    await eventually(async () => (await readiness()).every(({ status }) => status === 503))
    // The rest-adapter's answer may be half a second older.
    await eventually(
      async () => JSON.stringify(await readiness()) === JSON.stringify(both(503, { status: 'not ready', problems: ['billing'] })),
    )
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  await eventually(areReady)
}, 60_000)

it('returns the key that is shown once even if a field beside it fails', async () => {
  const created = await execute(`mutation { createOrganization(input: { name: "kept" }) {
    key organization { apiKeys(first: 0) { edges { cursor } } }
  } }`)
  expect(created.data).toEqual({ createOrganization: { key: expect.stringMatching(/^kis_live_/), organization: null } })
  const path = ['createOrganization', 'organization', 'apiKeys']
  expect(created.errors).toMatchObject([{ path, locations: [{ line: 2, column: 24 }], extensions: { code: 'INTEGER_BELOW_MIN_VALUE' } }])
})

it('returns the key that one mutation shows once, and the reads beside it, when the other part is dead', async () => {
  await service.processes.get('knowledge-1')!.end('SIGKILL')
  const created = await execute(`mutation {
    made: createApiKey(input: { name: "kept" }) { key }
    lost: createCollection(input: { code: "c", name: "C", embeddingModel: "multilingual-e5-small" }) { collection { id } }
  }`)
  expect(created.data).toEqual({ made: { key: expect.stringMatching(/^kis_live_/) }, lost: null })
  const code = { code: 'PART_UNAVAILABLE', shouldRetry: true }
  expect(created.errors).toMatchObject([{ path: ['lost'], locations: [{ line: 3, column: 5 }], extensions: code }])
  const read = await execute('{ mine: organization { id quota { vectors { used } } } collections { edges { cursor } } models { id } }')
  expect(read.data).toMatchObject({ mine: { id: expect.any(String), quota: null }, collections: null, models: expect.any(Array) })
  expect(read.errors?.map(({ path }) => path).toSorted()).toEqual([['collections'], ['mine', 'quota']])
  for (const { extensions } of read.errors ?? []) expect(extensions).toMatchObject(code)
  const listed = await execute('{ nodes(ids: ["e5-small-ar-en", "col_1"]) { id } }')
  expect(listed.data).toEqual({ nodes: [{ id: 'e5-small-ar-en' }, null] })
  expect(listed.errors).toMatchObject([{ path: ['nodes', 1], locations: [{ line: 1, column: 3 }], extensions: code }])
  const rest = await fetch(`${service.rest}/v1/collections`, { headers: { authorization: `Bearer ${service.key}` } })
  expect([rest.status, await rest.json()]).toMatchObject([503, { error: { code: 'service_unavailable' } }])
}, 60_000)
