import { join } from 'node:path'
import { expect, it } from 'vitest'
import { addReady, newCollection, newWorld } from '../../../../test/support/data/knowledge-library.ts'
import { temporaryFolder } from '../../../../test/support/data/temporary-folder.ts'
import { createContext, depsOn, errorCode, FakeInference, plainParser, principal } from '../../../../test/support/knowledge.ts'
import { silentLog } from '../../../common/process/log.ts'
import { openSqliteChunkIndex } from '../../adapters/sqlite/chunk-index.ts'
import type { DocumentParser, ParsedDocument } from '../../ports/document-parser.ts'
import { searchCollection } from '../search/search-collection.ts'
import { rebuildIndex } from './rebuild-index.ts'

const folder = temporaryFolder()
const context = createContext()
const operator = createContext({ ...principal, scopes: ['operator'] })

/**
 * Yields a heading, and a row below a table's header row. Searches find words of both, although the chunk does not
 * contain them.
 */
const tableParser: DocumentParser = {
  ...plainParser,
  async parse(): Promise<ParsedDocument> {
    const text = `Lighthouses\n\n${'tower '.repeat(400)}\n\n${'granite '.repeat(400)}`
    const second = text.indexOf('granite')
    return {
      mediaType: 'text/plain',
      text,
      blocks: [
        { kind: 'heading', level: 1, charStart: 0, charEnd: 11 },
        { kind: 'paragraph', charStart: 13, charEnd: second - 2 },
        { kind: 'table_row', tableHeader: 'Material', charStart: second, charEnd: text.length },
      ],
      pageCount: null,
      warnings: [],
      unread: [],
      hasFiles: false,
    }
  },
}

it('a rebuild assigns chunks the same terms as ingestion, and embeds nothing', async () => {
  await using index = await openSqliteChunkIndex({ file: join(folder, 'index.sqlite'), log: silentLog })
  const inference = new FakeInference()
  const deps = depsOn(newWorld({ index, inference, parser: tableParser }))
  const collectionId = await newCollection(deps)
  await addReady(deps, collectionId, 'a.txt', 'any')
  const search = async (query: string) =>
    (await searchCollection(deps, context, { collectionId, query, limit: 50, mode: 'lexical', filter: null })).hits
  const before = await Promise.all(['material', 'lighthouses', 'granite'].map(search))
  expect(before.map((hits) => hits.length > 0)).toEqual([true, true, true])

  const paid = inference.batches
  let chunks = 0
  let after: string | null = null
  do {
    const step = await rebuildIndex(deps, operator, after)
    chunks += step.chunks
    after = step.next
  } while (after !== null)
  expect(chunks).toBe((await index.listCollections('', 1))[0]?.chunks)
  expect(await Promise.all(['material', 'lighthouses', 'granite'].map(search))).toEqual(before)
  expect(inference.batches).toBe(paid)
  expect(await rebuildIndex(deps, createContext({ ...principal, scopes: ['admin'] }), null).then(() => 'none', errorCode)).toBe(
    'permission_denied',
  )
})
