import { CohereClient, CohereClientV2 } from 'cohere-ai'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { mockCatalog } from '../support/catalog.ts'
import { type Caller, createCaller, type Json, newOrganization } from '../support/client.ts'
import { type MockEngine, startMockEngine } from '../support/engines/mock-engine.ts'
import { type Service, startEmbedded } from '../support/processes/service.ts'

const query = 'annual leave days'
const documents = ['Meals are reimbursed.', 'Annual leave is thirty days.', 'يحق لكل موظف ثلاثون يوماً', 'Annual report']

let mock: MockEngine
let service: Service
let caller: Caller
beforeAll(async () => {
  mock = await startMockEngine()
  service = await startEmbedded({ catalog: mockCatalog(mock.url) })
  caller = await newOrganization(createCaller(service, service.key), service)
})
afterAll(async () => {
  await service?.close()
  await mock?.[Symbol.asyncDispose]()
})

const options = () => ({ token: caller.key, environment: service.rest, maxRetries: 0 })

it('the Cohere client, version 2, reads the order, the scores and the units', async () => {
  const { results, meta } = await new CohereClientV2(options()).rerank({ model: 'mock-rerank', query, documents, topN: 2 })
  expect(results.map(({ index, relevanceScore }) => [index, relevanceScore])).toEqual([
    [1, 1],
    [3, 1 / 3],
  ])
  expect(meta?.billedUnits?.searchUnits).toBe(1)
})

it('the Cohere client, version 1, sends documents as objects, and receives them back', async () => {
  const input = { model: 'mock-rerank', query, documents: documents.map((text) => ({ text })), topN: 2, returnDocuments: true }
  const { results } = await new CohereClient(options()).rerank(input)
  expect(results.map(({ document }) => document?.text)).toEqual([documents[1], documents[3]])
  expect(mock.requests.at(-1)).toMatchObject({ query, documents })
})

it('the Cohere client reports what was wrong', async () => {
  const error = await new CohereClientV2(options()).rerank({ model: 'absent', query, documents }).catch((thrown: Json) => thrown)
  expect(error).toMatchObject({ statusCode: 404, body: { error: { code: 'model_not_found' } } })
})
