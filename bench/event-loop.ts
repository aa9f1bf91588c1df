import { testCatalog } from '../test/support/catalog.ts'
import { addDocument, type Caller, newCollection } from '../test/support/client.ts'
import { startMockEngine } from '../test/support/engines/mock-engine.ts'
import { createDocx, createPdf, createTxt } from './documents.ts'
import type { BenchRow } from './row.ts'
import { Child } from './support/child.ts'
import type { Delay, Started } from './support/event-loop-process.ts'
import { delayText, WatchedService } from './support/watched-service.ts'

const PAGES = 100
/** Pages that are searched. The service's own model embeds them, at about 0.1 s each. */
const SEARCHED_PAGES = 10
const QUESTION = 'How many days of paid leave do I get?'

/**
 * Measures the event-loop delay of the service while it ingests three long documents and is searched without a pause. A
 * mock returns the documents' embeddings at once, so that indexing is busier than with the embedded model.
 */
export async function benchEventLoop(): Promise<BenchRow[]> {
  await using engine = await startMockEngine()
  await using service = await WatchedService.start(testCatalog(engine.url))
  await using idle = new Child('./event-loop-process.ts', ['idle'])
  await idle.nextMessage<Started>()
  const { caller } = service

  const searched = (await newCollection(caller)).id
  await addDocument(caller, searched, 'searched.txt', createTxt(SEARCHED_PAGES))
  const filled = (await newCollection(caller, 'mock-embed')).id
  const files = { 'a.txt': createTxt(PAGES), 'b.docx': await createDocx(PAGES), 'c.pdf': await createPdf(PAGES) }
  await Promise.all([service.delay(), idle.request<Delay>({})])
  let isOver = false
  const searching = searchUntil(caller, searched, () => isOver)
  const documents = await Promise.all(Object.entries(files).map(([name, bytes]) => addDocument(caller, filled, name, bytes)))
  isOver = true
  const searches = await searching
  const failed = documents.find(({ status }) => status !== 'ready')
  if (failed) throw new Error(JSON.stringify(failed))
  const [delay, reference] = await Promise.all([service.delay(), idle.request<Delay>({})])
  return [
    {
      what: `event loop delay while 3 × ${PAGES} pages are ingested, ${searches} searches meanwhile`,
      figure: delayText(delay),
      target: 'p99 ≤ 50 ms',
      beside: `an idle process ${delayText(reference)}`,
    },
  ]
}

/** Searches one after the other, and returns the number of searches. */
async function searchUntil(caller: Caller, collection: string, isOver: () => boolean): Promise<number> {
  let searches = 0
  while (!isOver()) {
    const { status, body } = await caller.rest('POST', `/v1/collections/${collection}/search`, { query: QUESTION })
    if (status !== 200) throw new Error(JSON.stringify(body))
    searches += 1
  }
  return searches
}
