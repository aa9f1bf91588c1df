import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { drawText, toScan } from '../../../subgraphs/knowledge/adapters/parser/test-support/scans.ts'
import {
  addDocument,
  balancedWallet,
  type Caller,
  createCaller,
  type Json,
  newCollection,
  newOrganization,
  settled,
} from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { onBothEngines } from '../../support/processes/replicas.ts'
import { type Service, type ServiceOptions, startEmbedded } from '../../support/processes/service.ts'

const createCatalog = (url: string) => `
engines:
  mock: { kind: openai, base_url: "${url}", api_key: "sk-mock", badge: cloud }
models:
  - { id: embed, engine: mock, kind: embedding, dimensions: 8, context_window: 512, price: { input: "0" } }
plans:
  scans: { ocr_pages: 3, ocr_page_price: "0.0015" }
`
const TIMEOUT_MS = 120_000

const scanOf = async (...texts: readonly string[]) => toScan(await Promise.all(texts.map((text) => drawText(text))))
const ofOcr = (body: Json) => body.data.filter(({ operation }: Json) => operation === 'ocr')

function ocrPages(start: (options: ServiceOptions) => Promise<Service>): void {
  let mock: MockEngine
  let service: Service
  let operator: Caller
  let caller: Caller & { readonly organizationId: string }
  beforeAll(async () => {
    mock = await startMockEngine()
    service = await start({ catalog: createCatalog(mock.url) })
    operator = createCaller(service, service.key)
    caller = await newOrganization(operator, service, { plan: 'scans' })
  }, TIMEOUT_MS)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
  })

  it('OCR pages are charged, counted in the month of the plan, and paid once', { timeout: TIMEOUT_MS }, async () => {
    const { id } = await newCollection(caller, 'embed')
    const path = `/v1/collections/${id}`
    await caller.rest('PATCH', path, { ocr: 'auto' })
    const first = await addDocument(caller, id, 'a.pdf', await scanOf('The archive opens at seven.', 'The harbour was rebuilt in winter.'))
    expect(first).toMatchObject({ status: 'ready', page_count: 2 })
    expect(ofOcr((await caller.rest('GET', '/v1/usage?limit=20')).body)).toEqual([
      expect.objectContaining({ pages: 2, amount_usd: '0.003', rates: { pages: '1500' }, source: 'counted', request_id: first.id }),
    ])
    expect((await caller.rest('GET', '/v1/organization')).body).toMatchObject({
      limits_in_force: { ocr_pages: 3 },
      quota: { ocr_pages: { used: 2, limit: 3 } },
    })

    const second = await addDocument(
      caller,
      id,
      'b.pdf',
      await scanOf('A kiln was fired with palm leaves.', 'The carpenters of the old town.'),
    )
    expect(second).toMatchObject({ status: 'failed', error: { code: 'insufficient_quota' } })
    expect(second.error.message).toContain('The plan allows 3 pages of OCR a month: 2 are used, 2 more are needed')
    await operator.rest('PATCH', `/v1/organizations/${caller.organizationId}`, { limits: { ocr_pages: 4 } })
    for (let ready = false; !ready; ) {
      // What is no call of a model takes up to 5 s to know of the limit.
      await caller.rest('POST', `${path}/documents/${second.id}/retry`)
      ready = (await settled(caller, id, second.id)).status === 'ready'
    }
    expect((await operator.rest('GET', `/v1/organizations/${caller.organizationId}`)).body.quota.ocr_pages).toEqual({ used: 4, limit: 4 })
    const { body: summary } = await caller.rest('GET', '/v1/usage/summary?group_by=operation&operation=ocr')
    expect(summary.total).toMatchObject({ calls: 2, pages: 4, amount_usd: '0.006' })
    expect((await balancedWallet(caller)).balance_usd).toBe('9.994')
    const { data } = await caller.graphql(
      '{ organization { ocrQuota { used limit resetsAt } plan { ocrPages ocrPagePrice } } usage(first: 9) { edges { node { operation quantities { unit quantity rate } } } } }',
    )
    expect(data.organization).toMatchObject({
      ocrQuota: { used: 4, limit: 4, resetsAt: expect.stringMatching(/-01T00:00:00/) },
      plan: { ocrPages: 4, ocrPagePrice: '0.0015' },
    })
    expect(data.usage.edges.map(({ node }: Json) => node)).toContainEqual({
      operation: 'OCR',
      quantities: [{ unit: 'PAGES', quantity: 2, rate: '1500' }],
    })
  })
}

describe('OCR pages in one process', () => ocrPages(startEmbedded))
await onBothEngines('OCR pages in five processes on the engines', (start) =>
  describe('OCR pages in five processes on the engines', () => ocrPages(start)),
)
