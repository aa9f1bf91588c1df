import { deflateSync } from 'node:zlib'
import type { FileToRead } from './spoiled-files.ts'
import { writeZip } from './zip-file.ts'

const MEGABYTE = 1_000_000
const zip = (entries: Readonly<Record<string, string | Buffer>>): Buffer =>
  writeZip(Object.entries(entries).map(([name, content]) => ({ name, content: Buffer.from(content) })))
const declared = (mediaType: string, content: string): Buffer =>
  writeZip([
    { name: 'mimetype', content: Buffer.from(mediaType), stored: true },
    { name: 'content.xml', content: Buffer.from(content) },
  ])
const odf = (kind: string, content: string) => declared(`application/vnd.oasis.opendocument.${kind}`, content)
const MAIL = 'From: a@b.c\r\nTo: d@e.f\r\nSubject: s\r\nMIME-Version: 1.0\r\n'
const OLE = Buffer.from('d0cf11e0a1b11ae1', 'hex')

function pdf(content: Buffer): Buffer {
  const data = deflateSync(content)
  return Buffer.concat([
    Buffer.from(
      '%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj\n' +
        `3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R>> endobj\n4 0 obj <</Length ${data.length}/Filter/FlateDecode>>\nstream\n`,
    ),
    data,
    Buffer.from('\nendstream endobj\ntrailer <</Size 5/Root 1 0 R>>\n%%EOF'),
  ])
}

/** A PNG that says how large it is, and has no more than its head. */
function png(width: number, height: number): Buffer {
  const head = Buffer.from('89504e470d0a1a0a0000000d494844520000000000000000080000000000000000', 'hex')
  head.writeUInt32BE(width, 16)
  head.writeUInt32BE(height, 20)
  return Buffer.concat([head, Buffer.from('0000000049444154', 'hex'), deflateSync(Buffer.alloc(MEGABYTE))])
}

/** Small files that ask for much memory or time: one or two of each format that inflates, nests or repeats. */
export function bombFiles(): readonly FileToRead[] {
  const zeros = Buffer.alloc(60 * MEGABYTE)
  const spaces = ' '.repeat(60 * MEGABYTE)
  const deep = (tag: string, depth: number) => `<${tag}>`.repeat(depth)
  return [
    { name: 'inflates.docx', bytes: zip({ 'word/document.xml': `<w:document>${spaces}` }) },
    { name: 'cells.xlsx', bytes: zip({ 'xl/workbook.xml': `<workbook>${'<sheet/>'.repeat(MEGABYTE)}</workbook>` }) },
    { name: 'inflates.pptx', bytes: zip({ 'ppt/presentation.xml': spaces }) },
    {
      name: 'repeats.ods',
      bytes: odf(
        'spreadsheet',
        `<a xmlns:t="t"><t:table-row t:number-rows-repeated="1000000000"><t:table-cell t:number-columns-repeated="16384"/></t:table-row></a>`,
      ),
    },
    { name: 'spaces.odt', bytes: odf('text', '<a xmlns:x="x"><x:p><x:s x:c="2000000000"/></x:p></a>') },
    { name: 'deep.odp', bytes: odf('presentation', deep('a', 200_000)) },
    { name: 'inflates.epub', bytes: zip({ 'META-INF/container.xml': spaces }) },
    { name: 'inflates.zip', bytes: zip({ 'a.txt': zeros, 'b.txt': zeros }) },
    { name: 'entries.zip', bytes: zip(Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`${index}.txt`, 'a']))) },
    { name: 'nested.zip', bytes: zip({ 'a.zip': zip({ 'b.zip': zip({ 'c.txt': zeros }) }) }) },
    {
      name: 'entities.xml',
      bytes: Buffer.from(
        `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbbbbbbbb">${Array.from({ length: 9 }, (_, index) => `<!ENTITY b${index} "${'&b;'.repeat(10)}">`).join('')}]><a>&b8;</a>`,
      ),
    },
    { name: 'deep.xml', bytes: Buffer.from(`<?xml version="1.0"?>${deep('a', 200_000)}`) },
    { name: 'deep.json', bytes: Buffer.from(`[${'['.repeat(300_000)}`) },
    { name: 'deep.rtf', bytes: Buffer.from(`{\\rtf1${'{'.repeat(300_000)}`) },
    { name: 'deep.html', bytes: Buffer.from(deep('div', 200_000)) },
    {
      name: 'parts.eml',
      bytes: Buffer.from(
        `${MAIL}${Array.from({ length: 2_000 }, (_, index) => `Content-Type: multipart/mixed; boundary=b${index}\r\n\r\n--b${index}\r\n`).join('')}`,
      ),
    },
    { name: 'many.mbox', bytes: Buffer.from(`From a@b.c Sun Jan  5 10:00:00 2025\n${MAIL}\r\n\n`.repeat(12_000)) },
    {
      name: 'cut.msg',
      bytes: Buffer.concat([OLE, Buffer.alloc(504), Buffer.from('__properties_version1.0', 'utf16le'), Buffer.alloc(MEGABYTE, 0xff)]),
    },
    {
      name: 'cut.doc',
      bytes: Buffer.concat([OLE, Buffer.alloc(504), Buffer.from('WordDocument', 'utf16le'), Buffer.alloc(MEGABYTE, 0xff)]),
    },
    {
      name: 'page.mht',
      bytes: Buffer.from(
        `Snapshot-Content-Location: http://a\r\n${MAIL}Content-Type: multipart/related; boundary=x\r\n\r\n--x\r\nContent-Type: text/html\r\n\r\n${deep('table', 300_000)}`,
      ),
    },
    { name: 'stream.pdf', bytes: pdf(Buffer.alloc(250 * MEGABYTE, 32)) },
    { name: 'huge.png', bytes: png(100_000, 100_000) },
    { name: 'lies.png', bytes: png(6_000, 6_000) },
  ]
}
