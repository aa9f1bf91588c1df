import { describe, expect, it } from 'vitest'
import { readHtml } from '../html/read-html.ts'
import { DEFAULT_LIMITS } from '../limits.ts'
import { DocumentBuilder } from './document-builder.ts'
import { readMarkdown } from './read-markdown.ts'
import { readText } from './read-text.ts'

const LENGTH = 1_000_000
/** Maximum CPU time. A quadratic reader takes minutes for any of these inputs, a linear one tenths of a second. */
const MAX_MS = 5_000

const READERS = { readMarkdown, readHtml, readText }

function readBlocks(read: (bytes: Uint8Array, builder: DocumentBuilder) => void, text: string): readonly string[] {
  const builder = new DocumentBuilder(DEFAULT_LIMITS)
  read(Buffer.from(text), builder)
  const { text: whole, blocks } = builder.build('text/plain')
  return blocks.map(({ kind, charStart, charEnd }) => `${kind}: ${whole.slice(charStart, charEnd)}`)
}

describe('Linear time of text readers per megabyte', () => {
  const repeated = (pump: string) => pump.repeat(LENGTH / pump.length)
  it.each([
    ['unclosed comments', repeated('<!--')],
    ['comments', repeated('<!---->')],
    ['one heading of spaces', `# a${repeated(' \t')}b`],
    ['headings', repeated('# # #\n')],
    ['heading marks', repeated('#')],
    ['a list item of spaces', `*${repeated('\t')}\u2028`],
    ['spaces before a table', `|\n${repeated('\t')}x`],
    ['a table of narrow rows below a wide one', `|${'a|'.repeat(200_000)}\n|-|-|\n${'|a\n'.repeat(200_000)}`],
    ['unclosed fences', repeated('```\n')],
    ['nested quotes', repeated('> ')],
    ['unclosed emphasis', repeated('__a ')],
    ['stars', repeated('**a ')],
    ['unclosed links', repeated('[](')],
    ['brackets', repeated('[')],
    ['backticks', repeated('` ')],
    ['front matter', `---\n${repeated('title: "\n')}`],
  ])('holds for Markdown of %s', (_what, text) => {
    const begun = process.cpuUsage()
    readBlocks(readMarkdown, text)
    expect(process.cpuUsage(begun).user / 1_000).toBeLessThan(MAX_MS)
  })

  it.each([
    ['nested empty main content', '<main>'.repeat(2_000) + '<div>'.repeat(100_000)],
    ['nested tables', '<table><tr><td>'.repeat(20_000)],
    ['a table of narrow rows below a wide one', `<table><tr>${'<th>a'.repeat(100_000)}${'<tr><td>a'.repeat(50_000)}</table>`],
    ['nested lists', '<ol><li>a'.repeat(20_000)],
    ['unclosed comments', repeated('<!--')],
    ['space', `<p>${repeated(' \n')}x`],
  ])('holds for HTML of %s', (_what, text) => {
    const begun = process.cpuUsage()
    readBlocks(readHtml, text)
    expect(process.cpuUsage(begun).user / 1_000).toBeLessThan(MAX_MS)
  })

  it.each(['\n', ' ', '\r', 'a', 'ا', 'No. '])('holds for %j in every reader', (pump) => {
    for (const read of Object.values(READERS)) {
      const begun = process.cpuUsage()
      readBlocks(read, repeated(pump))
      expect(process.cpuUsage(begun).user / 1_000).toBeLessThan(MAX_MS)
    }
  })
})

describe('Markdown reader', () => {
  it('removes markup of headings, tables, comments and emphasis', () => {
    const text = [
      ...['# One', '## Two ##', '### C#', '#', '#hash', 'a <!-- b', '-->c <!-- open'],
      ...['', '|a|b|', ' |:-|-:| ', '|1|2|', '', '__strong__ and **bold**, not __ this __ or a__', '', '-\titem'],
    ].join('\n')
    expect(readBlocks(readMarkdown, text)).toEqual([
      'heading: One',
      'heading: Two',
      'heading: C#',
      'paragraph: #hash\na c <!-- open',
      'table_row: a | b',
      'table_row: 1 | 2',
      'paragraph: strong and bold, not __ this __ or a__',
      'list_item: item',
    ])
  })
})

describe('HTML reader', () => {
  it('reads the first main content that has text', () => {
    const html = '<main> <div role=main></div></main><p>outside</p><div role=main><p>inside</p></div>'
    expect(readBlocks(readHtml, html)).toEqual(['paragraph: inside'])
  })

  it('numbers lists like browsers: start, value, reversed and type', () => {
    const html = `<ol start=3><li>a<li>b<li value=9>c<li>d</ol><ol reversed><li>x<li>y</ol><ol type=i start=4><li>z</ol><ol type=constructor><li>w</ol>`
    expect(readBlocks(readHtml, html)).toEqual(
      ['3. a', '4. b', '9. c', '10. d', '2. x', '1. y', 'iv. z', '1. w'].map((text) => `list_item: ${text}`),
    )
  })

  it('repeats merged cells, except a cell that spans a whole row', () => {
    const html = `<table><tr><th rowspan=2>City<th colspan=2>2024<tr><th>Men<th>Women<tr><td colspan=3>North<tr><td rowspan=2>Sur<td>1<td>2<tr><td>3<td>4</table>`
    expect(readBlocks(readHtml, html)).toEqual(
      ['City | 2024 | 2024', 'City | Men | Women', 'North', 'Sur | 1 | 2', 'Sur | 3 | 4'].map((text) => `table_row: ${text}`),
    )
  })

  it('stops at a table whose cells overlap thousands of others', () => {
    const row = '<tr><td colspan=99 rowspan=9999>some words in a cell<td>b'
    expect(() => readBlocks(readHtml, `<table>${row.repeat(20_000)}</table>`)).toThrow(expect.objectContaining({ code: 'limit_exceeded' }))
  })
})
