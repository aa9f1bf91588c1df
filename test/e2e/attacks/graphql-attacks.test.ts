import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createCaller } from '../../support/client.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

/** What a load balancer waits for `/healthz`, on a machine that does nothing else. */
const HEALTHY_MS = 500
/** Six hundred failing operations kept 940 MB. */
const GROWTH_BYTES = 300 * 1024 * 1024
/** Four million characters, and the longest record, which may come on top of them. */
const MAX_LIST_CHARACTERS = 9_000_000

let service: Service
let prober: ChildProcess
/** What other work on the machine adds to each of several turns of the event loop. */
let addedMs: number
beforeAll(async () => {
  service = await startEmbedded()
  prober = fork(fileURLToPath(new URL('../../support/processes/health-process.ts', import.meta.url)), [service.rest])
  await once(prober, 'message')
  const aloneMs = await longestWhile(async () => {
    for (let i = 0; i < 50; i++) await post({ query: '{ organization { name } }' })
  })
  addedMs = 3 * aloneMs
}, 240_000)
afterAll(async () => {
  prober?.disconnect()
  await service?.close()
})

async function post(body: object | string) {
  const response = await fetch(service.graphql, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, text: await response.text() }
}

/** The longest answer of `/healthz` while the work goes on, as a process sees it that does nothing else. */
async function longestWhile(work: () => Promise<unknown>): Promise<number> {
  const measure = async (): Promise<{ longestMs: number; failures: number }> => {
    prober.send({})
    return (await once(prober, 'message'))[0]
  }
  await measure()
  await work()
  expect((await fetch(`${service.rest}/healthz`)).status).toBe(200)
  const { longestMs, failures } = await measure()
  expect(failures).toBe(0)
  return longestMs
}

const rssBytes = () => {
  const status = readFileSync(`/proc/${service.processes.get('all')!.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1_024
}

const SEARCH = 'query ($i: SearchInput!) { searchCollection(input: $i) { cost } }'
const KEYS = 'mutation ($i: CreateApiKeyInput!) { createApiKey(input: $i) { key } }'
const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`q${i}`, 1]))
const DOCUMENTS = 'documents(first: 100) { edges { node { collection { documents(first: 100) { edges { node { id } } } } } } }'

const ATTACKS: readonly { readonly name: string; readonly body: object }[] = [
  { name: '2,000 unknown fields', body: { query: SEARCH, variables: { i: fields(2_000) } } },
  { name: '8,000 unknown fields', body: { query: SEARCH, variables: { i: fields(8_000) } } },
  { name: '20,000 unknown fields', body: { query: SEARCH, variables: { i: fields(20_000) } } },
  {
    name: '100,000 objects for strings',
    body: { query: KEYS, variables: { i: { name: 'a', modelAllowlist: Array.from({ length: 100_000 }, () => ({})) } } },
  },
  { name: 'a block string of 4 MB', body: { query: `{ collectionByCode(code: """${'a\n'.repeat(2_000_000)}""") { id } }` } },
  { name: 'wrong literals', body: { query: `{ files(first: "${' Did you mean '.repeat(15_000)}") { edges { cursor } } }` } },
  {
    name: '150,000 nodes',
    body: { query: `{ ${Array.from({ length: 15 }, (_, i) => `a${i}: collection(id: "${i}") { ${DOCUMENTS} }`).join(' ')} }` },
  },
]

it('responds to `/healthz` in time during all GraphQL attacks, and refuses each with a short error', async () => {
  for (const { name, body } of ATTACKS) {
    const text = JSON.stringify(body)
    const longestMs = await longestWhile(() =>
      Promise.all(
        Array.from({ length: 2 }, async () => {
          for (let i = 0; i < 4; i++) {
            const { status, text: responseText } = await post(text)
            expect([name, status]).toEqual([name, 400])
            expect(responseText.length).toBeLessThan(10_000)
          }
        }),
      ),
    )
    expect(longestMs, name).toBeLessThan(HEALTHY_MS + addedMs)
  }
}, 120_000)

it('lists the longest definitions and runs in short pages, and responds to `/healthz` in time', async () => {
  const { rest } = createCaller(service, service.key)
  const nodes = Array.from({ length: 8 }, (_, i) => ({ id: `n${i}`, type: 'template', template: 'y'.repeat(60_000) }))
  for (let i = 0; i < 40; i++)
    expect((await rest('POST', '/v1/workflows', { code: `long${i}`, name: 'W', definition: { nodes, output: null } })).status).toBe(201)
  const { body: agent } = await rest('POST', '/v1/agents', { code: 'long', name: 'A', model: 'extractive', instructions: 'Answer.' })
  for (let i = 0; i < 10; i++)
    // Refused by the model for nothing, and kept as a run.
    expect(
      (await rest('POST', `/v1/agents/${agent.id}/runs`, { messages: [{ role: 'user', content: 'z '.repeat(1_900_000) }] })).status,
    ).toBe(400)
  const lists = [
    ['/v1/workflows?limit=100', 40],
    [`/v1/agents/${agent.id}/runs?limit=100`, 10],
  ] as const
  for (const [path, count] of lists) {
    const seen = new Set<string>()
    const longestMs = await longestWhile(async () => {
      for (let after = ''; ; ) {
        const { status, body } = await rest('GET', `${path}${after}`)
        expect(status).toBe(200)
        expect(JSON.stringify(body).length).toBeLessThan(MAX_LIST_CHARACTERS)
        for (const { id } of body.data) seen.add(id)
        if (!body.has_more) break
        after = `&after=${body.last_id}`
      }
    })
    expect([path, seen.size]).toEqual([path, count])
    expect(longestMs, path).toBeLessThan(2 * HEALTHY_MS)
  }
  const before = rssBytes()
  const aliases = Array.from({ length: 9 }, (_, i) => `a${i}: workflows(first: 100) { edges { node { definition } } }`)
  const longestMs = await longestWhile(async () => {
    const { text } = await post({ query: `{ ${aliases.join(' ')} }` })
    expect(text).toContain('OPERATION_TOO_COMPLEX')
    expect(text.length).toBeLessThan(10_000)
  })
  expect(longestMs).toBeLessThan(2 * HEALTHY_MS)
  expect(rssBytes() - before).toBeLessThan(GROWTH_BYTES)
}, 120_000)

it('retains no memory of failed operations', async () => {
  await post({ query: '{ organization { name } }' })
  const before = rssBytes()
  for (let i = 0; i < 600; i++) {
    const wanted = Array.from({ length: 14 }, (_, k) => `a${k}: collection(id: "${i}${'x'.repeat(250)}") { id }`).join(' ')
    const { text } = await post({ query: `{ ${wanted} fileContent(id: "${i}") { length } }` })
    expect(text).toContain('"errors"')
  }
  expect(rssBytes() - before).toBeLessThan(GROWTH_BYTES)
}, 120_000)
