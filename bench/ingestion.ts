import { setTimeout as sleep } from 'node:timers/promises'
import { silentLog } from '../subgraphs/common/process/log.ts'
import { WordTokenizer } from '../subgraphs/inference/adapters/embedded/tokenizer/word-tokenizer.ts'
import { openDocumentParser } from '../subgraphs/knowledge/adapters/parser/open-document-parser.ts'
import { chunkDocument } from '../subgraphs/knowledge/domain/chunking/chunk-document.ts'
import { testCatalog } from '../test/support/catalog.ts'
import { newCollection } from '../test/support/client.ts'
import { startMockEngine } from '../test/support/engines/mock-engine.ts'
import { createArabicPdf, createDocx, createPdf, createTxt } from './documents.ts'
import type { BenchRow } from './row.ts'
import { cpuMsOfTree, residentBytes } from './support/process-tree.ts'
import { delayText, WatchedService } from './support/watched-service.ts'

const PAGES = 200
const MODEL = new URL('../models/e5-small-ar-en/', import.meta.url)

const ARABIC_PAGES = 300
/** A word of the first page that no other word of the document can produce. */
const FIRST_WORD = 'بغداذي'
/** Chunks of the first batch. The measurement starts after it. */
const FIRST_CHUNKS = 16
const POLL_MS = 250
const MAX_WAIT_MS = 600_000

export async function benchIngestion(): Promise<BenchRow[]> {
  return [...(await benchParsing()), ...(await benchArabicBook())]
}

/** Measures how the whole service parses, embeds and indexes a long PDF in Arabic with the embedded model. */
async function benchArabicBook(): Promise<BenchRow[]> {
  const pdf = createArabicPdf(ARABIC_PAGES, FIRST_WORD)
  await using engine = await startMockEngine()
  await using service = await WatchedService.start(testCatalog(engine.url))
  const { caller, pid } = service
  const collection = `/v1/collections/${(await newCollection(caller)).id}`
  const request = async (method: string, path: string, body?: object) => {
    const response = await caller.rest(method, path, body)
    if (response.status >= 400) throw new Error(JSON.stringify(response.body))
    return response.body
  }
  const attach = async (name: string, content: Buffer): Promise<string> => {
    const file = await request('POST', '/v1/files', { file_name: name, content_base64: content.toString('base64') })
    return (await request('POST', `${collection}/documents`, { file_id: file.message.id })).id
  }
  const read = (id: string) => request('GET', `${collection}/documents/${id}`)
  const until = async <T>(poll: () => Promise<T | null>): Promise<T> => {
    for (const start = performance.now(); performance.now() - start < MAX_WAIT_MS; await sleep(POLL_MS)) {
      const found = await poll()
      if (found !== null) return found
    }
    throw new Error('the document was not ingested in time')
  }
  // A small document loads the model, the parser and all code before the idle service is measured.
  const small = await attach('small.pdf', createArabicPdf(2, 'أول'))
  await until(async () => ((await read(small)).status === 'ready' ? true : null))
  const idleBytes = residentBytes(pid)
  let mostBytes = idleBytes
  await service.delay()

  const start = performance.now()
  const id = await attach('book.pdf', pdf)
  const find = async () => (await request('POST', `${collection}/search`, { query: FIRST_WORD, mode: 'lexical', limit: 1 })).data[0] ?? null
  const hit = await until(async () => {
    mostBytes = Math.max(mostBytes, residentBytes(pid))
    return find()
  })
  const [foundAt, cpuAtFirst] = [performance.now(), cpuMsOfTree(pid)]
  const ready = await until(async () => {
    mostBytes = Math.max(mostBytes, residentBytes(pid))
    const document = await read(id)
    if (document.status === 'failed') throw new Error(JSON.stringify(document))
    return document.status === 'ready' ? document : null
  })
  const rest = ready.chunk_count - FIRST_CHUNKS
  const seconds = (performance.now() - foundAt) / 1_000
  const cpuMs = (cpuMsOfTree(pid) - cpuAtFirst) / rest
  const delay = await service.delay()
  const { text } = await request('GET', `${collection}/documents/${id}/text?length=262144`)
  const { data } = await request('GET', `${collection}/documents/${id}/chunks?limit=100`)
  const tokenizer = await WordTokenizer.load(MODEL)
  const tokens = data.reduce((sum: number, chunk: { readonly text: string }) => sum + tokenizer.count(chunk.text), 0) / data.length
  const what = `PDF of ${ARABIC_PAGES} pages in Arabic, ${ready.chunk_count} passages of ${Math.round(tokens)} tokens`
  if (!text.includes(FIRST_WORD)) throw new Error('the first page was not read')
  return [
    {
      what: `${what}: embedding and indexing`,
      figure: `${(rest / seconds).toFixed(1)} passages/s; ${cpuMs.toFixed(0)} ms of CPU each, all processes`,
      target: '≥ 12 passages/s on 2 cores',
      beside: `ready after ${((performance.now() - start) / 1_000).toFixed(1)} s`,
    },
    {
      what: 'its first page is found after',
      figure: `${((foundAt - start) / 1_000).toFixed(1)} s, when the document is \`${hit.document_status}\``,
      target: 'within seconds, before it is ready',
      beside: '',
    },
    { what: 'event loop delay meanwhile', figure: delayText(delay), target: 'p99 ≤ 50 ms', beside: '' },
    {
      what: 'memory of the main process meanwhile',
      figure: `${megabytes(mostBytes - idleBytes)} MB above idle`,
      target: '≤ 150 MB above idle',
      beside: `idle ${megabytes(idleBytes)} MB`,
    },
  ]
}

const megabytes = (bytes: number) => Math.round(bytes / 1e6)

/**
 * Measures parsing and chunking without embedding, with the service's own parser processes and tokenizer, and a new
 * process for each file.
 */
async function benchParsing(): Promise<BenchRow[]> {
  const tokenizer = await WordTokenizer.load(MODEL)
  const { signal } = new AbortController()
  const options = { countTokens: async (texts: readonly string[]) => texts.map((text) => tokenizer.count(text)), signal }
  await using parser = await openDocumentParser({ log: silentLog })

  const rows: BenchRow[] = []
  for (const [name, bytes, target] of [
    ['TXT', createTxt(PAGES), 100],
    ['DOCX', await createDocx(PAGES), 100],
    ['PDF', await createPdf(PAGES), 20],
  ] as const) {
    const cpuBefore = cpuMsOfTree(process.pid)
    const start = performance.now()
    const document = await parser.parse(bytes, `bench.${name.toLowerCase()}`, signal)
    const parsed = performance.now()
    const chunks = await chunkDocument(document, options)
    const end = performance.now()
    const cpuMs = cpuMsOfTree(process.pid) - cpuBefore
    const perSecond = (ms: number) => Math.round((PAGES * 1_000) / ms)
    rows.push({
      what: `parsing and chunking, ${name} of ${PAGES} pages`,
      figure: `${perSecond(cpuMs)} pages/s of one core's CPU, ${perSecond(end - start)} of wall time; ${chunks.length} chunks`,
      target: `≥ ${target} pages/s per core`,
      beside: `chunking alone ${perSecond(end - parsed)} pages/s`,
    })
  }
  return rows
}
