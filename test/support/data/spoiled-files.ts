import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { deflateSync } from 'node:zlib'
import { Document, HeadingLevel, Packer, Paragraph, Table, TableCell, TableRow } from 'docx'
import fc from 'fast-check'
import PDFDocument from 'pdfkit'
import { docFile, msgFile } from './ole-file.ts'
import { readZip, writeZip, type ZipEntry } from './zip-file.ts'

export interface FileToRead {
  readonly name: string
  readonly bytes: Buffer
}

/** Documents of other authors, if this machine has them. They are read, never copied. */
const CORPUS = new URL('../../../../shared/corpus/', import.meta.url)
/** The largest seed. A larger one takes the time of many small ones. */
const MAX_SEED_BYTES = 400_000
/** The first bytes of an archive. The corpus has DOCX files that are not archives. */
const ARCHIVE = 'PK\x03\x04'
const READ = /\.(docx|xlsx|pptx|odt|epub|rtf|pdf|html|md|txt|csv|json)$/

/** Returns small documents of each format, made here, and the small ones of the corpus. */
export async function seedFiles(): Promise<readonly FileToRead[]> {
  const corpus = existsSync(CORPUS) ? readdirSync(CORPUS).filter((name) => READ.test(name) && name !== 'manifest.json') : []
  return [
    { name: 'made.docx', bytes: await createDocx() },
    { name: 'made.pdf', bytes: await createPdf() },
    { name: 'plain.pdf', bytes: PLAIN_PDF },
    { name: 'made.html', bytes: Buffer.from(HTML) },
    { name: 'made.md', bytes: Buffer.from(MARKDOWN) },
    { name: 'made.csv', bytes: Buffer.from('city,people\n"Muscat, old",1\nصور,2\n') },
    { name: 'made.json', bytes: Buffer.from('{"a":[1,{"b":"صور"},null],"c":"text"}') },
    {
      name: 'made.zip',
      bytes: writeZip([
        { name: 'صور/a.txt', content: Buffer.from('The harbour of Sur.') },
        { name: 'b.bin', content: Buffer.from([0, 1, 2]) },
      ]),
    },
    { name: 'made.xlsx', bytes: toArchive(XLSX) },
    { name: 'made.pptx', bytes: toArchive(PPTX) },
    { name: 'made.epub', bytes: toArchive(EPUB) },
    { name: 'made.odt', bytes: createOdf('text', ODF_TEXT) },
    { name: 'made.ods', bytes: createOdf('spreadsheet', ODF_TABLE) },
    {
      name: 'made.odp',
      bytes: createOdf(
        'presentation',
        `<draw:page><draw:frame p:class="title"><draw:text-box>${ODF_TEXT}</draw:text-box></draw:frame></draw:page>`,
      ),
    },
    { name: 'made.rtf', bytes: Buffer.from(RTF) },
    { name: 'made.eml', bytes: Buffer.from(EML) },
    { name: 'made.mbox', bytes: Buffer.from(`From a@b.c Sun Jan  5 10:00:00 2025\n${EML}`) },
    { name: 'made.xml', bytes: Buffer.from('<?xml version="1.0"?><r><a b="1"><c>صور</c></a><d>text <e>in</e> text</d></r>') },
    { name: 'made.srt', bytes: Buffer.from('1\n00:00:01,000 --> 00:00:04,200\n<i>صور</i>\n\n2\n00:00:05,000 --> 00:00:06,000\nHarbour\n') },
    { name: 'made.doc', bytes: docFile('بني ميناء صور.\rThe harbour of Sur.\r') },
    { name: 'made.msg', bytes: msgFile('صور', 'The harbour of Sur.', 'city,people') },
    { name: 'made.mht', bytes: Buffer.from(`Snapshot-Content-Location: http://a\r\n${EML.replace('mixed', 'related')}`) },
    { name: 'made.vtt', bytes: Buffer.from('WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ali>صور</v>\n') },
    { name: 'made.tsv', bytes: Buffer.from('city\tpeople\nصور\t"1\t2"\n') },
    { name: 'made.py', bytes: Buffer.from('def harbour():\n    return "صور"\n\nharbour()\n') },
    { name: 'made.txt', bytes: Buffer.from('\ufeffThe harbour of Sur.\r\n\r\nبني ميناء صور.', 'utf16le') },
    ...corpus
      .filter((name) => statSync(new URL(name, CORPUS)).size <= MAX_SEED_BYTES)
      .map((name) => ({ name, bytes: readFileSync(new URL(name, CORPUS)) })),
  ]
}

function createDocx(): Promise<Buffer> {
  const row = (...cells: string[]) => new TableRow({ children: cells.map((text) => new TableCell({ children: [new Paragraph(text)] })) })
  const children = [
    new Paragraph({ text: 'Report', heading: HeadingLevel.HEADING_1 }),
    new Paragraph({ text: 'كانت النتائج جيدة للغاية.', bidirectional: true }),
    new Paragraph({ text: 'First', bullet: { level: 0 } }),
    new Table({ rows: [row('City', 'People'), row('Sur', '120,000')] }),
  ]
  return Packer.toBuffer(new Document({ sections: [{ children }] }))
}

const REL = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const relation = (id: string, type: string, target: string) =>
  `<Relationships><Relationship Id="${id}" Type="${REL}/${type}" Target="${target}"/></Relationships>`
const XLSX = {
  'xl/workbook.xml': `<workbook xmlns:r="${REL}"><sheets><sheet name="One" sheetId="1" r:id="r1"/></sheets></workbook>`,
  'xl/_rels/workbook.xml.rels': relation('r1', 'worksheet', 'worksheets/sheet1.xml'),
  'xl/worksheets/sheet1.xml':
    '<worksheet><sheetData><row r="1"><c r="A1" t="str"><v>City</v></c><c r="B1" t="str"><v>صور</v></c></row><row r="2"><c r="A2" s="1"><v>45000.5</v></c><c r="B2"><v>2</v></c></row></sheetData><mergeCells><mergeCell ref="A2:A3"/></mergeCells></worksheet>',
}
const PPTX = {
  'ppt/presentation.xml': `<p:presentation xmlns:p="p" xmlns:r="${REL}"><p:sldIdLst><p:sldId id="256" r:id="r1"/></p:sldIdLst></p:presentation>`,
  'ppt/_rels/presentation.xml.rels': relation('r1', 'slide', 'slides/slide1.xml'),
  'ppt/slides/slide1.xml':
    '<p:sld xmlns:p="p" xmlns:a="a"><p:sp><p:nvSpPr><p:ph type="title"/></p:nvSpPr><a:p><a:r><a:t>صور</a:t></a:r></a:p></p:sp><p:graphicFrame><a:tbl><a:tr><a:tc gridSpan="2"><a:p><a:r><a:t>Cell</a:t></a:r></a:p></a:tc></a:tr></a:tbl></p:graphicFrame></p:sld>',
}
const EPUB = {
  'META-INF/container.xml': '<container><rootfile full-path="a.opf"/></container>',
  'a.opf':
    '<package><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>',
  'a.xhtml': '<?xml version="1.0"?><html><body><h1>صور</h1><p>Harbour<br/></p></body></html>',
}
const ODF_TEXT =
  '<x:h x:outline-level="1">صور</x:h><x:list><x:list-item x:start-value="3"><x:p>Harbour<x:s x:c="3"/><x:note><x:note-citation>1</x:note-citation><x:note-body><x:p>Note</x:p></x:note-body></x:note></x:p></x:list-item></x:list>'
const ODF_TABLE =
  '<t:table t:name="One"><t:table-row t:number-rows-repeated="2"><t:table-cell t:number-columns-spanned="2" t:number-columns-repeated="3"><x:p>صور</x:p></t:table-cell></t:table-row></t:table>'
const RTF =
  "{\\rtf1\\ansi\\ansicpg1256{\\fonttbl{\\f0\\fcharset178 A;}}\\f0\\'d5\\'e6\\'d1\\par \\u1589?{\\footnote n}\\trowd\\intbl a\\cell\\row\\pard\\bin2 {{}"
const EML =
  'From: a@b.c\r\nTo: d@e.f\r\nSubject: Sur\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>صور</p>\r\n--x\r\nContent-Type: text/csv; name=a.csv\r\nContent-Transfer-Encoding: base64\r\n\r\nYSxiCjEsMgo=\r\n--x--\r\n'

function toArchive(entries: Readonly<Record<string, string>>): Buffer {
  return writeZip(Object.entries(entries).map(([name, content]) => ({ name, content: Buffer.from(content) })))
}

function createOdf(kind: string, body: string): Buffer {
  const names = 'xmlns:office="o" xmlns:x="x" xmlns:t="t" xmlns:draw="d" xmlns:p="p"'
  const content = `<office:document-content ${names}><office:body><office:${kind}>${body}</office:${kind}></office:body></office:document-content>`
  return writeZip([
    { name: 'mimetype', content: Buffer.from(`application/vnd.oasis.opendocument.${kind}`), stored: true },
    { name: 'content.xml', content: Buffer.from(content) },
  ])
}

function createPdf(): Promise<Buffer> {
  const pdf = new PDFDocument()
  const pieces: Buffer[] = []
  pdf.on('data', (piece: Buffer) => pieces.push(piece))
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  pdf.on('end', () => resolve(Buffer.concat(pieces)))
  pdf.text('A report').text('The harbour of Sur was built in 1931. '.repeat(20))
  pdf.addPage().text('Second page.')
  pdf.end()
  return promise
}

/** Its streams are not compressed, so that a change of the bytes changes the content. */
const PLAIN_PDF = Buffer.from(`%PDF-1.7
1 0 obj <</Type/Catalog/Pages 2 0 R/Outlines 6 0 R/AcroForm <</Fields[7 0 R]>>/Names <</Dests 8 0 R>>>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>/XObject<</X1 9 0 R>>>>/Annots[7 0 R]>> endobj
4 0 obj <</Length 66>>
stream
BT /F1 12 Tf 50 700 Td (The harbour of Sur) Tj ET /X1 Do q 1 0 0 1 0 0 cm Q
endstream endobj
5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 10 0 R>> endobj
6 0 obj <</Type/Outlines/First 11 0 R/Last 11 0 R/Count 1>> endobj
7 0 obj <</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(value)/Rect[0 0 9 9]/Parent 7 0 R>> endobj
8 0 obj <</Names[(a) [3 0 R /Fit]]/Kids[8 0 R]>> endobj
9 0 obj <</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X1 9 0 R>>>>/Length 6>>
stream
/X1 Do
endstream endobj
10 0 obj <</Length 120>>
stream
/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <00> <ff> <0000> endbfrange endcmap
endstream endobj
11 0 obj <</Title(One)/Parent 6 0 R/Dest[3 0 R /Fit]/Next 11 0 R>> endobj
trailer <</Size 12/Root 1 0 R/Prev 0>>
%%EOF`)

const HTML = `<!doctype html><html lang="ar"><head><meta charset="utf-8"><title>Made</title></head><body><nav>menu</nav><h1>Report</h1><p>The <b>harbour</b> of Sur.</p>
<table><tr><th>City<th>People<tr><td colspan="2">Sur<td rowspan="3">1</table><ul><li>One<li>Two</ul><pre>code</pre><!-- note --><p style="display: none">hidden &amp; gone &#x41;</p></body></html>`
const MARKDOWN = `# Report\n\nThe *harbour* of **Sur** [link](http://x "t") ![i](y).\n\n- one\n  - two\n\n| City | People |\n|---|---|\n| Sur | 1 |\n\n\`\`\`js\ncode\n\`\`\`\n\n> quote\n\n<div>html</div>\n\n[a]: http://b\n`

/** Returns a seed with some parts damaged, by its format or as bytes. */
export function spoiledFile(seeds: readonly FileToRead[]): fc.Arbitrary<FileToRead> {
  return fc.constantFrom(...seeds).chain(({ name, bytes }) => {
    const own =
      bytes.toString('latin1', 0, 4) === ARCHIVE
        ? spoiledArchive(bytes)
        : name.endsWith('.pdf')
          ? spoiledPdf(bytes)
          : spoiledText(bytes, name)
    return fc
      .oneof(
        { arbitrary: own, weight: 5 },
        { arbitrary: own.chain(spoiledBytes), weight: 1 },
        { arbitrary: spoiledBytes(bytes), weight: 1 },
      )
      .map((spoiled) => ({ name, bytes: spoiled }))
  })
}

const at = (length: number) => fc.nat({ max: Math.max(0, length - 1) })

/** Cuts, tears, flips or doubles bytes. */
function spoiledBytes(bytes: Buffer): fc.Arbitrary<Buffer> {
  const { length } = bytes
  return fc.oneof(
    at(length).map((end) => bytes.subarray(0, end)),
    fc
      .tuple(at(length), fc.integer({ min: 1, max: 2_000 }))
      .map(([from, count]) => Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + count)])),
    fc.array(fc.tuple(at(length), fc.nat({ max: 255 })), { minLength: 1, maxLength: 30 }).map((changes) => {
      const copy = Buffer.from(bytes)
      for (const [offset, byte] of changes) if (offset < length) copy[offset] = byte
      return copy
    }),
    fc
      .tuple(at(length), at(length), fc.integer({ min: 1, max: 3_000 }))
      .map(([from, to, count]) => Buffer.concat([bytes.subarray(0, to), bytes.subarray(from, from + count), bytes.subarray(to)])),
  )
}

const EVIL_XML = [
  '<!DOCTYPE w [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>',
  '<!DOCTYPE w [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
  '<!DOCTYPE w SYSTEM "http://127.0.0.1:1/x.dtd">',
]
const XML_PIECES = [
  ...[
    '&c;',
    '&x;',
    '&#0;',
    '&#xFFFFFFFF;',
    '&amp',
    ']]>',
    '<![CDATA[',
    '<!--',
    '<?xml',
    '</w:body>',
    '</w:p>',
    '<w:p>',
    '<w:tbl>',
    '<w:tr>',
  ],
  ...[
    '<w:r><w:t>x</w:t></w:r>',
    '<w:gridSpan w:val="1000000000"/>',
    '<w:vMerge/>',
    '<w:numPr><w:numId w:val="-1"/></w:numPr>',
    '<w:outlineLvl w:val="99999"/>',
  ],
  ...[
    '<w:sdt><w:sdtContent>',
    '<w:txbxContent><w:p>',
    '<mc:AlternateContent><mc:Choice>',
    '<w:footnoteReference w:id="1"/>',
    '<w:pStyle w:val="__proto__"/>',
    '\u0000',
  ],
]
const NAMES = [
  '../../x',
  '/etc/passwd',
  'word/document.xml',
  'word\\document.xml',
  '__proto__',
  'a'.repeat(60_000),
  '',
  'word/_rels/document.xml.rels',
  '[Content_Types].xml',
]

/** Archive entries with the text of a document. */
const MAIN_PARTS = /^(?:word\/document|xl\/worksheets\/sheet1|ppt\/slides\/slide1|content)\.xml$|\.xhtml$/

function spoiledArchive(bytes: Buffer): fc.Arbitrary<Buffer> {
  const entries = readZip(bytes)
  const main = entries.findIndex(({ name }) => MAIN_PARTS.test(name))
  const which = fc.oneof(
    { arbitrary: fc.constant(Math.max(0, main)), weight: 3 },
    { arbitrary: fc.nat({ max: entries.length - 1 }), weight: 2 },
  )
  const replaced = (index: number, entry: ZipEntry) => writeZip(entries.with(index, entry))
  const changed = (change: (xml: string, offset: number) => string) =>
    fc.tuple(which, fc.double({ min: 0, max: 1, noNaN: true })).map(([index, share]) => {
      const xml = entries[index]!.content.toString()
      return replaced(index, { name: entries[index]!.name, content: Buffer.from(change(xml, Math.floor(xml.length * share))) })
    })
  return fc.oneof(
    fc
      .constantFrom(...EVIL_XML)
      .chain((evil) => changed((xml) => xml.replace(/^(<\?xml[^>]*>)?/, `$1${evil}`).replace('<w:t', '<w:t>&c;&x;</w:t><w:t'))),
    fc.tuple(fc.constantFrom(...XML_PIECES), fc.constantFrom(1, 10, 3_000, 30_000)).chain(([piece, times]) =>
      changed((xml, offset) => {
        const tag = xml.indexOf('<', offset)
        return xml.slice(0, tag) + piece.repeat(times) + xml.slice(tag)
      }),
    ),
    fc.integer({ min: 1, max: 3_000 }).chain((count) => changed((xml, offset) => xml.slice(0, offset) + xml.slice(offset + count))),
    fc
      .constantFrom('0', '-1', '1e9', '99999999999999999999', '__proto__', 'rId1')
      .chain((value) => changed((xml, offset) => xml.slice(0, offset) + xml.slice(offset).replace(/="[^"]*"/, `="${value}"`))),
    fc
      .tuple(
        which,
        fc.record(
          {
            size: fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1),
            method: fc.constantFrom(0, 8, 9, 12, 99),
            flags: fc.constantFrom(0, 1, 8, 0x800),
          },
          { requiredKeys: [] },
        ),
      )
      .map(([index, claim]) => replaced(index, { ...entries[index]!, claim })),
    fc
      .tuple(which, fc.constantFrom(0, 1, 2 ** 20, 2 ** 32 - 1))
      .map(([index, packedSize]) => replaced(index, { ...entries[index]!, claim: { packedSize } })),
    fc.tuple(which, fc.constantFrom(...NAMES)).map(([index, name]) => replaced(index, { ...entries[index]!, name })),
    which.map((index) => writeZip([...entries, entries[index]!, entries[index]!])),
    which.map((index) => writeZip(entries.toSpliced(index, 1))),
    fc
      .tuple(which, fc.constantFrom(' ', 'a', '<w:p/>', '\u0000'))
      .map(([index, unit]) => replaced(index, { name: entries[index]!.name, content: Buffer.alloc(20_000_000, unit) })),
    fc
      .constant(null)
      .map(() =>
        writeZip([...entries, ...Array.from({ length: 3_000 }, (_, i) => ({ name: `word/${i}.xml`, content: Buffer.from('<a/>') }))]),
      ),
    fc.constant(null).map(() => writeZip([...entries, { name: 'word/inner.docx', content: bytes }])),
  )
}

const PDF_NUMBERS = ['-1', '0', '99999999999', '1e308', '-2147483649', '0.0000000001', '9'.repeat(400)]
const PDF_PIECES = [
  ...[
    '[',
    '<<',
    '(',
    '<',
    '/',
    'endobj',
    'endstream',
    'stream\n',
    '% ',
    '\u0000',
    'R',
    ' 0 obj',
    '>>',
    '\\(',
    '/Kids[2 0 R]',
    '/Parent 3 0 R',
    '/First 11 0 R',
  ],
  ...[
    'q ',
    'BT ',
    '/X1 Do ',
    '[(a)-1e9(b)]TJ ',
    '(a)Tj ',
    '1e9 0 0 1e9 0 0 cm ',
    'BI /W 99999 /H 99999 ID ',
    '/Span BMC ',
    '/F1 1e-9 Tf ',
    '<0041>Tj ',
  ],
]
const PDF_FILTERS = [
  '/Filter/FlateDecode',
  `/Filter[${'/FlateDecode'.repeat(60)}]`,
  `/Filter[${'/ASCIIHexDecode/RunLengthDecode/LZWDecode/ASCII85Decode'.repeat(10)}]`,
  '/Filter/JBIG2Decode',
  '/Filter/JPXDecode',
  '/Filter/CCITTFaxDecode/DecodeParms<</Columns 99999999 /Rows 99999999>>',
  '/Filter/FlateDecode/DecodeParms<</Predictor 15/Columns 2147483647>>',
  '/Filter/Crypt',
]

/** Damages a PDF as Latin 1, in which each byte is a character. */
function spoiledPdf(bytes: Buffer): fc.Arbitrary<Buffer> {
  const text = bytes.toString('latin1')
  const share = fc.double({ min: 0, max: 1, noNaN: true })
  const changed = (pattern: RegExp, replacement: fc.Arbitrary<string>) =>
    fc.array(fc.tuple(share, replacement), { minLength: 1, maxLength: 4 }).map((changes) => {
      let result = text
      for (const [where, value] of changes) {
        const from = Math.floor(result.length * where)
        result = result.slice(0, from) + result.slice(from).replace(pattern, () => value)
      }
      return Buffer.from(result, 'latin1')
    })
  const dictionary = (entries: fc.Arbitrary<string>) =>
    changed(
      /<<(?!<)/,
      entries.map((entry) => `<<${entry}`),
    )
  return fc.oneof(
    changed(/\b\d+\b/, fc.constantFrom(...PDF_NUMBERS)),
    changed(
      /\b\d+ 0 R/,
      fc.nat({ max: 14 }).map((id) => `${id} 0 R`),
    ),
    changed(
      /\/[A-Z][A-Za-z]+/,
      fc.constantFrom(
        '/Kids',
        '/Parent',
        '/Length',
        '/Type',
        '/Pages',
        '/Page',
        '/Contents',
        '/ObjStm',
        '/XRef',
        '/Encrypt',
        '/Prev',
        '/__proto__',
      ),
    ),
    changed(
      /[\s]/,
      fc.tuple(fc.constantFrom(...PDF_PIECES), fc.constantFrom(1, 50, 5_000, 50_000)).map(([piece, times]) => ` ${piece.repeat(times)} `),
    ),
    dictionary(fc.constantFrom(...PDF_FILTERS)),
    dictionary(
      fc.constantFrom(
        '/Count 999999999',
        '/Prev 0',
        '/Prev 10',
        '/XRefStm 0',
        '/Length 99999999999',
        '/Length -1',
        '/Encrypt<</Filter/Standard/V 5/R 6/Length 256>>',
        '/Rotate 7',
        '/MediaBox[0 0 1e30 1e30]',
        '/UserUnit 1e30',
      ),
    ),
    fc.constantFrom('BT /F1 12 Tf (a) Tj ET\n', 'q ', '/X1 Do\n', '1 0 0 1 1 1 cm ', '\u0000', '( ').map((unit) => {
      const data = deflateSync(Buffer.alloc(10_000_000, unit))
      const packed = data.toString('latin1')
      return Buffer.from(
        text
          .replace(/stream\r?\n[\s\S]*?endstream/, () => `stream\n${packed}\nendstream`)
          .replace(/<<\s*\/Length \d+/, `<</Filter/FlateDecode/Length ${data.length}`),
        'latin1',
      )
    }),
    fc.constant(Buffer.concat([bytes, bytes])),
  )
}

const TEXT_PIECES = [
  ...[
    '<!--',
    '<',
    '</',
    '<div>',
    '<table><tr><td>',
    '<b><p>',
    '<a href="',
    '&#',
    '&amp;',
    '<svg><math>',
    '<script>',
    '<!DOCTYPE ',
    '<li><ul>',
    '<td colspan=100000 rowspan=100000>',
    '<template>',
  ],
  ...[
    '[',
    '](',
    '![',
    '*',
    '_',
    '**a ',
    '`',
    '```\n',
    '> ',
    '- ',
    '  - ',
    '1. ',
    '|',
    '|-',
    '\\',
    '#',
    '~',
    '<x@y',
    '[a]: ',
    '\t',
    '---\n',
    '=\n',
    '$$',
    '[^1]',
  ],
  ...[
    '{"a":',
    '[[',
    '"',
    ',',
    '"\n',
    '\r',
    '\r\n',
    '\u0000',
    '\ufeff',
    '\u202e',
    'ﷺ',
    'ا\u064b',
    '\u0301',
    '😀',
    '\u2028',
    ' ',
    '\n',
    'a\n',
    'x',
    '\u001b[',
  ],
]
const CHARSETS = ['utf-8', 'utf-16le', 'utf-7', 'x-user-defined', 'iso-2022-jp', 'windows-1256', 'gb18030', 'nonsense', '']

function spoiledText(bytes: Buffer, name: string): fc.Arbitrary<Buffer> {
  const pieces = fc.tuple(fc.constantFrom(...TEXT_PIECES), fc.constantFrom(1, 30, 2_000, 60_000))
  const inserted = fc.array(fc.tuple(at(bytes.length), pieces), { minLength: 1, maxLength: 3 }).map((changes) => {
    let result = bytes
    for (const [offset, [piece, times]] of changes)
      result = Buffer.concat([result.subarray(0, offset), Buffer.from(piece.repeat(times)), result.subarray(offset)])
    return result
  })
  const mixed = fc.array(pieces, { minLength: 2, maxLength: 4 }).map((all) => {
    const unit = all.map(([piece]) => piece).join('')
    return Buffer.from(unit.repeat(Math.ceil(200_000 / unit.length)))
  })
  const charset = fc.constantFrom(...CHARSETS).map((label) => Buffer.concat([Buffer.from(`<meta charset="${label}">`), bytes]))
  return fc.oneof(
    inserted,
    inserted,
    mixed,
    name.endsWith('.html') ? charset : inserted,
    fc.constant(Buffer.from(bytes.toString(), 'utf16le')),
  )
}
