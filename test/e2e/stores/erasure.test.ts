import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { addDocument, type Caller, createCaller, type Json, newCollection, newOrganization } from '../../support/client.ts'
import { rawCopies } from '../../support/data/raw-files.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { kis } from '../../support/processes/cli.ts'
import { clockWrongBy, type Service, startEmbedded } from '../../support/processes/service.ts'
import { soaking } from '../../support/soak.ts'

const KILLS = soaking ? 20 : 1
/** From the request, or the line `ready`, to the kill: a part counts, and erases 5 s later. */
const KILLED_WITHIN_MS = 7_000
/** An erasure waits 2 minutes for late writes. The clock of the last start is ahead, so that nobody waits. */
const AHEAD = clockWrongBy(300_000)
/** A part that was away at the start looks again after up to a minute. */
const ENDED_MS = 180_000

const SECRET = 'Zorblaxianism'
const ANN = 'Quixomatery'
const RETAINED = 'Frobnivoria'

describe('Erasure of a document, a person and an organization', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-erasure-'))
  const data = join(folder, 'data')
  let mock: MockEngine
  let service: Service
  let operatorKey: string
  let tenant: Caller & { readonly organizationId: string }
  let gone: Caller & { readonly organizationId: string }
  let collection: Json
  let document: Json
  let retainedCollection: Json
  let retained: Json
  const erasures: Json[] = []

  const start = async (env: Readonly<Record<string, string>> = {}) => {
    service = await startEmbedded({ folder, env, catalog: testCatalog(mock.url) })
    operatorKey ??= service.key
    tenant = tenant && { ...createCaller(service, tenant.key), organizationId: tenant.organizationId }
  }
  const rest = async (caller: Caller, method: string, path: string, body?: unknown): Promise<Json> => {
    const response = await caller.rest(method, path, body)
    if (response.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(response.body)}`)
    return response.body
  }
  const operator = () => createCaller(service, operatorKey)

  beforeAll(async () => {
    mock = await startMockEngine()
    await start()
    tenant = await newOrganization(operator(), service)
    gone = await newOrganization(operator(), service)
    for (const caller of [tenant, gone]) {
      // Each in a collection of its own: a search names all that it finds.
      const [created, others] = [await newCollection(caller, 'mock-embed'), await newCollection(caller, 'mock-embed')]
      const secret = await addDocument(caller, created.id, 'secret.md', `# Members\n\nThe members of ${SECRET} meet on Tuesdays.`)
      const other = await addDocument(caller, others.id, 'kept.md', `# Lamps\n\nThe lamps of ${RETAINED} are made of brass.`)
      if (caller === tenant) [collection, document, retainedCollection, retained] = [created, secret, others, other]
      const newAgent = (code: string, collectionId: string) =>
        rest(caller, 'POST', '/v1/agents', { code, name: 'Guide', model: 'extractive', collection_ids: [collectionId] })
      const [agent, annsAgent] = [await newAgent('guide', created.id), await newAgent('lamps', others.id)]
      // One run reads the document. One of Ann's reads the other.
      const run = await rest(caller, 'POST', `/v1/agents/${agent.id}/runs`, {
        input: `When do the members of ${SECRET} meet?`,
        keep_thread: true,
      })
      expect(run.output_text).toContain(SECRET)
      const { key, id } = await rest(caller, 'POST', '/v1/keys', { name: 'Ann', scopes: ['agents'] })
      const input = { input: `${ANN}: of what are the lamps of ${RETAINED}?`, keep_thread: true }
      await rest(createCaller(service, key), 'POST', `/v1/agents/${annsAgent.id}/runs`, input)
      if (caller === tenant) erasures.push({ key_ids: [id] })
    }
    erasures.push({ document_id: document.id })
  }, 120_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  /** A document is there as a whole, or not at all. */
  async function servesNothingHalf(): Promise<void> {
    const path = `/v1/collections/${collection.id}`
    const { status } = await tenant.rest('GET', `${path}/documents/${document.id}`)
    const { data: hits } = await rest(tenant, 'POST', `${path}/search`, { query: SECRET, mode: 'lexical' })
    const isThere = (await tenant.rest('GET', `${path}/documents/${document.id}`)).status === 200
    expect([200, 404]).toContain(status)
    const found = hits.some(({ document_id }: Json) => document_id === document.id)
    // It may have gone between the answers.
    if ((status === 200) === isThere) expect(found).toBe(isThere)
  }

  it(`continues through kills at random moments (${KILLS}), ends with receipts, and leaves nothing in the files`, async () => {
    await servesNothingHalf()
    for (const input of erasures) input.id = (await rest(tenant, 'POST', '/v1/erasures', input)).id
    const again = await rest(tenant, 'POST', '/v1/erasures', { document_id: document.id })
    expect(again.id).toBe(erasures[1].id)
    await rest(operator(), 'DELETE', `/v1/organizations/${gone.organizationId}`)
    for (let kill = 0; kill < KILLS; kill++) {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * KILLED_WITHIN_MS))
      await service.processes.get('all')!.end('SIGKILL')
      await start()
      await servesNothingHalf()
    }
    await service.close()
    await start(AHEAD)
    const receipt = async (id: string) => rest(tenant, 'GET', `/v1/erasures/${id}`)
    const ofGone = async () => (await rest(operator(), 'GET', `/v1/organizations/${gone.organizationId}/erasures`)).data[0]
    await eventually(async () => {
      const all = [...(await Promise.all(erasures.map(({ id }) => receipt(id)))), await ofGone()]
      return all.every(({ ended_at }) => ended_at !== null)
    }, ENDED_MS)

    const [person, ofDocument] = [await receipt(erasures[0].id), await receipt(erasures[1].id)]
    const counts = ({ erased }: Json) => Object.fromEntries(erased.map(({ kind, count }: Json) => [kind, count]))
    expect(counts(person)).toEqual({ agent_runs: 1, threads: 1 })
    expect(person).toMatchObject({ kind: 'person', kept: [{ kind: 'usage_records' }] })
    expect(counts(ofDocument)).toEqual({ documents: 1, passages: document.chunk_count, files: 1, agent_runs: 1, threads: 1 })
    expect(ofDocument).toMatchObject({ kind: 'document', document_id: document.id, kept: [] })
    expect(counts(await ofGone())).toMatchObject({
      collections: 2,
      documents: 2,
      files: 2,
      agents: 2,
      agent_runs: 2,
      threads: 2,
      api_keys: 2,
    })
    expect((await ofGone()).kept.map(({ kind }: Json) => kind)).toEqual([
      ...['organizations', 'wallets', 'ledger_entries', 'usage_records', 'usage_totals'],
    ])
    const { body } = await tenant.rest('GET', '/v1/erasures')
    expect(body.data.map(({ id }: Json) => id)).toEqual(erasures.map(({ id }) => id).reverse())
    await servesNothingHalf()
    expect((await tenant.rest('GET', `/v1/collections/${retainedCollection.id}/documents/${retained.id}`)).body.status).toBe('ready')
    const verified = await kis(service, operatorKey, 'verify')
    expect(verified.code, verified.errors).toBe(0)
    await service.close()
    expect(rawCopies(data, [SECRET, SECRET.toLowerCase(), ANN, ANN.toLowerCase()])).toEqual({})
  }, 600_000)
})
