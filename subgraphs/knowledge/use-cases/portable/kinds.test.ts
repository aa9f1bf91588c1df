import { expect, it } from 'vitest'
import { documentAttributes } from '../../domain/document-attributes.ts'
import { requireFileName, requireMetadata } from '../../domain/names.ts'
import { buildTextMap } from '../../domain/text/text-map.ts'
import { CHUNKS, DOCUMENT, SOURCE, TEXT_MAP } from './kinds.ts'

const hex = (digit: string) => digit.repeat(32)
const AT = '2026-01-01T00:00:00.000Z'
const OF_DOCUMENT = {
  ...{ _id: `doc_${hex('1')}`, collectionId: `col_${hex('2')}`, fileId: `file_${hex('3')}`, apiKeyId: `key_${hex('4')}` },
  ...{ fileName: 'a.txt', metadata: {}, status: 'ready', error: null, warnings: [], pageCount: null, chunkCount: 1, language: 'en' },
  ...{ attempts: 0, liveGeneration: 'g1', generation: 1, createdAt: AT },
}
const OF_SOURCE = {
  ...{ _id: `web_${hex('5')}`, collectionId: `col_${hex('2')}`, sourceKey: `col_${hex('2')}_u`, apiKeyId: `key_${hex('4')}` },
  ...{ url: 'https://u.test/', metadata: {}, documentId: null, formerFileId: null, etag: null, lastModified: null, sha256: null },
  ...{ refreshSeconds: 900, refreshAt: null, checkedAt: null, changedAt: null, error: null, createdAt: AT },
}

it('limits the ingestions, chunks and pages of a document to what a deletion searches', () => {
  expect(DOCUMENT.parse(OF_DOCUMENT)).toMatchObject({ generation: 1 })
  for (const field of ['generation', 'chunkCount', 'pageCount'])
    expect(() => DOCUMENT.parse({ ...OF_DOCUMENT, [field]: Number.MAX_SAFE_INTEGER }), field).toThrow(field)
})

it('limits the fetch interval of a URL to what the API allows', () => {
  expect(SOURCE.parse(OF_SOURCE)).toMatchObject({ refreshSeconds: 900 })
  for (const refreshSeconds of [0, 899, Number.MAX_SAFE_INTEGER])
    expect(() => SOURCE.parse({ ...OF_SOURCE, refreshSeconds })).toThrow('refreshSeconds')
})

it('limits the distance of marks in the map of a text', () => {
  const documentId = OF_DOCUMENT._id
  for (const text of ['', 'short', 'ن'.repeat(200_000), '😀'.repeat(100_000), `a${'😀'.repeat(100_000)}`]) {
    const map = buildTextMap({ text, blocks: [], pageCount: null })
    expect(TEXT_MAP.parse({ documentId, ...map })).toMatchObject({ length: text.length })
  }
  const marksOf = (...marks: readonly (readonly [number, number])[]) => ({ documentId, pages: null, length: 9, marks })
  for (const marks of [
    marksOf([0, 0], [9, 2 ** 40]),
    marksOf([0, 0], [2 ** 40, 9]),
    marksOf([0, 0], [9, 9], [9, 12]),
    marksOf([0, 0], [9, 9], [12, 3]),
    marksOf([9, 9]),
  ])
    expect(() => TEXT_MAP.parse(marks)).toThrow('marks')
})

it('limits chunks to what an ingestion creates, and refuses what an index refuses', () => {
  const chunk = {
    ...{ ordinal: 0, text: 't', headingPath: [], pageStart: null, pageEnd: null, charStart: 0, charEnd: 1, language: 'ar', context: '' },
    ...{ vector: '', tokenStates: null },
  }
  const parse = (attributes: object) =>
    CHUNKS.parse(JSON.parse(CHUNKS.toLine({ documentId: OF_DOCUMENT._id, attributes, passages: [chunk] })))
  const metadata = requireMetadata(
    Object.fromEntries([
      ...Array.from({ length: 30 }, (_, i) => [`${'ح'.repeat(62)}${10 + i}`, 'ق'.repeat(512)]),
      ...[
        ['_year', Number.MIN_SAFE_INTEGER],
        ['draft', false],
      ],
    ]),
    'metadata',
  )
  const facts = { media_type: 'text/plain', language: 'ar', created_at: Date.parse(AT), generation: 'g999999999' }
  const largest = documentAttributes(facts, { fileName: requireFileName('م'.repeat(255), 'name'), metadata })
  expect(parse(largest)).toMatchObject({ attributes: largest })
  const bare = documentAttributes({ media_type: null, language: null, created_at: 0 }, { fileName: 'a', metadata: {} })
  expect(parse(bare)).toMatchObject({ attributes: bare })
  for (const [wrong, problem] of [
    [{ title: 'x' }, /title/],
    [{ media_type: 'x'.repeat(40_000) }, /media_type/],
    [{ file_name: 'x'.repeat(40_000) }, /file_name/],
    [{ created_at: 'yesterday' }, /created_at/],
    [{ 'metadata.year': 'x'.repeat(513) }, /512 characters/],
    [{ 'metadata.a b': 1 }, /metadata field/],
    [{ ...largest, 'metadata.more': 1 }, /32 fields/],
  ] as const)
    expect(() => parse(wrong)).toThrow(problem)
})
