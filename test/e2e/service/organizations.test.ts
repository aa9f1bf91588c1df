import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { addDocument, base64, type Caller, createCaller, newCollection, newOrganization } from '../../support/client.ts'
import { rawCopies } from '../../support/data/raw-files.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const WORD = 'Zorblaxianism'
/** Keys are believed for 3.5 s, and open streams are looked at each second. */
const KNOWN_WITHIN_MS = 30_000

describe('Operator', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-organizations-'))
  let mock: MockEngine
  let service: Service
  let operator: Caller
  const start = async () => {
    service = await startEmbedded({ folder, catalog: testCatalog(mock.url) })
    operator = createCaller(service, operator?.key ?? service.key)
  }
  beforeAll(async () => {
    mock = await startMockEngine()
    await start()
  }, 90_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  it('suspends an organization: its streams end, its keys are refused with a specific error, and it works again after resuming', async () => {
    const tenant = await newOrganization(operator, service)
    const path = `/v1/organizations/${tenant.organizationId}`
    const chat = (word: string) => ({ model: 'mock-chat', messages: [{ role: 'user' as const, content: `please ${word}` }] })
    const stream = await tenant.openai.chat.completions.create({ ...chat('hang'), stream: true })
    const pieces = stream[Symbol.asyncIterator]()
    await pieces.next()
    const { body } = await operator.rest('POST', `${path}/suspend`, { reason: 'unpaid' })
    expect(body).toMatchObject({ status: 'suspended', suspension_reason: 'unpaid' })
    const ended = (async () => {
      while (!(await pieces.next()).done);
    })()
    await expect(ended).rejects.toMatchObject({ code: 'organization_suspended' })
    expect(await tenant.rest('GET', '/v1/collections')).toMatchObject({ status: 403, body: { error: { code: 'organization_suspended' } } })
    const overGraphql = await tenant.graphql('{ organization { id } }')
    expect(overGraphql.errors?.[0]?.extensions.code).toBe('ORGANIZATION_SUSPENDED')
    await eventually(async () => (await operator.rest('GET', path)).body.wallet.held_usd === '0')

    expect((await operator.rest('POST', `${path}/resume`)).body).toMatchObject({ status: 'active', suspended_at: null })
    await eventually(async () => (await tenant.rest('GET', '/v1/collections')).status === 200, KNOWN_WITHIN_MS)
    await tenant.openai.chat.completions.create(chat('hi'))
    expect((await operator.rest('GET', `${path}/changes`)).body.data).toMatchObject([{ kind: 'resumed' }, { kind: 'suspended' }])
  }, 90_000)

  it('reads and limits an organization, whose own admin can do neither with another', async () => {
    const tenant = await newOrganization(operator, service, { name: 'Harbour Bank' })
    const path = `/v1/organizations/${tenant.organizationId}`
    await tenant.rest('POST', '/v1/files', { file_name: 'a.txt', content_base64: 'YWJj' })
    const limits = { storage_bytes: 4, vectors: null }
    expect((await operator.rest('PATCH', path, { limits })).body).toMatchObject({ limits: { storage_bytes: 4, vectors: null } })
    expect((await operator.rest('GET', path)).body).toMatchObject({
      ...{ name: 'Harbour Bank', status: 'active', plan: 'self-hosted', limits_in_force: { storage_bytes: 4, vectors: 1_000_000 } },
      ...{ quota: { storage_bytes: { used: 3, limit: 4 } }, wallet: { balance_usd: '10', held_usd: '0' } },
    })
    expect((await operator.rest('GET', '/v1/organizations?name=harbour&status=active')).body.data).toMatchObject([
      { id: tenant.organizationId },
    ])
    expect((await operator.rest('GET', `${path}/wallet/entries`)).body.data).toMatchObject([{ kind: 'top_up' }])
    expect((await operator.rest('GET', `${path}/usage/summary`)).body).toMatchObject({ total: { calls: 0 } })
    // The same bytes would count once.
    let uploads = 0
    const upload = () => tenant.rest('POST', '/v1/files', { file_name: 'b.txt', content_base64: base64(`b${uploads++}`) })
    await eventually(async () => (await upload()).body.error?.code === 'storage_quota_exceeded', KNOWN_WITHIN_MS)

    const another = await newOrganization(operator, service)
    for (const below of ['', '/wallet', '/wallet/entries', '/usage/summary'])
      expect((await another.rest('GET', path + below)).body.error).toMatchObject({ code: 'not_found' })
    for (const [method, below, body] of [
      ['DELETE', '', undefined],
      ['PATCH', '', { limits: {} }],
      ['POST', '/suspend', {}],
      ['POST', '/resume', undefined],
    ] as const)
      expect((await another.rest(method, path + below, body)).body.error).toMatchObject({ code: 'permission_denied' })
  }, 90_000)

  it('sees plans, queues and health, which no other key does; each key sees itself', async () => {
    const tenant = await newOrganization(operator, service)
    const created = await tenant.rest('POST', '/v1/keys', { name: 'narrow', scopes: ['inference'] })
    const narrow = createCaller(service, created.body.key)
    const { id: collectionId } = await newCollection(tenant)
    await addDocument(tenant, collectionId, 'a.md', '# A\nA text.')

    expect((await operator.rest('GET', '/v1/plans')).body.data).toContainEqual(
      expect.objectContaining({ code: 'self-hosted', limits: expect.objectContaining({ vectors: 1_000_000 }) }),
    )
    expect((await operator.rest('GET', '/v1/ingestion-queues')).body).toMatchObject({ object: 'list', has_more: false })
    expect((await operator.rest('GET', '/v1/health')).body.data).toEqual(
      ['billing', 'inference', 'knowledge'].map((part) => ({ object: 'part_health', part, is_ready: true, problems: [] })),
    )
    for (const path of ['/v1/plans', '/v1/ingestion-queues', '/v1/health'])
      for (const caller of [tenant, narrow])
        expect(await caller.rest('GET', path), path).toMatchObject({ status: 403, body: { error: { code: 'permission_denied' } } })

    const effects = '/v1/organization/residency-effects?policy=local_only'
    const ids = (models: readonly { readonly id: string }[]) => models.map(({ id }) => id)
    const { body } = await tenant.rest('GET', effects)
    expect(body.residencies).toEqual(['local'])
    expect(ids(body.permitted_models)).toContain('e5-small-ar-en')
    expect(body.forbidden_models.every(({ residency }: { residency: string }) => residency !== 'local')).toBe(true)
    expect(await narrow.rest('GET', effects)).toMatchObject({ status: 403, body: { error: { code: 'permission_denied' } } })
    expect((await narrow.rest('GET', '/v1/key')).body).toMatchObject({
      ...{ id: created.body.id, scopes: ['inference'], organization_id: tenant.organizationId, member: null },
    })
    expect((await tenant.rest('GET', '/v1/documents?status=ready')).body.data).toMatchObject([{ file_name: 'a.md', status: 'ready' }])
    expect((await tenant.rest('GET', '/v1/documents?status=failed')).body.data).toEqual([])
  }, 90_000)

  it('deletes an organization from the bytes of all files, through kills, and preserves its ledger', async () => {
    const tenant = await newOrganization(operator, service)
    const remaining = await newOrganization(operator, service)
    const path = `/v1/organizations/${tenant.organizationId}`
    const collection = await newCollection(tenant, 'mock-embed')
    for (let i = 0; i < 30; i++) await addDocument(tenant, collection.id, `${WORD}-${i}.md`, `# ${i}\n\n${WORD} meets on day ${i}.`)
    const agent = await tenant.rest('POST', '/v1/agents', { code: 'guide', name: WORD, model: 'mock-chat' })
    await tenant.rest('POST', `/v1/agents/${agent.body.id}/runs`, { input: WORD, keep_thread: true })
    const elsewhere = await newCollection(remaining, 'mock-embed')
    const stays = await addDocument(remaining, elsewhere.id, 'stays.md', 'The harbour stays.')

    const kill = async () => {
      await service.processes.get('all')!.end('SIGKILL')
      await start()
    }
    expect((await operator.rest('DELETE', path)).body).toMatchObject({ status: 'deleting' })
    await kill()
    expect((await createCaller(service, tenant.key).rest('GET', '/v1/collections')).body.error.code).toBe('invalid_api_key')
    await new Promise((resolve) => setTimeout(resolve, 6_000))
    await kill()
    await eventually(async () => {
      const { quota } = (await operator.rest('GET', path)).body
      return quota.storage_bytes.used === 0 && quota.vectors.used === 0
    }, 120_000)
    await eventually(() => Object.keys(rawCopies(join(folder, 'data'), [WORD, WORD.toLowerCase()])).length === 0, 90_000)
    const { body: ledger } = await operator.rest('GET', `${path}/wallet/entries?limit=100`)
    expect(ledger.data.at(-1)).toMatchObject({ kind: 'top_up' })
    const { body } = await createCaller(service, remaining.key).rest('GET', `/v1/collections/${elsewhere.id}/documents/${stays.id}`)
    expect(body.status).toBe('ready')
  }, 400_000)
})
