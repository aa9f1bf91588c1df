import { testCatalog } from '../test/support/catalog.ts'
import { addDocument, base64, type Caller, createCaller, type Json, newCollection, newOrganization } from '../test/support/client.ts'
import { startMockEngine } from '../test/support/engines/mock-engine.ts'
import { startEmbedded } from '../test/support/processes/service.ts'
import type { BenchRow } from './row.ts'
import { quantile } from './support/quantile.ts'

const FLOOD = 2_000
/** Number of single documents, ingested one after the other, alone and then beside the flood. */
const SINGLES = 15
const AT_ONCE = 8

/**
 * Measures the time of one organization's single document, alone and beside another organization's flood in the queue.
 */
export async function benchFlood(): Promise<BenchRow[]> {
  await using engine = await startMockEngine()
  const service = await startEmbedded({ catalog: testCatalog(engine.url), env: { KIS_LOG_LEVEL: 'error' } })
  try {
    const operator = createCaller(service, service.key)
    const [greedy, modest] = [
      await newOrganization(operator, service, { creditUsd: '100' }),
      await newOrganization(operator, service, { creditUsd: '100' }),
    ]
    await addSingles(modest, 'warm')
    const alone = await addSingles(modest, 'alone')
    const many = await newCollection(greedy)
    let next = 0
    const flood = async () => {
      while (next < FLOOD) await attach(greedy, many.id, `many-${next++}`)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, flood))
    const before = await countReady(greedy, many.id)
    const beside = await addSingles(modest, 'beside')
    const after = await countReady(greedy, many.id)
    const ms = (times: readonly number[]) => `p50 ${quantile(times, 0.5).toFixed(0)} ms, p90 ${quantile(times, 0.9).toFixed(0)} ms`
    return [
      {
        what: `a document beside ${FLOOD} of another organization in the queue`,
        figure: `${(quantile(beside, 0.5) / quantile(alone, 0.5)).toFixed(1)} × its time alone: ${ms(beside)}`,
        target: '≤ 2 ×',
        beside: `alone ${ms(alone)}; of the ${FLOOD}, ${before} were ready when the ${SINGLES} began, and ${after} when they ended`,
      },
    ]
  } finally {
    await service.close()
  }
}

const textOf = (name: string) => Array.from({ length: 4 }, (_, i) => `${name}, part ${i}. The harbour was built in 1931.`).join('\n\n')

async function attach(caller: Caller, collectionId: string, name: string): Promise<void> {
  const file = await caller.rest('POST', '/v1/files', { file_name: `${name}.md`, content_base64: base64(textOf(name)) })
  const { status, body } = await caller.rest('POST', `/v1/collections/${collectionId}/documents`, { file_id: file.body.message.id })
  if (status !== 201) throw new Error(JSON.stringify(body))
}

/** Returns the times from the call until the document is ready, in ms. */
async function addSingles(caller: Caller, name: string): Promise<number[]> {
  const { id } = await newCollection(caller)
  const times: number[] = []
  for (let i = 0; i < SINGLES; i++) {
    const begun = performance.now()
    const { status }: Json = await addDocument(caller, id, `${name}-${i}.md`, textOf(`${name}-${i}`))
    if (status !== 'ready') throw new Error(`the document is ${status}`)
    times.push(performance.now() - begun)
  }
  return times
}

async function countReady(caller: Caller, id: string): Promise<number> {
  const query = 'query ($id: ID!) { collection(id: $id) { documents(status: READY, first: 1) { totalCount } } }'
  const { data, errors } = await caller.graphql(query, { id })
  if (errors) throw new Error(JSON.stringify(errors))
  return data.collection.documents.totalCount
}
