import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openDocumentParser } from '../../subgraphs/knowledge/adapters/parser/open-document-parser.ts'
import { sniffMediaType } from '../../subgraphs/knowledge/adapters/parser/sniff.ts'
import { READABLE } from '../../subgraphs/knowledge/domain/media-types.ts'
import { type DocumentParser, type ParsedDocument, ParseFailure } from '../../subgraphs/knowledge/ports/document-parser.ts'
import { type FileToRead, seedFiles, spoiledFile } from '../support/data/spoiled-files.ts'
import { eventually } from '../support/eventually.ts'
import { FUZZ_TIMEOUT_MS, fuzz } from '../support/fuzz.ts'

/** The parser's time limit here. A file that is made to take long ends by it, as `timeout`. */
const LIMIT_MS = 20_000
/** By then the process of a file that took too long has ended, on a busy machine too. */
const ENDED_MS = LIMIT_MS + 30_000
/** Files that are read at once: as many as there are places. */
const AT_ONCE = 2

const KINDS = new Set(['heading', 'paragraph', 'list_item', 'table_row', 'code'])

/** What is wrong with a document that was read, or null. */
function findFault({ text, blocks }: ParsedDocument): string | null {
  if (!text.isWellFormed()) return 'its text is not well-formed'
  if (/[\u0000-\u0008\u000b-\u001f\u007f]/.test(text)) return 'its text has control characters'
  let end = 0
  for (const { kind, charStart, charEnd } of blocks) {
    if (!KINDS.has(kind) || charStart < end || charEnd <= charStart || charEnd > text.length)
      return `a block ${kind} from ${charStart} to ${charEnd} after ${end}`
    end = charEnd
  }
  return null
}

async function judge(parser: DocumentParser, { name, bytes }: FileToRead): Promise<string | null> {
  const startedMs = performance.now()
  const fault = await parser.parse(bytes, name, new AbortController().signal).then(findFault, (error: unknown) => {
    if (error instanceof ParseFailure) return null
    return error instanceof Error ? error.message : String(error)
  })
  if (fault !== null) return `${name}: ${fault}`
  return performance.now() - startedMs > ENDED_MS ? `${name}: it was not ended in time` : null
}

/** Processes that this one has started and that have not ended. */
function children(): number {
  const tasks = `/proc/${process.pid}/task`
  return readdirSync(tasks).reduce(
    (sum, task) => sum + readFileSync(`${tasks}/${task}/children`, 'utf8').split(' ').filter(Boolean).length,
    0,
  )
}

it('corrupts files of every supported format', async () => {
  const formats = new Set((await seedFiles()).map(({ bytes, name }) => sniffMediaType(bytes, name)))
  expect(READABLE.filter((format) => !formats.has(format))).toEqual([])
})

it(
  'any file ends in a document or a known failure, in time, without a remaining process',
  async () => {
    const before = children()
    const seeds = await seedFiles()
    const parser = await openDocumentParser({ log: silentLog, limits: { timeoutMs: LIMIT_MS } })
    const files = fc.tuple(...Array.from({ length: AT_ONCE }, () => spoiledFile(seeds)))
    const { faults } = await fuzz(
      'parsers',
      files,
      async (some) => {
        const found = (await Promise.all(some.map((file) => judge(parser, file)))).filter((fault) => fault !== null)
        return found.length > 0 ? found.join('; ') : null
      },
      (some) =>
        some
          .map(({ name, bytes }) => `${name} of ${bytes.length} bytes: ${JSON.stringify(bytes.toString('latin1').slice(0, 300))}`)
          .join(' and '),
    )
    // The spare that waits for the next document.
    await eventually(() => children() <= before + 1)
    await parser[Symbol.asyncDispose]()
    await eventually(() => children() === before)
    expect(faults.join('\n\n')).toBe('')
  },
  FUZZ_TIMEOUT_MS,
)
