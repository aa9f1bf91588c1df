import { readFile } from 'node:fs/promises'
import { silentLog } from '../subgraphs/common/process/log.ts'
import { WordTokenizer } from '../subgraphs/inference/adapters/embedded/word-tokenizer.ts'
import { openDocumentParser } from '../subgraphs/knowledge/adapters/parser/open-document-parser.ts'
import { chunkDocument } from '../subgraphs/knowledge/domain/chunking/chunk-document.ts'
import { makeDocx, makePdf, makeTxt } from './documents.ts'
import type { BenchRow } from './row.ts'
import { cpuMsOfTree } from './support/process-tree.ts'

const PAGES = 200
const MODEL = new URL('../models/e5-small-ar-en/', import.meta.url)

/**
 * Parsing and chunking, without embedding. It uses the service's own parser processes and tokenizer, and a new process
 * for each file.
 */
export async function benchIngestion(): Promise<BenchRow[]> {
  const json = async (name: string) => JSON.parse(await readFile(new URL(name, MODEL), 'utf8')) as object
  const tokenizer = new WordTokenizer(await json('tokenizer.json'), await json('tokenizer_config.json'))
  const { signal } = new AbortController()
  const options = { countTokens: async (texts: readonly string[]) => texts.map((text) => tokenizer.count(text)), signal }
  await using parser = await openDocumentParser({ log: silentLog })

  const rows: BenchRow[] = []
  for (const [name, bytes, bar] of [
    ['TXT', makeTxt(PAGES), 100],
    ['DOCX', await makeDocx(PAGES), 100],
    ['PDF', await makePdf(PAGES), 20],
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
      bar: `≥ ${bar} pages/s per core`,
      beside: `chunking alone ${perSecond(end - parsed)} pages/s`,
    })
  }
  return rows
}
