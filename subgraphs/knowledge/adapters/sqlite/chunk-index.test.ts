import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { silentLog } from '../../../common/process/log.ts'
import { openSqliteChunkIndex } from './chunk-index.ts'

const folder = mkdtempSync(join(tmpdir(), 'kis-chunk-index-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('refuses searches of an organization when many of its own wait, but none of its other reads', async () => {
  const options = { file: join(folder, 'index.sqlite'), log: silentLog }
  {
    await using index = await openSqliteChunkIndex(options)
    for (const of of ['a', 'b']) await index.createCollection({ organizationId: `org_${of}`, collectionId: `col_${of}`, dimensions: 2 })
  }
  await using index = await openSqliteChunkIndex(options)
  await index.createCollection({ organizationId: 'org_c', collectionId: 'col_c', dimensions: 2 })
  const search = (collectionId: string) => {
    const query = { collectionId, vector: null, words: ['cedar'], grams: [], candidates: 10, filter: null }
    return index.search(query, new AbortController().signal)
  }
  const searches = Array.from({ length: 300 }, () => search('col_a'))
  const others = [
    search('col_b'),
    search('col_c'),
    search('col_none'),
    index.ordinals('col_a', 'doc_1', 'g1'),
    index.get('col_a', ['chunk_1']),
    index.hasCollection('col_a'),
    index.listCollections('', 10),
  ]
  const settled = await Promise.allSettled(searches)
  // Two run and 256 wait.
  expect(settled.map(({ status }) => status)).toEqual([...Array(258).fill('fulfilled'), ...Array(42).fill('rejected')])
  expect(settled.at(-1)).toMatchObject({
    reason: { code: 'service_unavailable', message: expect.stringContaining('of your organization') },
  })
  expect(await Promise.all(others)).toEqual([[], [], [], [], [], true, []])
})
