import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { countWords, expectChunkInvariants } from '../../../../test/support/chunk-invariants.ts'
import type { Block, ParsedDocument } from '../../ports/document-parser.ts'
import { chunkDocument, type DocumentChunk, toEmbeddingText } from './chunk-document.ts'
import { MAX_CHARS_PER_TOKEN } from './token-counter.ts'

type Part = Pick<Block, 'kind'> & Partial<Block> & { readonly text: string }

/** Returns a document of these parts, separated by empty lines. */
function createParsed(parts: readonly Part[]): ParsedDocument {
  let text = ''
  const blocks = parts.map(({ text: own, ...facts }): Block => {
    if (text !== '') text += '\n\n'
    text += own
    return { ...facts, charStart: text.length - own.length, charEnd: text.length }
  })
  return { mediaType: 'text/plain', text, blocks, pageCount: null, warnings: [], unread: [], hasFiles: false }
}

const countTokens = async (texts: readonly string[]) => texts.map(countWords)
const never = new AbortController().signal
const chunk = (parts: readonly Part[], options: { targetTokens?: number; capTokens?: number; overheadTokens?: number } = {}) =>
  chunkDocument(createParsed(parts), { countTokens, signal: never, ...options })

const words = (count: number, word = 'word') => Array.from({ length: count }, () => word).join(' ')
const readTexts = (chunks: readonly DocumentChunk[]) => chunks.map(({ text }) => text)

const partsArbitrary = fc.array(
  fc.record({
    kind: fc.constantFrom('heading', 'paragraph', 'list_item', 'table_row', 'code' as const),
    level: fc.integer({ min: 1, max: 6 }),
    tableHeader: fc.option(fc.constant('Name | Value'), { nil: undefined }),
    text: fc
      .array(
        fc.oneof(
          fc.constantFrom('قال د. أحمد إنه هنا. ', 'One sentence. ', '👩‍👩‍👧 ', 'e\u0301\u0302', '\n', ' ', '؟ '),
          fc.string({ unit: 'grapheme', maxLength: 30 }),
        ),
        { maxLength: 60 },
      )
      .map((pieces) => pieces.join('').replaceAll('\n\n', '\n')),
  }),
  { maxLength: 25 },
) as fc.Arbitrary<Part[]>

describe('Chunking', () => {
  it('covers every character once, in order, within the cap and between graphemes, for any document', async () => {
    await fc.assert(
      fc.asyncProperty(partsArbitrary, fc.integer({ min: 12, max: 80 }), async (parts, capTokens) => {
        const document = createParsed(
          parts.map(({ tableHeader, level, ...part }, index) => ({
            ...part,
            page: 1 + (index >> 1),
            ...(part.kind === 'heading' && { level }),
            ...(tableHeader !== undefined && { tableHeader }),
          })),
        )
        const chunks = await chunkDocument(document, {
          countTokens,
          capTokens,
          targetTokens: capTokens / 2,
          overheadTokens: 2,
          signal: never,
        })
        expectChunkInvariants(document, chunks, capTokens - 2)
      }),
      { numRuns: 300 },
    )
  })

  it('respects the cap with a tokenizer whose counts are not additive', async () => {
    const greedy = async (texts: readonly string[]) => texts.map((text) => Math.ceil(text.length ** 1.3 / 8))
    const document = createParsed(Array.from({ length: 30 }, () => ({ kind: 'paragraph' as const, text: `${words(20)}.` })))
    const chunks = await chunkDocument(document, { countTokens: greedy, capTokens: 100, targetTokens: 90, signal: never })
    for (const { tokens } of chunks) expect(tokens).toBeLessThanOrEqual(100)
    expect(readTexts(chunks).join(' ').split(/\s+/)).toEqual(document.text.split(/\s+/))
  })

  it('preserves a paragraph between target and cap', async () => {
    const long = `${words(150)}. ${words(150)}.`
    expect(
      readTexts(
        await chunk([
          { kind: 'paragraph', text: words(100) },
          { kind: 'paragraph', text: long },
        ]),
      ),
    ).toEqual([words(100), long])
  })

  it('splits a paragraph above the cap at the ends of sentences', async () => {
    const sentence = `Then ${words(60)}.`
    const chunks = await chunk([{ kind: 'paragraph', text: Array.from({ length: 12 }, () => sentence).join(' ') }])
    expect(chunks.length).toBeGreaterThan(2)
    for (const { text } of chunks) expect(text.endsWith('.')).toBe(true)
  })

  it('starts a chunk at a heading and sets its heading path', async () => {
    const chunks = await chunk([
      { kind: 'heading', level: 1, text: 'Guide' },
      { kind: 'heading', level: 2, text: 'Install' },
      { kind: 'paragraph', text: words(200) },
      { kind: 'heading', level: 2, text: 'Use' },
      { kind: 'paragraph', text: words(100) },
      { kind: 'paragraph', text: words(200) },
    ])
    expect(chunks.map(({ headingPath, context }) => ({ headingPath, context }))).toEqual([
      { headingPath: ['Guide', 'Install'], context: '' },
      { headingPath: ['Guide', 'Use'], context: 'Guide' },
      { headingPath: ['Guide', 'Use'], context: 'Guide > Use' },
    ])
    expect(toEmbeddingText(chunks[2]!)).toBe(`Guide > Use\n${words(200)}`)
  })

  it('merges short sections of one parent and not those of another', async () => {
    const chunks = await chunk(
      [
        { kind: 'heading', level: 1, text: 'First' },
        { kind: 'paragraph', text: words(100) },
        { kind: 'heading', level: 2, text: 'One' },
        { kind: 'paragraph', text: words(15) },
        { kind: 'heading', level: 2, text: 'Two' },
        { kind: 'paragraph', text: words(15) },
        { kind: 'heading', level: 1, text: 'Second' },
        { kind: 'paragraph', text: words(100) },
      ],
      { targetTokens: 110 },
    )
    expect(chunks.map(({ headingPath }) => headingPath)).toEqual([['First'], ['First'], ['Second']])
    expect(chunks[1]!.text).toBe(`One\n\n${words(15)}\n\nTwo\n\n${words(15)}`)
  })

  it('never ends a chunk with a heading', async () => {
    const chunks = await chunk([
      { kind: 'paragraph', text: words(40) },
      { kind: 'heading', level: 1, text: 'Large' },
      { kind: 'paragraph', text: words(460) },
    ])
    expect(readTexts(chunks)).toEqual([words(40), `Large\n\n${words(460)}`])
  })

  it('repeats the header row before separated rows, in the embedded text only', async () => {
    const tableHeader = 'City | People'
    const rows = Array.from({ length: 60 }, (_, row) => ({
      kind: 'table_row' as const,
      tableHeader,
      text: `City ${row} | ${row} million people`,
    }))
    const [first, second] = await chunk([{ kind: 'table_row', text: tableHeader }, ...rows])
    expect(first!.text.startsWith(tableHeader)).toBe(true)
    expect(first!.context).toBe('')
    expect(second!.text.includes(tableHeader)).toBe(false)
    expect(toEmbeddingText(second!).startsWith(`${tableHeader}\nCity`)).toBe(true)
  })

  it('ends the heading path with the cells or times of the chunk', async () => {
    const sheet = (within: string, row: number): Part => ({
      kind: 'table_row',
      text: words(100, 'row'),
      location: { within, start: `A${row}`, end: `D${row}` },
    })
    const parts: Part[] = [{ kind: 'heading', level: 1, text: 'Sales' }, ...[1, 2, 3, 4].map((row) => sheet('Sales!', row))]
    expect((await chunk(parts)).map(({ headingPath }) => headingPath)).toEqual([
      ['Sales', 'Sales!A1:D2'],
      ['Sales', 'Sales!A3:D4'],
    ])
    const small = ['S!', 'T!', 'U!', 'V!'].map((within): Part => ({ ...sheet(within, 1), text: 'x' }))
    expect((await chunk(small))[0]!.headingPath).toEqual(['S!A1:D1, T!A1:D1, U!A1:D1, …'])
    const said = (time: string): Part => ({
      kind: 'paragraph',
      text: 'x',
      location: { within: '', start: `0:0${time}`, end: `0:0${time}` },
    })
    expect((await chunk([said('1')]))[0]!.headingPath).toEqual(['0:01'])
    expect((await chunk([said('1'), said('2')]))[0]!.headingPath).toEqual(['0:01–0:02'])
  })

  it('sets first and last page, and the language of each chunk', async () => {
    const chunks = await chunk([
      { kind: 'paragraph', page: 1, text: words(40, 'كلمة') },
      { kind: 'paragraph', page: 2, text: words(100, 'كلمة') },
      { kind: 'paragraph', page: 3, text: words(220) },
      { kind: 'paragraph', page: 4, text: words(220, '1234') },
    ])
    expect(chunks.map(({ pageStart, pageEnd, language }) => [pageStart, pageEnd, language])).toEqual([
      [1, 2, 'ar'],
      [3, 3, 'en'],
      [4, 4, null],
    ])
  })

  it('ends a chunk with its page, unless it is small', async () => {
    const pages = [90, 90, 30, 90].map((length, index) => ({ kind: 'paragraph', page: index + 1, text: words(length) }) as const)
    const chunks = await chunk(pages)
    expect(chunks.map(({ pageStart, pageEnd }) => [pageStart, pageEnd])).toEqual([
      [1, 1],
      [2, 2],
      [3, 4],
    ])
  })

  it.each([
    { name: 'one word of a megabyte', parts: [{ kind: 'paragraph', text: 'x'.repeat(1_000_000) }] },
    { name: 'one letter with a megabyte of marks', parts: [{ kind: 'paragraph', text: `e${'\u0301'.repeat(1_000_000)}` }] },
    {
      name: '100,000 headings',
      parts: Array.from({ length: 100_000 }, (_, index) => ({ kind: 'heading', level: (index % 6) + 1, text: `Heading ${index}` })),
    },
    { name: '100,000 sentences in one paragraph', parts: [{ kind: 'paragraph', text: 'نعم. '.repeat(100_000) }] },
    {
      name: 'a heading and a header row of a megabyte',
      parts: [
        { kind: 'heading', level: 1, text: 'h '.repeat(500_000) },
        { kind: 'table_row', tableHeader: 'c '.repeat(500_000), text: 'cell' },
      ],
    },
  ] as { name: string; parts: Part[] }[])('is limited for $name', async ({ parts }) => {
    const batches: number[] = []
    const chunks = await chunkDocument(createParsed(parts), {
      signal: never,
      countTokens: async (texts) => {
        batches.push(texts.length)
        return texts.map(countWords)
      },
    })
    expect(Math.max(...batches)).toBeLessThanOrEqual(2_048)
    for (const { tokens } of chunks) expect(tokens).toBeLessThanOrEqual(480)
    const length = (texts: readonly string[]) => texts.join('').replace(/\s+/g, '').length
    expect(length(readTexts(chunks))).toBe(length(parts.map(({ text }) => text)))
  })

  it.each([
    { name: 'spaces', gap: ' '.repeat(10_000) },
    { name: 'zero-width characters', gap: ` ${'\u200b'.repeat(10_000)}` },
    { name: 'spaces that fill most of a part', gap: ' '.repeat(2_879) },
  ])('limits the characters of a chunk whose words are separated by $name', async ({ gap }) => {
    // The tokenizer of the embedded model ignores these characters.
    const countSeen = async (texts: readonly string[]) => texts.map((text) => text.match(/[^\s\u200b]{1,4}/g)?.length ?? 0)
    const text = Array.from({ length: 100 }, (_, index) => `w${index}`).join(gap)
    const parts: Part[] = [
      { kind: 'heading', level: 1, text },
      { kind: 'paragraph', text },
      { kind: 'code', text },
      { kind: 'table_row', tableHeader: text, text },
      { kind: 'paragraph', text: text.replaceAll(' ', '\n') },
    ]
    const apart = createParsed(parts)
    const blocks = [...apart.text.matchAll(/w\d+/g)].map(({ index, 0: word }) => ({
      kind: 'paragraph' as const,
      charStart: index,
      charEnd: index + word.length,
    }))
    for (const document of [apart, { ...apart, blocks }]) {
      const chunks = await chunkDocument(document, { countTokens: countSeen, signal: never })
      for (const chunk of chunks) expect(toEmbeddingText(chunk).length).toBeLessThanOrEqual(480 * MAX_CHARS_PER_TOKEN)
      expect(readTexts(chunks).join(' ').match(/w\d+/g)).toEqual(document.text.match(/w\d+/g))
    }
  })

  it('splits indented code and space-padded tables by their token count', async () => {
    const countSeen = async (texts: readonly string[]) => texts.map((text) => text.match(/\S{1,4}/g)?.length ?? 0)
    const code = Array.from({ length: 200 }, (_, line) => `${' '.repeat(4 * (line % 6))}call(${line})`).join('\n')
    const table = Array.from({ length: 40 }, (_, row) => `${`city ${row}`.padEnd(30)}| ${`${row} million people`.padEnd(30)}|`)
    const document = createParsed([
      { kind: 'code', text: code },
      ...table.map((text) => ({ kind: 'table_row', tableHeader: `${'City'.padEnd(30)}| ${'People'.padEnd(30)}|`, text }) as const),
    ])
    const chunks = await chunkDocument(document, { countTokens: countSeen, signal: never })
    expect(chunks.map(({ tokens }) => tokens)).toEqual(await countSeen(chunks.map(toEmbeddingText)))
  })

  it('returns no chunks without text', async () => {
    expect(await chunk([])).toEqual([])
    expect(
      await chunk([
        { kind: 'paragraph', text: '' },
        { kind: 'paragraph', text: ' \n ' },
      ]),
    ).toEqual([])
  })

  it('stops when its signal aborts', async () => {
    const controller = new AbortController()
    const work = chunkDocument(createParsed([{ kind: 'paragraph', text: 'Yes. '.repeat(100_000) }]), {
      signal: controller.signal,
      countTokens: async (texts) => {
        controller.abort(new Error('enough'))
        return texts.map(countWords)
      },
    })
    await expect(work).rejects.toThrow('enough')
  })
})
