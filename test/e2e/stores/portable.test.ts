import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ArchiveReader } from '../../../cli/archive/archive-reader.ts'
import { REFERENCES } from '../../../cli/archive/references.ts'
import { mockCatalog } from '../../support/catalog.ts'
import {
  addDocument,
  type Caller,
  createCaller,
  type Json,
  newCollection,
  newOrganization,
  type RestResponse,
} from '../../support/client.ts'
import { ELASTICSEARCH, testIndices } from '../../support/engines/elasticsearch.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase } from '../../support/engines/mongodb.ts'
import { eventually } from '../../support/eventually.ts'
import { kis, launchKis, runKis } from '../../support/processes/cli.ts'
import { type Service, startEmbedded, TEST_SECRET } from '../../support/processes/service.ts'
import { soaking } from '../../support/soak.ts'

const QUESTION = 'how many days of leave are there'
const MONGODB = process.env.KIS_TEST_MONGODB_URL
const ELASTICSEARCH_URL = process.env[ELASTICSEARCH]
/** An address that may be named, where nothing answers. */
const NOWHERE = '127.0.0.1:9'
const HOOK = `http://${NOWHERE}/kis`
const KILLS = soaking ? 20 : 1
/** As much as a document may have. */
const MOST_METADATA = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`${'ح'.repeat(62)}${10 + i}`, 'ق'.repeat(512)]))
const PASSPHRASE = 'correct horse battery staple'

/** What users of an organization see of it. */
async function see(caller: Caller, collectionId: string, agentId: string, workflowId: string) {
  const search = async (mode: string) => {
    const { body } = await caller.rest('POST', `/v1/collections/${collectionId}/search`, { query: QUESTION, mode, limit: 10 })
    return body.data.map(({ chunk_id, text, score, file_name }: Json) => ({ chunk_id, text, score, file_name }))
  }
  const list = async (path: string) => (await caller.rest('GET', `${path}?limit=100`)).body.data
  const documents = await list(`/v1/collections/${collectionId}/documents`)
  const text = await caller.rest('GET', `/v1/collections/${collectionId}/documents/${documents[0].id}/text`)
  return {
    searches: [await search('hybrid'), await search('vector'), await search('lexical')],
    documents,
    text: text.body,
    agents: await list('/v1/agents'),
    versions: await list(`/v1/agents/${agentId}/versions`),
    runs: await list(`/v1/agents/${agentId}/runs`),
    workflowRuns: await list(`/v1/workflows/${workflowId}/runs`),
    members: await list('/v1/members'),
    questions: await list(`/v1/collections/${collectionId}/gold-questions`),
    quota: (await caller.graphql('{ quota { storageBytes { used } vectors { used } } }')).data,
  }
}

/** The texts in a record, also those that name members of an object. A list of texts has the path of the list. */
function pathsOf(value: unknown, path: readonly string[] = []): readonly { readonly path: readonly string[]; readonly text: string }[] {
  if (typeof value === 'string') return [{ path, text: value }]
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.flatMap((one) => pathsOf(one, typeof one === 'string' ? path : [...path, '*']))
  return Object.entries(value).flatMap(([name, one]) => [{ path: [...path, '$key'], text: name }, ...pathsOf(one, [...path, name])])
}

describe('kis export and kis import of one organization', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-portable-'))
  const archive = join(folder, 'one.kisorg')
  const elsewhere = join(folder, 'elsewhere')
  let mock: MockEngine
  let service: Service
  let tenant: Caller & { readonly organizationId: string }
  let collectionId: string
  let agentId: string
  let workflowId: string
  let response: RestResponse
  let seen: Awaited<ReturnType<typeof see>>
  let envOf: (baseFolder: string) => Record<string, string>
  const start = async () => {
    service = await startEmbedded({ catalog: mockCatalog(mock.url), folder, env: { KIS_EGRESS_ALLOW: NOWHERE } })
  }
  const run = (baseFolder: string, ...args: string[]) => runKis(envOf(baseFolder), ...args)

  beforeAll(async () => {
    mock = await startMockEngine()
    envOf = (baseFolder) => ({
      KIS_DATA_DIR: join(baseFolder, 'data'),
      KIS_CATALOG: join(baseFolder, 'catalog.yaml'),
      KIS_BACKUP_PASSPHRASE: PASSPHRASE,
    })
    await start()
    mkdirSync(elsewhere)
    writeFileSync(join(elsewhere, 'catalog.yaml'), mockCatalog(mock.url))
    tenant = await newOrganization(createCaller(service, service.key), service, { name: 'Harbour Bank' })
    const collection = await newCollection(tenant, 'mock-embed')
    collectionId = collection.id
    const addBook = (_: unknown, i: number) => {
      const text = Array.from({ length: 40 }, (_, n) => `Rule ${n} of book ${i}: there are ${n + i} days of leave.`).join('\n\n')
      return addDocument(tenant, collectionId, `book-${i}.md`, `# Book ${i}\n\n${text}`, i === 0 ? MOST_METADATA : undefined)
    }
    await Promise.all(Array.from({ length: 6 }, addBook))
    await tenant.rest('POST', `/v1/collections/${collectionId}/gold-questions`, {
      query: QUESTION,
      expected: [{ phrase: 'days of leave' }],
    })
    const agent = await tenant.rest('POST', '/v1/agents', {
      code: 'guide',
      name: 'Guide',
      model: 'mock-chat',
      collection_ids: [collectionId],
      mcp_servers: [{ name: 'tools', url: `http://${NOWHERE}/mcp`, headers: { authorization: 'Bearer of-the-tools' } }],
    })
    agentId = agent.body.id
    expect(agent).toMatchObject({ status: 201, body: { mcp_servers: [{ header_names: ['authorization'] }] } })
    // The server does not answer, so the run fails. It is kept with its events all the same.
    await tenant.rest('POST', `/v1/agents/${agentId}/runs`, { input: 'hello' })
    const plain = await tenant.rest('POST', '/v1/agents', { code: 'plain', name: 'Plain', model: 'mock-chat' })
    await tenant.rest('POST', `/v1/agents/${plain.body.id}/runs`, { input: 'hello', keep_thread: true })
    // A workflow run with events beside those of agents.
    const nodes = [{ id: 'end', type: 'template', template: 'done' }]
    const flow = await tenant.rest('POST', '/v1/workflows', {
      code: 'flow',
      name: 'Flow',
      definition: { nodes, output: '{{ nodes.end.text }}' },
    })
    workflowId = flow.body.id
    expect(await tenant.rest('POST', `/v1/workflows/${workflowId}/runs`, { inputs: {} })).toMatchObject({ status: 200 })
    await tenant.rest('POST', '/v1/webhooks', { url: HOOK, event_types: ['document.updated'] })
    response = await tenant.rest('POST', '/v1/chat/completions', { model: 'agent/plain', messages: [{ role: 'user', content: 'hello' }] })
    seen = await see(tenant, collectionId, agentId, workflowId)
  }, 120_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  it('exports one organization of a running service: all of it, no secret, and nothing of others', async () => {
    expect(seen.searches[0].length).toBeGreaterThan(3)
    const exported = await run(folder, 'export', archive, '--organization', tenant.organizationId, '--with-secret')
    expect(exported).toMatchObject({ code: 0, errors: '' })
    expect(exported.lines.join('\n')).toContain('1 collections, 6 documents, 2 agents, 1 workflows, 1 threads, 3 runs')
    const bytes = readFileSync(archive).toString('latin1')
    expect(bytes).not.toContain('of-the-tools')
    expect(bytes).not.toContain(tenant.key)
    expect(await run(folder, 'export', archive, '--organization', tenant.organizationId)).toMatchObject({ code: 2 })
    expect(await run(folder, 'export', `${archive}2`, '--organization', `org_${'0'.repeat(32)}`)).toMatchObject({
      code: 2,
      errors: expect.stringContaining('There is no organization'),
    })
    expect(existsSync(`${archive}2`)).toBe(false)
  }, 120_000)

  it('lists in its table every field of the records of a service that holds the ID of another record', async () => {
    const whole = join(folder, 'whole.kis')
    expect(await run(folder, 'export', whole, '--check')).toMatchObject({ code: 0, errors: '' })
    const records: { readonly kind: string; readonly record: Json }[] = []
    await (await ArchiveReader.open(whole)).read({
      records: async (kind, values) => void records.push(...values.map((record) => ({ kind, record }))),
      file: async () => undefined,
    })
    const ids = new Set(records.map(({ record }) => record._id).filter((id) => id?.includes('_')))
    const holding = records.flatMap(({ kind, record }) =>
      pathsOf(record)
        .filter(({ text }) => ids.has(text) && text !== record._id && text !== record.organizationId)
        .map(({ path }) => ({ kind, path })),
    )
    expect(holding.length).toBeGreaterThan(50)
    const isNamed = ({ kind, path }: (typeof holding)[number]) =>
      [...REFERENCES.get(kind)!.keys()].some((named) => {
        const fields = named.split('.')
        return fields.length === path.length && fields.every((field, i) => field === path[i] || (field === '*' && path[i] !== '$key'))
      })
    // Events say what was.
    const unnamed = holding
      .filter((one) => !one.path.includes('data') && !isNamed(one))
      .map(({ kind, path }) => `${kind} ${path.join('.')}`)
    expect([...new Set(unnamed)]).toEqual([])
  }, 120_000)

  it('refuses an import that would overwrite data, and one while a service uses the data directory', async () => {
    expect(await run(folder, 'import', archive)).toMatchObject({ code: 2, errors: expect.stringContaining('is in use') })
    await service.processes.get('all')!.end()
    const refused = await run(folder, 'import', archive)
    expect(refused).toMatchObject({ code: 2, errors: expect.stringContaining('already exists here') })
    expect(await run(folder, 'import', archive, '--as', 'new')).toMatchObject({
      code: 2,
      errors: expect.stringContaining('already exists here, in'),
    })
    await start()
    expect(await see(createCaller(service, tenant.key), collectionId, agentId, workflowId)).toEqual(seen)
  }, 120_000)

  it('imports it into another installation, through kills at any moment: the same searches, documents, agents and runs', async () => {
    const before = Date.now()
    expect(await launchKis(envOf(elsewhere), 'import', archive, '--check').ended).toMatchObject({ code: 0, errors: '' })
    const checkMs = Date.now() - before
    for (let kills = 0; kills < KILLS; kills++) {
      const { ended, kill } = launchKis(envOf(elsewhere), 'import', archive)
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, checkMs * (0.6 + 0.8 * Math.random())))])
      kill()
      await ended
    }
    const done = await run(elsewhere, 'import', archive)
    expect(done).toMatchObject({ code: 0, errors: '' })
    const repeated = await run(elsewhere, 'import', archive)
    expect(repeated.lines[0]).toContain('nothing was done')
    const key = repeated.lines.join('\n').match(/kis_live_[A-Za-z0-9]{36}/)![0]

    const other = await startEmbedded({ catalog: mockCatalog(mock.url), folder: elsewhere })
    try {
      const caller = createCaller(other, key)
      const operator = createCaller(other, other.key)
      const path = `/v1/organizations/${tenant.organizationId}`
      expect((await caller.rest('GET', '/v1/wallet')).body).toMatchObject({ balance_usd: '0' })
      expect((await caller.rest('GET', '/v1/usage')).body.data).toEqual([])
      // Questions are embedded, and are paid here.
      await operator.rest('POST', `${path}/top-ups`, { amount_usd: '10', reference: 'move' })
      expect(await see(caller, collectionId, agentId, workflowId)).toEqual(seen)
      expect((await caller.rest('GET', '/v1/webhooks')).body.data).toMatchObject([{ url: HOOK, is_active: false }])
      expect(await createCaller(other, tenant.key).rest('GET', '/v1/collections')).toMatchObject({ status: 401 })
      expect((await operator.rest('GET', path)).body).toMatchObject({ name: 'Harbour Bank', status: 'active' })
      expect(await kis(other, other.key, 'verify')).toMatchObject({ code: 0, errors: '' })
      const request = { model: 'agent/plain', messages: [{ role: 'user', content: 'hello' }] }
      const again = await caller.rest('POST', '/v1/chat/completions', request)
      expect(response).toMatchObject({ status: 200 })
      expect(again.body.choices).toEqual(response.body.choices)
      await operator.rest('DELETE', path)
      await eventually(async () => (await operator.rest('GET', path)).body.quota.storage_bytes.used === 0, 60_000)
    } finally {
      await other.close()
    }
  }, 400_000)

  it.skipIf(!MONGODB || !ELASTICSEARCH_URL)(
    'imports it into MongoDB and Elasticsearch beside a running service, and exports it from there',
    async () => {
      const enginesFolder = join(folder, 'engines')
      mkdirSync(enginesFolder)
      writeFileSync(join(enginesFolder, 'catalog.yaml'), mockCatalog(mock.url))
      const database = newDatabaseName()
      const indices = testIndices(ELASTICSEARCH_URL!)
      const stores = {
        KIS_SECRET: TEST_SECRET,
        KIS_MONGODB_URL: withDatabase(MONGODB!, database),
        KIS_ELASTICSEARCH_URL: ELASTICSEARCH_URL!,
        KIS_ELASTICSEARCH_PREFIX: indices.newPrefix(),
        KIS_ELASTICSEARCH_REPLICAS: '0',
      }
      const kisThere = (...args: string[]) => runKis({ ...envOf(enginesFolder), ...stores }, ...args)
      const other = await startEmbedded({ catalog: mockCatalog(mock.url), folder: enginesFolder, env: stores })
      try {
        const imported = await kisThere('import', archive)
        expect(imported).toMatchObject({ code: 0, errors: '' })
        const caller = createCaller(other, imported.lines.join('\n').match(/kis_live_[A-Za-z0-9]{36}/)![0])
        const path = `/v1/organizations/${tenant.organizationId}`
        await createCaller(other, other.key).rest('POST', `${path}/top-ups`, { amount_usd: '10', reference: 'move' })
        await eventually(async () => (await caller.rest('GET', '/v1/collections')).status === 200, 30_000)
        const there = await see(caller, collectionId, agentId, workflowId)
        // Elasticsearch keeps vectors as bytes, and ranks by shards: the same passages, with nearly the same scores.
        const { searches: _, ...rest } = there
        const { searches, ...expected } = seen
        expect(rest).toEqual(expected)
        expect(there.searches[0].length).toBe(searches[0].length)
        const second = join(folder, 'second.kisorg')
        expect(await kisThere('export', second, '--organization', tenant.organizationId)).toMatchObject({ code: 0, errors: '' })
        const fresh = join(folder, 'fresh')
        mkdirSync(fresh)
        writeFileSync(join(fresh, 'catalog.yaml'), mockCatalog(mock.url))
        const checked = await run(fresh, 'import', second, '--check')
        const lines = [expect.stringContaining('6 documents, 2 agents'), expect.stringContaining('Set by the archive: plan self-hosted')]
        expect(checked).toMatchObject({ code: 0, errors: '', lines })
      } finally {
        await other.close()
        await indices.dropAll()
        await dropServiceDatabases(MONGODB!, database)
      }
    },
    300_000,
  )
})
