import { describe, expect, it } from 'vitest'
import { docFile, msgFile } from '../../../../../test/support/data/ole-file.ts'
import { writeZip } from '../../../../../test/support/data/zip-file.ts'
import { DEFAULT_LIMITS } from '../limits.ts'
import { sniffMediaType } from '../sniff.ts'
import { declaredZip, outline, read, zip } from '../test-support/reading.ts'
import { unpack } from './unpack.ts'

const REL = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const rels = (...targets: (readonly [id: string, type: string, target: string])[]) =>
  `<Relationships>${targets.map(([id, type, target]) => `<Relationship Id="${id}" Type="${REL}/${type}" Target="${target}"/>`).join('')}</Relationships>`
const shape = (texts: readonly string[], type?: string) =>
  `<p:sp><p:nvSpPr><p:nvPr>${type ? `<p:ph type="${type}"/>` : ''}</p:nvPr></p:nvSpPr><p:txBody>${texts
    .map((text) => `<a:p><a:pPr/><a:r><a:t>${text}</a:t></a:r></a:p>`)
    .join('')}</p:txBody></p:sp>`
const slide = (shapes: string, facts = '') =>
  `<p:sld xmlns:p="p" xmlns:a="a" ${facts}><p:cSld><p:spTree>${shapes}</p:spTree></p:cSld></p:sld>`
const cell = (text: string, facts = '') => `<a:tc ${facts}><a:txBody><a:p><a:r><a:t>${text}</a:t></a:r></a:p></a:txBody></a:tc>`

const PPTX = zip({
  '_rels/.rels': rels(['r1', 'officeDocument', 'ppt/presentation.xml']),
  'ppt/presentation.xml': `<p:presentation xmlns:p="p" xmlns:r="${REL}"><p:sldIdLst><p:sldId id="256" r:id="r2"/><p:sldId id="257" r:id="r3"/><p:sldId id="258" r:id="r1"/></p:sldIdLst></p:presentation>`,
  'ppt/_rels/presentation.xml.rels': rels(
    ['r1', 'slide', 'slides/a.xml'],
    ['r2', 'slide', 'slides/b.xml'],
    ['r3', 'slide', 'slides/c.xml'],
  ),
  'ppt/slides/a.xml': slide(
    `<p:grpSp>${shape(['In a group'])}</p:grpSp><p:graphicFrame><p:nvGraphicFramePr/><a:tbl><a:tr>${cell('Unit', 'gridSpan="2"')}${cell('', 'hMerge="1"')}</a:tr><a:tr>${cell('North', 'rowSpan="2"')}${cell('1')}</a:tr><a:tr>${cell('', 'vMerge="1"')}${cell('2')}</a:tr></a:tbl></p:graphicFrame>`,
  ),
  'ppt/slides/b.xml': slide(`${shape(['First point', 'Second point'], 'body')}${shape(['الخطة'], 'ctrTitle')}${shape(['7'], 'sldNum')}`),
  'ppt/slides/_rels/b.xml.rels': rels(['n', 'notesSlide', '../notesSlides/n.xml']),
  'ppt/notesSlides/n.xml': slide(`${shape(['Say hello first.'], 'body')}${shape(['7'], 'sldNum')}`),
  'ppt/slides/c.xml': slide(shape(['hidden']), 'show="0"'),
})

const NAMES = 'xmlns:o="o" xmlns:t="t" xmlns:x="x" xmlns:d="d" xmlns:p="p" xmlns:s="s"'
const odf = (kind: string, body: string, styles = '') =>
  declaredZip(`application/vnd.oasis.opendocument.${kind}`, {
    'content.xml': `<o:document-content ${NAMES}><o:automatic-styles><s:style s:name="P1" s:parent-style-name="Title"/></o:automatic-styles><o:body><o:${kind}>${body}</o:${kind}></o:body></o:document-content>`,
    'styles.xml': `<o:document-styles ${NAMES}>${styles}</o:document-styles>`,
  })

const ODT_STYLES = `<x:outline-style><x:outline-level-style x:level="1" s:num-format="1" s:num-prefix="المادة " s:num-suffix=":"/><x:outline-level-style x:level="2" s:num-format="1" x:display-levels="2"/></x:outline-style>
  <x:list-style s:name="L"><x:list-level-style-number x:level="1" s:num-format="أ, ب, ج, ..." s:num-suffix=")" x:start-value="2"/><x:list-level-style-bullet x:level="2"/></x:list-style>`
const ODT = odf(
  'text',
  `<x:tracked-changes><x:p>deleted</x:p></x:tracked-changes><x:p x:style-name="P1">Law</x:p>
   <x:h x:outline-level="1">تعاريف</x:h><x:h x:outline-level="2">Scope</x:h><x:h x:outline-level="1">أحكام</x:h>
   <x:p>One<x:s x:c="2"/>two<x:note><x:note-citation>1</x:note-citation><x:note-body><x:p>A note.</x:p></x:note-body></x:note><o:annotation><x:p>comment</x:p></o:annotation><d:frame><d:text-box><x:p>In a box</x:p></d:text-box></d:frame></x:p>
   <x:list x:style-name="L"><x:list-item><x:p>first</x:p><x:list><x:list-item><x:p>inner</x:p></x:list-item></x:list></x:list-item><x:list-item><x:p>second</x:p></x:list-item></x:list>
   <x:list x:style-name="L" x:continue-numbering="true"><x:list-item><x:p>third</x:p></x:list-item></x:list>
   <t:table><t:table-header-rows><t:table-row><t:table-cell><x:p>City</x:p></t:table-cell><t:table-cell><x:p>People</x:p></t:table-cell></t:table-row></t:table-header-rows>
   <t:table-row><t:table-cell t:number-rows-spanned="2"><x:p>Sur</x:p></t:table-cell><t:table-cell><x:p>1</x:p></t:table-cell></t:table-row><t:table-row><t:covered-table-cell/><t:table-cell><x:p>2</x:p></t:table-cell></t:table-row></t:table>`,
  ODT_STYLES,
)
const ODP = odf(
  'presentation',
  `<d:page><d:frame p:class="title"><d:text-box><x:p>Plan</x:p></d:text-box></d:frame><d:frame><d:text-box><x:list><x:list-item><x:p>Point</x:p></x:list-item></x:list></d:text-box></d:frame>
   <p:notes><d:frame><d:text-box><x:p>Say hello.</x:p></d:text-box></d:frame><d:frame p:class="page-number"><d:text-box><x:p>1</x:p></d:text-box></d:frame></p:notes></d:page>
   <d:page><d:frame><d:text-box><x:p>Second</x:p></d:text-box></d:frame></d:page>`,
)

const EPUB_PARTS = {
  'META-INF/container.xml': '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
  'OEBPS/book.opf':
    '<package><manifest><item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/><item id="b" href="b%20.xhtml" media-type="application/xhtml+xml"/><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="n"/><itemref idref="b"/><itemref idref="a"/></spine></package>',
  'OEBPS/nav.xhtml': '<html><body><p>contents</p></body></html>',
  'OEBPS/a.xhtml':
    '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body><h2>Two</h2><p>The <a id="x"/>end.</p></body></html>',
  'OEBPS/b .xhtml': '<?xml version="1.0"?><html><head><title>الأول</title></head><body><p>بداية.</p></body></html>',
}
const EPUB = declaredZip('application/epub+zip', EPUB_PARTS)

const RTF = String.raw`{\rtf1\ansi\ansicpg1256\deff0{\fonttbl{\f0\fcharset178 Arial;}{\f1\fcharset204 Cyr;}}{\info{\title no}}{\*\generator no}
{\header Head\par}{\header Head\par}\pard\outlinelevel0 {\listtext 1.\tab}\'c7\'e1\'e3\'c7\'cf\'c9\par\pard Caf\u233?e \f1\'ef\'f0\f0 {\v hidden}{\deleted gone}note{\footnote A note.} end\par
\trowd\intbl A\cell B\cell\row\intbl 1\cell {\b 2}\cell\row\pard {\shp{\*\shpinst{\shptxt In a box\par}}{\shprslt In a box}}{\pict 89504e47}\bin3 {{{last\'}`

describe('Presentations', () => {
  it('include PPTX slides in order, with titles, tables, groups and notes, without hidden slides and page numbers', async () => {
    const parsed = await read(PPTX)
    expect(parsed.pageCount).toBe(3)
    expect(parsed.blocks.map(({ page }) => page)).toEqual([1, 1, 1, 1, 3, 3, 3, 3, 3])
    expect(await outline(PPTX)).toEqual([
      'heading1: الخطة',
      'paragraph: First point',
      'paragraph: Second point',
      'paragraph: Say hello first.',
      'heading1: 3',
      'paragraph: In a group',
      'table_row: Unit',
      'table_row: North | 1',
      'table_row: North | 2',
    ])
  })

  it('include OpenDocument slides with their notes', async () => {
    expect(await outline(ODP)).toEqual(['heading1: Plan', 'list_item: Point', 'paragraph: Say hello.', 'heading1: 2', 'paragraph: Second'])
  })
})

describe('Text documents', () => {
  it('include OpenDocument text with numbers, notes, boxes and merged cells, without deleted text and comments', async () => {
    expect(await outline(ODT)).toEqual([
      'heading1: Law',
      'heading1: المادة 1: تعاريف',
      'heading2: 1.1 Scope',
      'heading1: المادة 2: أحكام',
      'paragraph: One  two[1]',
      'paragraph: [1] A note.',
      'paragraph: In a box',
      'list_item: ب) first',
      'list_item: inner',
      'list_item: ج) second',
      'list_item: د) third',
      'table_row: City | People',
      'table_row [City | People]: Sur | 1',
      'table_row [City | People]: Sur | 2',
    ])
  })

  it('include book chapters in reading order', async () => {
    expect(await outline(EPUB)).toEqual(['heading1: الأول', 'paragraph: بداية.', 'heading2: Two', 'paragraph: The end.'])
    const notes = `<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><body><p>Text<sup><a epub:type="noteref" href="#dataF1">1</a></sup></p><aside>An advertisement.</aside><aside epub:type="footnote" id="dataF1"><p><sup><a href="#calledF1">1</a></sup>The source.</p></aside></body></html>`
    expect(await outline(declaredZip('application/epub+zip', { ...EPUB_PARTS, 'OEBPS/a.xhtml': notes }))).toEqual(
      expect.arrayContaining(['paragraph: Text1', 'paragraph: 1 The source.']),
    )
    const locked = declaredZip('application/epub+zip', { ...EPUB_PARTS, 'META-INF/encryption.xml': '<x URI="OEBPS/a.xhtml"/>' })
    await expect(read(locked)).rejects.toMatchObject({ code: 'password_required' })
  })

  it('include Word 97 documents', async () => {
    expect(await outline(docFile('بني ميناء صور.\rSecond paragraph.\rCity\x07People\x07\x07'))).toEqual([
      'paragraph: بني ميناء صور.',
      'paragraph: Second paragraph.',
      expect.stringContaining('City'),
    ])
    await expect(read(docFile('text').subarray(0, 9_000))).rejects.toMatchObject({ code: 'corrupt' })
  })

  it('include rich text in the charsets of its fonts, with headers once, notes, tables and boxes', async () => {
    expect(await outline(RTF)).toEqual([
      'paragraph: Head',
      'heading1: 1.\tالمادة',
      'paragraph: Cafée прnote end',
      'paragraph: A note.',
      'table_row: A | B',
      'table_row: 1 | 2',
      'paragraph: In a box',
      'paragraph: last',
    ])
  })
})

describe('Data files', () => {
  it('include CSV with quotes, other delimiters and the Excel prefix, row by row with the header', async () => {
    const expected = [
      'table_row (row 1-1): City | Note',
      'table_row [City | Note] (row 2-2): صور | a, "b" and more',
      'table_row [City | Note] (row 3-3): Ibri',
    ]
    expect(await outline('City,Note\r\nصور,"a, ""b""\nand more"\r\nIbri,\r\n', 'a.csv')).toEqual(expected)
    expect(await outline('sep=;\nCity;Note\nصور;"a, ""b"" and more"\nIbri;', 'a.csv')).toEqual(expected)
    expect(await outline('City\tNote\nصور\ta, "b" and more\nIbri', 'a.tsv')).toEqual(expected)
    expect(await outline('a,b\n"never closed,1\n2,3', 'a.csv')).toHaveLength(3)
  })

  it('include JSON by records with numbers as written, and JSON Lines by lines', async () => {
    const json =
      '{"v":1.50,"orders":[{"id":12345678901234567890,"buyer":{"name":"أحمد"},"tags":["a","b",null],"lines":[{"sku":"x"},{"sku":"y"}]}],"note":null}'
    expect(await outline(json)).toEqual([
      'paragraph: v: 1.50',
      'heading1: orders',
      'paragraph: id: 12345678901234567890\nbuyer.name: أحمد\ntags: a, b',
      'paragraph: sku: x',
      'paragraph: sku: y',
    ])
    expect(await outline('{"a":1}\n\n{"a":true}\n')).toEqual(['paragraph (line 1-1): a: 1', 'paragraph (line 3-3): a: true'])
    expect(await read('{"a": 1, and then text', 'a.json')).toMatchObject({
      text: '{"a": 1, and then text',
      warnings: [{ code: 'structure_lost' }],
    })
    await expect(read(`${'['.repeat(100_000)}1${']'.repeat(100_000)}`, 'a.json')).rejects.toMatchObject({ code: 'limit_exceeded' })
  })

  it('include XML by records and running text, without entity expansion or fetches', async () => {
    const xml = `<?xml version="1.0" encoding="windows-1256"?><!DOCTYPE r [<!ENTITY a "x"><!ENTITY f SYSTEM "file:///etc/passwd">]>
      <r><item id="7"><name>\u00d5\u00e6\u00d1</name><price>1</price></item><p>Text with <b>words</b> &a;&f; in it.</p><empty/></r>`
    expect(await outline(Buffer.from(xml, 'latin1'))).toEqual([
      'paragraph: id: 7\nname: صور\nprice: 1',
      'paragraph: Text with words &a;&f; in it.',
    ])
    await expect(read('<?xml version="1.0"?><r><a>')).rejects.toMatchObject({ code: 'corrupt' })
    await expect(read(`<?xml version="1.0"?>${'<a>'.repeat(100_000)}`)).rejects.toMatchObject({ code: 'limit_exceeded' })
  })

  it('include subtitles with times and speakers, without markup', async () => {
    const srt = '1\r\n00:00:01,000 --> 00:00:04,200\r\n<i>أهلاً</i>\r\nبكم\r\n\r\n2\r\n00:01:05,000 --> 00:01:09,000\r\n{\\an8}Bye\r\n'
    expect(await outline(srt)).toEqual(['list_item (00:00:01-00:00:04): أهلاً بكم', 'list_item (00:01:05-00:01:09): Bye'])
    const vtt =
      'WEBVTT\n\nNOTE no\n\n00:01.000 --> 00:02.000 align:start\n<v Ali>Hi &amp; bye</v>\n\n00:02.000 --> 00:03.000\n<v Ali>Hi &amp; bye</v>\n'
    expect(await outline(vtt)).toEqual(['list_item (00:00:01-00:00:02): Ali: Hi & bye'])
  })

  it('include source code with its lines', async () => {
    expect(await outline('def a():\n    pass\n\n\nb = 1\n', 'a.py')).toEqual([
      'code (line 1-2): def a():\n    pass',
      'code (line 5-5): b = 1',
    ])
  })
})

const mail = (subject: string, body: string, type = 'text/plain; charset=utf-8') =>
  `From: "Ali" <ali@example.org>\r\nTo: b@example.org\r\nSubject: ${subject}\r\nDate: Sun, 5 Jan 2025 10:00:00 +0400\r\nMIME-Version: 1.0\r\nContent-Type: ${type}\r\n\r\n${body}\r\n`
const attached = (name: string, bytes: Uint8Array, type = 'application/octet-stream') =>
  `--x\r\nContent-Type: ${type}; name="${name}"\r\nContent-Disposition: attachment; filename="${name}"\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(bytes).toString('base64')}\r\n`
const HEADER = 'paragraph: From: Ali <ali@example.org>\nTo: b@example.org\nDate: 2025-01-05T06:00:00.000Z'

async function unpacked(bytes: Uint8Array, mediaType: string): Promise<readonly string[]> {
  const files = await Array.fromAsync(unpack(mediaType, bytes, DEFAULT_LIMITS))
  return files.map((file) => `${file.name}: ${file.bytes && Buffer.from(file.bytes).toString()}`)
}

describe('ZIP archives', () => {
  const archive = writeZip([
    { name: 'قرارات/الأول.txt', content: Buffer.from('one') },
    { name: 'folder/', content: Buffer.alloc(0) },
    { name: '__MACOSX/._a.txt', content: Buffer.from('x') },
    { name: 'folder/.hidden', content: Buffer.from('x') },
    { name: 'folder/Thumbs.db', content: Buffer.from('x') },
    { name: 'locked.txt', content: Buffer.from('two'), claim: { flags: 1 } },
    { name: 'odd.txt', content: Buffer.from('three'), claim: { method: 99 } },
  ])

  it('list their files without folders and system files, and unpack readable ones', async () => {
    const parsed = await read(archive, 'a.zip')
    expect(parsed).toMatchObject({ mediaType: 'application/zip', hasFiles: true })
    expect(parsed.text).toBe('قرارات/الأول.txt\nlocked.txt\nodd.txt')
    expect(await unpacked(archive, 'application/zip')).toEqual(['قرارات/الأول.txt: one', 'locked.txt: null', 'odd.txt: null'])
  })

  it('accept names in code page 437', async () => {
    const named = Buffer.from(writeZip([{ name: 'r_sum_.txt', content: Buffer.from('one') }]))
    for (let at = named.indexOf('r_sum_'); at >= 0; at = named.indexOf('r_sum_', at)) named[at + 1] = named[at + 5] = 0x82
    expect((await read(named, 'a.zip')).text).toBe('résumé.txt')
  })

  it('are refused when they are bombs', async () => {
    const bomb = writeZip([{ name: 'a.txt', content: Buffer.alloc(30_000_000) }])
    await expect(unpacked(bomb, 'application/zip')).rejects.toMatchObject({ code: 'limit_exceeded' })
  })
})

const MSG = msgFile('ميعاد', 'See you\r\n\r\non Sunday.', 'Bring the notes.')

describe('Mail', () => {
  it('reads an Outlook message, and names its attachments', async () => {
    expect(await outline(MSG)).toEqual([
      'heading1: ميعاد',
      'paragraph: From: Ali\nAttachments: notes.txt',
      'paragraph: See you',
      'paragraph: on Sunday.',
    ])
    expect(await unpacked(MSG, 'application/vnd.ms-outlook')).toEqual(['notes.txt: Bring the notes.'])
    await expect(read(MSG.subarray(0, 1_000), 'a.msg')).rejects.toMatchObject({ name: 'ParseFailure' })
  })

  it('reads a message, and names its attachments, which can be unpacked', async () => {
    const inner = mail('Inner', 'Inner text.')
    const parts = `--x\r\nContent-Type: text/html; charset=windows-1256\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>=E3=D1=CD=C8=C7</p>\r\n${attached('notes.csv', Buffer.from('City,People\nSur,1\n'))}${attached('old.eml', Buffer.from(inner))}--x--`
    const whole = mail('=?utf-8?B?2YXZiti52KfYrw==?=', parts, 'multipart/mixed; boundary=x')
    const parsed = await read(whole)
    expect(parsed).toMatchObject({ mediaType: 'message/rfc822', warnings: [], hasFiles: true })
    expect(await outline(whole)).toEqual(['heading1: ميعاد', `${HEADER}\nAttachments: notes.csv, old.eml`, 'paragraph: مرحبا'])
    const files = await unpacked(Buffer.from(whole), 'message/rfc822')
    expect(files[0]).toBe('notes.csv: City,People\nSur,1\n')
    expect(files[1]).toContain('old.eml: From: "Ali"')
    const mailbox = Buffer.from(`From a@b.c Sun Jan  5 10:00:00 2025\n${whole}\nFrom a@b.c Sun Jan  5 10:00:00 2025\n${whole}`)
    expect(await unpacked(mailbox, 'application/mbox')).toHaveLength(4)
  })

  it('reads every message of a mailbox', async () => {
    const box = ['One', 'Two']
      .map((subject) => `From ali@example.org Sun Jan  5 10:00:00 2025\n${mail(subject, `From here on ${subject}.`)}`)
      .join('\n')
    const parsed = await read(box)
    expect(parsed.mediaType).toBe('application/mbox')
    expect((await outline(box)).filter((line) => line !== HEADER)).toEqual([
      'heading1: One',
      'paragraph: From here on One.',
      'heading1: Two',
      'paragraph: From here on Two.',
    ])
  })

  it('reads the page of a saved web page', async () => {
    const mht = `From: <Saved by Blink>\r\nSnapshot-Content-Location: https://example.org/\r\nSubject: Page\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; type="text/html"; boundary="x"\r\n\r\n--x\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<html><title>Tea</title><p>Gr=\r\neen</p></html>\r\n--x--`
    expect(await read(mht)).toMatchObject({ mediaType: 'multipart/related', text: 'Tea\n\nGreen' })
  })
})

describe('Text format detection', () => {
  it.each([
    ['<!doctype html><p>x', 'a.xls', 'text/html'],
    ['<?xml version="1.0"?><html><body>x</body></html>', 'page', 'text/html'],
    ['<?xml version="1.0"?><rss><title>x</title></rss>', 'feed.txt', 'application/xml'],
    ['[1] Smith, J.: On trees. A list of references', 'a.txt', 'text/plain'],
    ['{not json}', 'a.txt', 'text/plain'],
    ['[{"a": 1}]', 'download', 'application/json'],
    ['id\tname\n1\ta\n2\tb\n3\tc\n4\td\n', 'a.txt', 'text/tab-separated-values'],
    ['One, two, three.\nFour, five.\nSix.\nSeven\nEight', 'a.txt', 'text/plain'],
    ['Subject: to change\nThe price: high\n', 'a.txt', 'text/plain'],
    ['From here on it is text of 2024\nand more', 'a.txt', 'text/plain'],
    ['# Title\n\n{"a": 1}', 'a.md', 'text/markdown'],
    ['words', 'a.constructor', 'text/plain'],
    ['{\\rtf1 a\\constructor b}', 'a', 'application/rtf'],
  ])('detects %j, named %s, as %s', async (content, name, mediaType) => {
    expect(await read(content, name)).toMatchObject({ mediaType })
  })
})

it.each([
  ['RIFF\0\0\0\0WAVEfmt ', 'audio/wav'],
  ['ID3\x04\0', 'audio/mpeg'],
  ['\0\0\0\x18ftypM4A ', 'audio/mp4'],
  ['\x89PNG\r\n\x1a\n\0', 'image/png'],
  ['RIFF\x10\0\0\0WEBPVP8 ', 'image/webp'],
  ['\xff\xd8\xff\xe0\0', 'image/jpeg'],
  ['MM\0*\0\0\0\x08', 'image/tiff'],
  ['GIF89a\0\0', 'application/octet-stream'],
])('distinguishes audio and images from other bytes: %j', (content, mediaType) => {
  expect(sniffMediaType(Buffer.from(content, 'latin1'), 'a')).toBe(mediaType)
})

describe('Corrupted files', () => {
  const archives = { pptx: PPTX, odt: ODT, odp: ODP, epub: EPUB }
  it.each(Object.entries(archives))('are reported as corrupt when %s is truncated', async (extension, bytes) => {
    await expect(read(bytes.subarray(0, bytes.length / 2), `a.${extension}`)).rejects.toMatchObject({ code: 'corrupt' })
  })

  it.each(['xls', 'ppt'])('of OLE without a document are not treated as old Office files: %s', async (extension) => {
    const ole = Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600)])
    await expect(read(ole, `a.${extension}`)).rejects.toMatchObject({ code: 'unsupported_type' })
  })

  it.each([
    ['WordDocument', 'corrupt'],
    ['__properties_version1.0', 'empty'],
  ])('are refused when an OLE file only names %s as %s', async (entry, code) => {
    const ole = Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600), Buffer.from(entry, 'utf16le'), Buffer.alloc(600)])
    await expect(read(ole, 'a')).rejects.toMatchObject({ code })
  })

  it('are refused when groups of rich text have no end', async () => {
    await expect(read(`{\\rtf1 ${'{a'.repeat(100_000)}`)).rejects.toMatchObject({ code: 'limit_exceeded' })
  })
})

describe('Linear time per megabyte', () => {
  it.each([
    ['a.csv', '"'],
    ['a.csv', '"a",'],
    ['a.csv', ',,,\n'],
    ['a.rtf', "{\\rtf1 \\'"],
    ['a.rtf', '{\\rtf1}\\u1 '],
    ['a.rtf', '{\\rtf1}\\row\\intbl a\\cell'],
    ['a.xml', '<?xml version="1.0"?><a/>&a;'],
    ['a.json', '{"a":'],
    ['a.jsonl', '{"a":1}\n'],
    ['a.srt', '00:00:01,000 --> 00:00:04,200\n<'],
    ['a.py', '\n \n'],
    ['a.eml', 'From: a@b.c\nTo: b@c.d\nMIME-Version: 1.0\n\n--x\nFrom a 2024\n'],
    ['a.mbox', 'From a 2024\nFrom: a\nTo: b\nSubject: c\n\n'],
    ['a.eml', 'From: a@b.c\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\n'],
  ])('holds for the worst of %s, %j repeated', async (name, pump) => {
    const begun = process.cpuUsage()
    await read(pump.repeat(1_000_000 / pump.length), name).catch((error) => expect(error).toMatchObject({ name: 'ParseFailure' }))
    expect(process.cpuUsage(begun).user / 1_000).toBeLessThan(8_000)
  })
})
