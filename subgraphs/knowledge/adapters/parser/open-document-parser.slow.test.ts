import { readFileSync } from 'node:fs'
import { deflateRawSync, deflateSync } from 'node:zlib'
import { Document, HeadingLevel, Packer, Paragraph, Table, TableCell, TableRow } from 'docx'
import PDFDocument, { type PDFDocumentOptions } from 'pdfkit'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { seedFiles } from '../../../../test/support/data/spoiled-files.ts'
import { silentLog } from '../../../common/process/log.ts'
import type { DocumentParser, ParsedDocument } from '../../ports/document-parser.ts'
import type { ParserLimits } from './limits.ts'
import { openDocumentParser } from './open-document-parser.ts'
import { drawPdf, rtl } from './test-support/draw-pdf.ts'

const never = new AbortController().signal
let parser: DocumentParser
beforeAll(async () => {
  parser = await openDocumentParser({ log: silentLog })
})
afterAll(() => parser[Symbol.asyncDispose]())

const parse = (bytes: Uint8Array | string, fileName: string) => parser.parse(Buffer.from(bytes), fileName, never)

/** Parses with other limits, in a parser that is closed after the call. */
async function parseWith(limits: Partial<ParserLimits>, bytes: Uint8Array, fileName: string): Promise<ParsedDocument> {
  await using own = await openDocumentParser({ log: silentLog, limits })
  return await own.parse(bytes, fileName, never)
}

/** Formats blocks as `kind: text`, with level, page and table header where they have them. */
function describeBlocks({ text, blocks }: ParsedDocument): readonly string[] {
  return blocks.map(({ kind, level, page, tableHeader, charStart, charEnd }) => {
    const facts = [level && `${level}`, page && ` p${page}`, tableHeader && ` [${tableHeader}]`].filter(Boolean).join('')
    return `${kind}${facts}: ${text.slice(charStart, charEnd)}`
  })
}

function createPdf(draw: (pdf: PDFDocument) => void, options: PDFDocumentOptions = {}): Promise<Buffer> {
  const pdf = new PDFDocument(options)
  const pieces: Buffer[] = []
  pdf.on('data', (piece: Buffer) => pieces.push(piece))
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  pdf.on('end', () => resolve(Buffer.concat(pieces)))
  draw(pdf)
  pdf.end()
  return promise
}

/** Returns a PDF of one page with this content, compressed. */
function pdfWithContent(content: Buffer): Buffer {
  const data = deflateSync(content)
  return Buffer.concat([
    Buffer.from(
      '%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj\n' +
        '3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>> endobj\n' +
        '5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj\n' +
        `4 0 obj <</Length ${data.length}/Filter/FlateDecode>>\nstream\n`,
    ),
    data,
    Buffer.from('\nendstream endobj\ntrailer <</Size 6/Root 1 0 R>>\n%%EOF'),
  ])
}

/** A PDF that takes pdf.js many seconds: two million text items on one page. */
const slowPdf = () => pdfWithContent(Buffer.from('BT /F1 12 Tf 50 700 Td (Hello there) Tj ET\n'.repeat(2_000_000)))

/** Returns an archive of these entries, deflated. With `claim`, the sizes in its headers are false. */
function createZip(entries: Readonly<Record<string, Uint8Array | string>>, claim?: number): Buffer {
  const files: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [name, content] of Object.entries(entries)) {
    const data = deflateRawSync(content)
    const header = Buffer.alloc(26)
    header.writeUInt16LE(20, 0)
    header.writeUInt16LE(8, 4)
    header.writeUInt32LE(data.length, 14)
    header.writeUInt32LE(claim ?? content.length, 18)
    header.writeUInt16LE(name.length, 22)
    const file = Buffer.concat([Buffer.from('PK\x03\x04'), header, Buffer.from(name), data])
    const locator = Buffer.alloc(14)
    locator.writeUInt32LE(offset, 10)
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), header, locator, Buffer.from(name)]))
    files.push(file)
    offset += file.length
  }
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(files.length, 8)
  end.writeUInt16LE(files.length, 10)
  end.writeUInt32LE(Buffer.concat(directory).length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...files, ...directory, end])
}

const WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
const createWordXml = (body: string) => `<?xml version="1.0"?><w:document ${WORD}><w:body>${body}</w:body></w:document>`

const nested = (depth: number) => `${'<w:sdt><w:sdtContent>'.repeat(depth)}${'</w:sdtContent></w:sdt>'.repeat(depth)}`

describe('Document formats', () => {
  it('reads a Word document with headings, lists, Arabic and a table', async () => {
    const row = (...cells: string[]) => new TableRow({ children: cells.map((text) => new TableCell({ children: [new Paragraph(text)] })) })
    const document = new Document({
      sections: [
        {
          children: [
            new Paragraph({ text: 'Annual report', heading: HeadingLevel.HEADING_1 }),
            new Paragraph('The year went well.'),
            new Paragraph({ text: 'النتائج', heading: HeadingLevel.HEADING_2, bidirectional: true }),
            new Paragraph({ text: 'كانت النتائج جيدة للغاية.', bidirectional: true }),
            new Paragraph({ text: 'First point', bullet: { level: 0 } }),
            new Paragraph({ text: 'Second point', bullet: { level: 0 } }),
            new Table({ rows: [row('City', 'People'), row('القاهرة', '10 million'), row('Amman', '4 million')] }),
          ],
        },
      ],
    })
    const parsed = await parse(await Packer.toBuffer(document), 'report.docx')
    expect(describeBlocks(parsed)).toEqual([
      'heading1: Annual report',
      'paragraph: The year went well.',
      'heading2: النتائج',
      'paragraph: كانت النتائج جيدة للغاية.',
      'list_item: First point',
      'list_item: Second point',
      'table_row: City | People',
      'table_row [City | People]: القاهرة | 10 million',
      'table_row [City | People]: Amman | 4 million',
    ])
    expect(parsed).toMatchObject({ mediaType: expect.stringContaining('wordprocessingml'), pageCount: null, warnings: [] })
  })

  it('reads a PDF by pages and names those without text', async () => {
    const bytes = await createPdf((pdf) => {
      pdf.outline.addItem('Introduction')
      pdf
        .text('Introduction')
        .moveDown()
        .text('This is the first sentence of a long para-\ngraph that goes on and on over lines. '.repeat(4))
      pdf.addPage().rect(10, 10, 50, 50).fill()
      pdf.addPage().text('Last page.')
    })
    const parsed = await parse(bytes, 'guide.pdf')
    expect(parsed.pageCount).toBe(3)
    expect(describeBlocks(parsed)[0]).toBe('heading1 p1: Introduction')
    expect(describeBlocks(parsed).at(-1)).toBe('paragraph p3: Last page.')
    expect(parsed.text).toContain('a long paragraph that goes on')
    expect(parsed.warnings).toEqual([
      {
        code: 'pages_without_text',
        message:
          '1 of 3 pages have no text: 2. If they show text, set `ocr` of the collection to `auto`, or upload a copy with recognized text.',
        pages: [2],
      },
    ])
  })

  it('reads the main content of a page, without menus, scripts and hidden elements', async () => {
    const html = `<!doctype html><title>Shop</title><body><nav>Menu</nav><script>window.x = 1</script><div hidden>gone</div><div style="display: none">gone</div>
      <main><h1>Tea &amp; coffee</h1><p>Black  or<br>green <b>t</b>ea.</p><ul><li>One<ul><li>Inner</li></ul></li><li>Two</li></ul><ol><li>First</li></ol>
      <table><tr><th>Kind</th><th>Price</th></tr><tr><td>Green</td><td>5</td></tr></table>
      <table><tr><td><p>Just layout</p></td></tr></table><pre>a  b\n  c</pre></main><footer>Imprint</footer></body>`
    expect(describeBlocks(await parse(html, 'shop.html'))).toEqual([
      'heading1: Tea & coffee',
      'paragraph: Black or\ngreen tea.',
      'list_item: One',
      'list_item: Inner',
      'list_item: Two',
      'list_item: 1. First',
      'table_row: Kind | Price',
      'table_row [Kind | Price]: Green | 5',
      'paragraph: Just layout',
      'code: a  b\n  c',
    ])
  })

  it('reads a page in the charset that it declares', async () => {
    const html = Buffer.concat([Buffer.from('<meta charset="windows-1251"><p>'), Buffer.from([0xef, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2])])
    expect((await parse(html, 'page.html')).text).toBe('привет')
  })

  it('reads Markdown with front matter, headings, lists, code and tables', async () => {
    const markdown = [
      '---',
      'title: "دليل القياس"',
      'lang: ar',
      '---',
      '# Start #',
      '',
      'Some *very* **bold** text with a [link](https://example.org/a_(b)) and `code`.',
      'Second line.',
      'Under',
      '-----',
      '- item one',
      '  goes on',
      '- item two',
      '3. third',
      '',
      '> quoted',
      '',
      '```js',
      '# not a heading',
      '',
      '- no item',
      '```',
      '| a | b |',
      '|---|:-:|',
      '| 1 | x \\| y |',
      '',
      '<p align="center">tagged</p> snake_case_name',
    ].join('\n')
    expect(describeBlocks(await parse(markdown, 'guide.md'))).toEqual([
      'heading1: دليل القياس',
      'heading1: Start',
      'paragraph: Some very bold text with a link and code.\nSecond line.\nUnder',
      'list_item: item one\ngoes on',
      'list_item: item two',
      'list_item: 3. third',
      'paragraph: quoted',
      'code: # not a heading\n\n- no item',
      'table_row: a | b',
      'table_row [a | b]: 1 | x | y',
      'paragraph: tagged snake_case_name',
    ])
  })

  it('reads plain text by empty lines, and by lines where the text is not wrapped', async () => {
    expect(describeBlocks(await parse('one\r\ntwo\r\n\r\n \r\nthree', 'a.txt'))).toEqual(['paragraph: one\ntwo', 'paragraph: three'])
    const long = 'A long line. '.repeat(20).trim()
    expect(describeBlocks(await parse(`${long}\n${long}`, 'a.txt'))).toEqual([`paragraph: ${long}`, `paragraph: ${long}`])
  })

  it('reads every format in the sandboxed child process', async () => {
    const seeds = (await seedFiles()).filter(({ name }) => name.startsWith('made.'))
    const read = await Promise.all(seeds.map(async ({ name, bytes }) => [name, (await parse(bytes, name)).text] as const))
    expect(read.length).toBeGreaterThan(15)
    for (const [name, text] of read) expect(`${name}: ${text}`).toMatch(/صور|Sur|harbour|Harbour|1931|النتائج/)
  })

  it('warns of replaced characters', async () => {
    const parsed = await parse(Buffer.concat([Buffer.from('نص عربي '.repeat(20)), Buffer.from([0xff]), Buffer.from(' تتمة')]), 'a.txt')
    expect(parsed.warnings).toEqual([
      { code: 'replaced_characters', message: '1 characters could not be read as utf-8. Upload the file in UTF-8.', pages: [] },
    ])
  })
})

describe('Parser errors', () => {
  it.each([
    { name: 'an empty file', bytes: '', file: 'a.txt', code: 'empty' },
    { name: 'only white space', bytes: ' \n\t\u00a0\r\n', file: 'a.txt', code: 'empty' },
    { name: 'a page without text', bytes: '<html><body><img src="x"></body></html>', file: 'a.html', code: 'empty' },
    {
      name: 'a Word document without text',
      bytes: createZip({ 'word/document.xml': createWordXml('<w:p/>') }),
      file: 'a.docx',
      code: 'no_text',
    },
    {
      name: 'a truncated Word document',
      bytes: createZip({ 'word/document.xml': createWordXml('<w:p/>') }).subarray(0, 100),
      file: 'a.docx',
      code: 'corrupt',
    },
    { name: 'a Word document with broken XML', bytes: createZip({ 'word/document.xml': '<w:document' }), file: 'a.docx', code: 'corrupt' },
    { name: 'a PDF of a few bytes', bytes: '%PDF-1.7\n', file: 'a.pdf', code: 'corrupt' },
    {
      name: 'an old Office file, whatever its name',
      bytes: Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600)]),
      file: 'a.docx',
      code: 'unsupported_type',
    },
    {
      name: 'an Office file with a password',
      bytes: Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.from('EncryptedPackage', 'utf16le')]),
      file: 'a.docx',
      code: 'password_required',
    },
    {
      name: 'a spreadsheet without sheets, named as a document',
      bytes: createZip({ 'xl/workbook.xml': '<x/>' }),
      file: 'a.docx',
      code: 'no_text',
    },
    { name: 'a directory as an archive', bytes: createZip({ 'a/': '' }), file: 'a.zip', code: 'empty' },
    { name: 'an image named as text', bytes: Buffer.from('89504e470d0a1a0a0000000d', 'hex'), file: 'a.txt', code: 'no_text' },
  ])('reports $code for $name', async ({ bytes, file, code }) => {
    await expect(parse(bytes, file)).rejects.toMatchObject({ name: 'ParseFailure', code })
  })

  it('requires the password of an encrypted PDF, and reads one that opens without it', async () => {
    const locked = await createPdf((pdf) => pdf.text('Secret words.'), { userPassword: 'user', ownerPassword: 'owner' })
    await expect(parse(locked, 'a.pdf')).rejects.toMatchObject({ code: 'password_required' })
    const readable = await createPdf((pdf) => pdf.text('Public words.'), { ownerPassword: 'owner' })
    expect((await parse(readable, 'a.pdf')).text).toBe('Public words.')
  })

  it('reports no_text for a PDF of drawings', async () => {
    await expect(parse(await createPdf((pdf) => pdf.rect(0, 0, 9, 9).fill()), 'a.pdf')).rejects.toMatchObject({ code: 'no_text' })
  })

  it('reads the text of a page with 600,000 lines', async () => {
    const lines = Array.from({ length: 600_000 }, (_, at) => `${at % 600} ${at % 797} m ${at % 599} ${at % 798} l S\n`).join('')
    const bytes = pdfWithContent(Buffer.from(`${lines}BT /F1 12 Tf 72 700 Td (The walls of the old town) Tj ET`))
    expect((await parse(bytes, 'map.pdf')).text).toBe('The walls of the old town')
  })

  it('detects the format from the bytes, not from the name', async () => {
    const bytes = await createPdf((pdf) => pdf.text('A portable document.'))
    expect(parser.sniff(bytes, 'a.txt')).toBe('application/pdf')
    const parsed = await parse(bytes, 'a.txt')
    expect(parsed).toMatchObject({ mediaType: 'application/pdf', text: 'A portable document.' })
    expect(parser.sniff(Buffer.from('<!DOCTYPE html><p>'), 'download')).toBe('text/html')
    expect(parser.sniff(Buffer.from([0, 1, 2, 3]), 'a')).toBe('application/octet-stream')
  })
})

describe('Parser limits', () => {
  it.each([
    {
      name: 'text of 250 MB that its headers declare as 10 bytes',
      bomb: () => createZip({ 'word/document.xml': Buffer.alloc(250_000_000, 0x20) }, 10),
    },
    { name: 'two million empty paragraphs', bomb: () => createZip({ 'word/document.xml': createWordXml('<w:p/>'.repeat(2_000_000)) }) },
    { name: '100,000 nested elements', bomb: () => createZip({ 'word/document.xml': createWordXml(nested(50_000)) }) },
    {
      name: '3,000 entries',
      bomb: () =>
        createZip({ 'word/document.xml': '', ...Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`${index}.xml`, ''])) }),
    },
  ])('stop a Word document with $name', async ({ bomb }) => {
    await expect(parse(bomb(), 'bomb.docx')).rejects.toMatchObject({ code: 'limit_exceeded' })
  })

  it('unpack only the entries that are read', async () => {
    const bytes = createZip({
      'word/document.xml': createWordXml('<w:p><w:r><w:t>Harmless</w:t></w:r></w:p>'),
      'word/media/a.bin': Buffer.alloc(250_000_000),
      '_rels/.rels': '<x/>',
    })
    expect((await parse(bytes, 'media.docx')).text).toBe('Harmless')
  })

  it('unpack no archives inside a document', async () => {
    const inner = createZip({ 'bomb.bin': Buffer.alloc(250_000_000) })
    const outer = createZip({
      'word/document.xml': createWordXml('<w:p><w:r><w:t>Harmless</w:t></w:r></w:p>'),
      'word/embeddings/inner.zip': inner,
      '_rels/.rels': '<x/>',
    })
    expect((await parse(outer, 'nested.docx')).text).toBe('Harmless')
  })

  it('stop a PDF whose content inflates to 300 MB', async () => {
    await expect(parse(pdfWithContent(Buffer.alloc(300_000_000, 0x20)), 'bomb.pdf')).rejects.toMatchObject({ code: 'limit_exceeded' })
  })

  it('stop a PDF whose page has too many text items', async () => {
    const page = Buffer.from('BT /F1 12 Tf 50 700 Td (Hello there) Tj ET\n'.repeat(100_001))
    await expect(parse(pdfWithContent(page), 'a.pdf')).rejects.toMatchObject({ code: 'limit_exceeded' })
  })

  it('stop a PDF with too many pages', async () => {
    const bytes = await createPdf((pdf) => pdf.text('1').addPage().text('2').addPage().text('3'))
    await expect(parseWith({ maxPages: 2 }, bytes, 'a.pdf')).rejects.toMatchObject({ code: 'limit_exceeded' })
  })

  it('stop a text that is too long or has too many blocks', async () => {
    await expect(parseWith({ maxTextBytes: 10 }, Buffer.from('نص عربي'), 'a.txt')).rejects.toMatchObject({ code: 'limit_exceeded' })
    await expect(parseWith({ maxBlocks: 2 }, Buffer.from('a\n\nb\n\nc'), 'a.txt')).rejects.toMatchObject({ code: 'limit_exceeded' })
  })

  it('stop a child process that needs too much memory', async () => {
    if (process.platform !== 'linux') return
    await expect(parseWith({ maxRssBytes: 150 * 1024 * 1024 }, slowPdf(), 'a.pdf')).rejects.toMatchObject({ code: 'limit_exceeded' })
  })

  it('stop a child process that takes too long', async () => {
    await expect(parseWith({ timeoutMs: 300 }, slowPdf(), 'a.pdf')).rejects.toMatchObject({ code: 'timeout' })
  })
})

describe.runIf(process.platform === 'linux')('Parser processes', () => {
  const children = () => readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)

  it('kills the child process of an aborted call, and leaves none behind when closed', async () => {
    const before = new Set(children())
    const own = await openDocumentParser({ log: silentLog })
    const controller = new AbortController()
    const [child] = children().filter((pid) => !before.has(pid))
    const work = own.parse(slowPdf(), 'a.pdf', controller.signal)
    await vi.waitFor(() => expect(children().filter((pid) => !before.has(pid))).toHaveLength(2), { timeout: 10_000 })
    controller.abort(new Error('not wanted'))
    await expect(work).rejects.toThrow('not wanted')
    expect(children()).not.toContain(child)
    await own[Symbol.asyncDispose]()
    expect(children().filter((pid) => !before.has(pid))).toEqual([])
  })

  it('fails without a verdict when the child process is killed from outside, and reads the next document', async () => {
    const before = new Set(children())
    await using own = await openDocumentParser({ log: silentLog })
    const [child] = children().filter((pid) => !before.has(pid))
    const work = own.parse(slowPdf(), 'a.pdf', never)
    process.kill(child!, 'SIGKILL')
    await expect(work).rejects.toMatchObject({ name: 'Error', message: expect.stringContaining('SIGKILL') })
    expect((await own.parse(Buffer.from('fine'), 'a.txt', never)).text).toBe('fine')
  })

  it('continues when the spare process has died', async () => {
    const before = new Set(children())
    await using own = await openDocumentParser({ log: silentLog })
    const [spare] = children().filter((pid) => !before.has(pid))
    process.kill(spare!, 'SIGKILL')
    await vi.waitFor(() => expect(children()).not.toContain(spare), { timeout: 10_000 })
    expect((await own.parse(Buffer.from('fine'), 'a.txt', never)).text).toBe('fine')
  })

  it('runs two documents concurrently, queues a limited number and refuses more', async () => {
    await using own = await openDocumentParser({ log: silentLog })
    const controller = new AbortController()
    const slow = slowPdf()
    const works = Array.from({ length: 34 }, () => own.parse(slow, 'a.pdf', controller.signal))
    await expect(own.parse(slow, 'a.pdf', never)).rejects.toMatchObject({ code: 'service_unavailable' })
    controller.abort(new Error('enough'))
    for (const outcome of await Promise.allSettled(works))
      expect(outcome).toMatchObject({ status: 'rejected', reason: { message: 'enough' } })
    expect((await own.parse(Buffer.from('fine'), 'a.txt', never)).text).toBe('fine')
  })

  it('returns the right text for each of many documents', async () => {
    const texts = Array.from({ length: 20 }, (_, index) => `Document ${index}.`)
    const parsed = await Promise.all(texts.map((text) => parse(text, 'a.txt')))
    expect(parsed.map(({ text }) => text)).toEqual(texts)
  })
})

it('reports the pages of a PDF that were read, and none for formats without pages', async () => {
  const pdf = drawPdf(Array.from({ length: 40 }, (_, i) => [rtl(500, 300, `نص الصفحة ${'ابتثجحخد'[i % 8]!.repeat(2 + i)}`)]))
  const reported: string[] = []
  const onPages = (done: number, total: number) => reported.push(`${done}/${total}`)
  expect(await parser.parse(pdf, 'a.pdf', never, { onPages })).toMatchObject({ pageCount: 40 })
  expect(reported).toEqual(['0/40', '16/40', '32/40', '40/40'])
  await parser.parse(Buffer.from('Some text.'), 'a.txt', never, { onPages })
  expect(reported).toHaveLength(4)
})
