import { setTimeout as sleep } from 'node:timers/promises'
import { testCatalog } from '../test/support/catalog.ts'
import { addDocument, type Caller, createCaller, newCollection, newOrganization } from '../test/support/client.ts'
import { startMockEngine } from '../test/support/engines/mock-engine.ts'
import { type Service, startEmbedded } from '../test/support/processes/service.ts'
import { createPdf } from './documents.ts'
import type { BenchRow } from './row.ts'
import { Child } from './support/child.ts'
import { cpuMsOfTree, residentBytesOfTree } from './support/process-tree.ts'

const MEBIBYTE = 1024 * 1024
const SAMPLE_MS = 20
/** A request without a response by then has shown enough. */
const TIMEOUT_MS = 180_000

/** The most expensive request that we know for one scope. */
interface WorstCase {
  readonly scope: string
  readonly what: string
  /** Returns the status and the size of the response in bytes. `caller` has only this scope. */
  send(caller: Caller, ready: Ready): Promise<Outcome>
}

interface Outcome {
  readonly status: number
  readonly bytes: number
}

interface Ready {
  readonly service: Service
  /** A key with every scope, in the same organization. */
  readonly admin: Caller
  readonly collection: string
}

const times = <T>(count: number, create: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => create(index))

async function rest(caller: Caller, method: string, path: string, body?: unknown): Promise<Outcome> {
  const response = await caller.rest(method, path, body)
  return { status: response.status, bytes: Buffer.byteLength(JSON.stringify(response.body)) }
}

async function graphql(caller: Caller, query: string, variables?: Record<string, unknown>): Promise<Outcome> {
  return { status: 200, bytes: Buffer.byteLength(JSON.stringify(await caller.graphql(query, variables))) }
}

const words = (count: number) => 'annual leave and travel policy '.repeat(count / 5)
const NODES = 'edges { node { id name sizeBytes checksum createdAt } }'

const REQUESTS: readonly WorstCase[] = [
  {
    scope: 'no key',
    what: 'a body of 19.8 MB',
    send: (_caller, { service }) => rest(createCaller(service, 'nobody'), 'POST', '/v1/chat/completions', 'a'.repeat(19.8 * MEBIBYTE)),
  },
  {
    scope: 'any key',
    what: 'variables of 1 MB that fit no type',
    send: (caller) =>
      graphql(caller, 'query($i:SearchInput!){searchCollection(input:$i){cost}}', {
        i: Object.fromEntries(times(60_000, (index) => [`q${index}`, 1])),
      }),
  },
  {
    scope: 'inference',
    what: 'a chat of 19 MB',
    send: (caller) =>
      rest(caller, 'POST', '/v1/chat/completions', {
        model: 'mock-chat',
        messages: [{ role: 'user', content: 'a'.repeat(19 * MEBIBYTE) }],
      }),
  },
  {
    scope: 'inference',
    what: '585 texts of 512 tokens for the embedded model',
    send: (caller) => rest(caller, 'POST', '/v1/embeddings', { model: 'e5-small-ar-en', input: times(585, () => words(400)) }),
  },
  {
    scope: 'inference',
    what: '32,000 tokens for the extractive model',
    send: (caller) =>
      rest(caller, 'POST', '/v1/chat/completions', {
        model: 'extractive',
        messages: [{ role: 'user', content: `${'Leave is thirty days. '.repeat(4_500)}\n\nHow long is leave?` }],
      }),
  },
  {
    scope: 'knowledge:read',
    what: 'a search of 480 tokens, 50 hits',
    send: (caller, { collection }) => rest(caller, 'POST', `/v1/collections/${collection}/search`, { query: words(470), limit: 50 }),
  },
  {
    scope: 'knowledge:read',
    what: 'lists, up to the bound of nodes',
    send: (caller) => graphql(caller, `{ ${times(15, (n) => `a${n}: files(first: 100) { ${NODES} }`).join(' ')} }`),
  },
  {
    scope: 'knowledge:write',
    what: 'an upload of 25 MiB',
    send: (caller) =>
      rest(caller, 'POST', '/v1/files', { file_name: 'large.txt', content_base64: Buffer.alloc(25 * MEBIBYTE, 'a').toString('base64') }),
  },
  {
    scope: 'knowledge:write',
    what: 'a PDF of 300 pages, ingested',
    async send(caller, { admin, collection }) {
      const content_base64 = (await createPdf(300)).toString('base64')
      const uploaded = await caller.rest('POST', '/v1/files', { file_name: 'long.pdf', content_base64 })
      const attached = await caller.rest('POST', `/v1/collections/${collection}/documents`, { file_id: uploaded.body.message.id })
      for (;;) {
        const { body } = await admin.rest('GET', `/v1/collections/${collection}/documents/${attached.body.id}`)
        if (body.status === 'ready' || body.status === 'failed') return { status: attached.status, bytes: 0 }
        await sleep(100)
      }
    },
  },
  {
    scope: 'agents',
    what: 'a run whose schema never ends judging',
    async send(caller) {
      const schema = { type: 'array', uniqueItems: true }
      const definition = {
        inputs: { type: 'object', properties: { x: {} } },
        nodes: [{ id: 'text', type: 'template', template: '{{ inputs.x | json }}', response_schema: schema }],
        output: null,
      }
      const response = await caller.rest('POST', '/v1/workflows', { code: 'dear', name: 'dear', definition })
      if (response.status !== 201) throw new Error(JSON.stringify(response.body))
      return rest(caller, 'POST', `/v1/workflows/${response.body.id}/runs`, { inputs: { x: times(12_000, (i) => [i]) }, wait: true })
    },
  },
  {
    scope: 'billing:read',
    what: 'a summary of usage by day, model, key and operation',
    send: (caller) => rest(caller, 'GET', '/v1/usage/summary?group_by=day,model,key,operation'),
  },
  { scope: 'admin', what: 'a list of 100 keys', send: (caller) => rest(caller, 'GET', '/v1/keys?limit=100') },
]

/** Measures what the most expensive request of each scope costs the service. */
export async function benchWorstCase(): Promise<BenchRow[]> {
  await using engine = await startMockEngine()
  const service = await startEmbedded({ catalog: testCatalog(engine.url), env: { KIS_LOG_LEVEL: 'error' } })
  try {
    const pid = service.processes.get('all')!.pid
    const admin = await newOrganization(createCaller(service, service.key), service, { creditUsd: '100' })
    const collection = (await newCollection(admin)).id
    await addDocument(admin, collection, 'first.txt', words(2_000))
    await using health = new Child('../../test/support/processes/health-process.ts', [service.rest])
    await health.nextMessage<string>()
    const rows: BenchRow[] = []
    for (const { scope, what, send } of REQUESTS) {
      const scopes = scope.includes(' ') ? ['inference'] : scope === 'agents' ? ['agents', 'inference'] : [scope]
      const response = await admin.rest('POST', '/v1/keys', { name: scope, scopes })
      const caller = createCaller(service, response.body.key)
      await caller.rest('GET', '/v1/models')
      await sleep(1_000)
      await health.request<object>({})
      const [cpuMs, resident, startMs] = [cpuMsOfTree(pid), residentBytesOfTree(pid), performance.now()]
      let peak = resident
      const sampling = setInterval(() => {
        peak = Math.max(peak, residentBytesOfTree(pid))
      }, SAMPLE_MS)
      const { status, bytes } = await Promise.race([
        send(caller, { service, admin, collection }),
        sleep(TIMEOUT_MS, { status: 0, bytes: 0 }, { ref: false }),
      ]).finally(() => clearInterval(sampling))

      const tookMs = performance.now() - startMs
      const { longestMs } = await health.request<{ longestMs: number }>({})
      rows.push({
        what: `${scope}: ${what}`,
        figure: `${cpuMsOfTree(pid) - cpuMs} ms CPU, ${Math.round((peak - resident) / MEBIBYTE)} MB more at its peak`,
        target: '/healthz ≤ 500 ms',
        beside: `status ${status}, answer ${(bytes / 1024).toFixed(1)} KB, ${Math.round(tookMs)} ms; /healthz at most ${Math.round(longestMs)} ms`,
      })
    }
    return rows
  } finally {
    await service.close()
  }
}
