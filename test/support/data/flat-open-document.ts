import type { OfficeBlock, OfficeText } from '../../retrieval/office-texts.ts'

/**
 * Flat OpenDocument (ODF 1.3): one XML file, which LibreOffice opens and saves in its other formats. Each function gives
 * a text in the form that people would give it in that kind of document.
 */

const NAMESPACES = [
  ['office', 'urn:oasis:names:tc:opendocument:xmlns:office:1.0'],
  ['text', 'urn:oasis:names:tc:opendocument:xmlns:text:1.0'],
  ['table', 'urn:oasis:names:tc:opendocument:xmlns:table:1.0'],
  ['style', 'urn:oasis:names:tc:opendocument:xmlns:style:1.0'],
  ['draw', 'urn:oasis:names:tc:opendocument:xmlns:drawing:1.0'],
  ['presentation', 'urn:oasis:names:tc:opendocument:xmlns:presentation:1.0'],
  ['svg', 'urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0'],
  ['fo', 'urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0'],
]
  .map(([prefix, name]) => `xmlns:${prefix}="${name}"`)
  .join(' ')

/** A text with numbered lists, a table and footnotes. */
export function toTextDocument({ language, blocks }: OfficeText): string {
  return flat('text', language, `<office:text>${blocks.map(inText).join('')}</office:text>`)
}

/** A sheet for each section, with a row for each paragraph and item, the footnote beside it, and the cells of tables. */
export function toSpreadsheet({ language, blocks }: OfficeText): string {
  const tables = sectionsOf(blocks).map(
    (section, index) => `<table:table table:name="${index + 1}">${section.flatMap(rowsOf).map(row).join('')}</table:table>`,
  )
  return flat('spreadsheet', language, `<office:spreadsheet>${tables.join('')}</office:spreadsheet>`)
}

/** A slide for each section, with its footnotes as the speaker's notes and its table below. */
export function toPresentation({ language, blocks }: OfficeText): string {
  const slides = sectionsOf(blocks).map(
    (section, index) => `<draw:page draw:name="slide${index + 1}" draw:master-page-name="Default">${slide(section)}</draw:page>`,
  )
  return flat('presentation', language, `<office:presentation>${slides.join('')}</office:presentation>`)
}

function flat(kind: string, language: string, body: string): string {
  const mode = language === 'ar' ? 'rl-tb' : 'lr-tb'
  const country = language === 'ar' ? 'OM' : 'GB'
  const font = 'fo:font-family="DejaVu Sans" style:font-family-complex="Amiri"'
  const locale = `fo:language="en" fo:country="GB" style:language-complex="${language === 'ar' ? 'ar' : 'none'}" style:country-complex="${country}"`
  const families = ['paragraph', 'table-cell', 'graphic', 'presentation'].map(
    (family) =>
      `<style:default-style style:family="${family}"><style:paragraph-properties style:writing-mode="${mode}"/><style:text-properties ${font} ${locale}/></style:default-style>`,
  )
  const levels = '<text:list-level-style-number text:level="1" style:num-suffix="." style:num-format="1"/>'
  return `<?xml version="1.0" encoding="UTF-8"?>
<office:document ${NAMESPACES} office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.${kind}">
<office:styles>${families.join('')}<text:list-style style:name="Steps">${levels}</text:list-style></office:styles>
<office:automatic-styles><style:page-layout style:name="page"><style:page-layout-properties fo:page-width="21cm" fo:page-height="29.7cm" fo:margin="2cm" style:writing-mode="${mode}"/></style:page-layout></office:automatic-styles>
<office:master-styles><style:master-page style:name="${kind === 'text' ? 'Standard' : 'Default'}" style:page-layout-name="page"/></office:master-styles>
<office:body>${body}</office:body></office:document>`
}

function inText(block: OfficeBlock, index: number): string {
  switch (block.kind) {
    case 'heading':
      return `<text:h text:outline-level="${block.level}">${escapeXml(block.text)}</text:h>`
    case 'paragraph':
      return `<text:p>${escapeXml(block.text)}${block.footnote ? note(block.footnote, index) : ''}</text:p>`
    case 'list':
      return `<text:list text:style-name="Steps">${block.items.map((item) => `<text:list-item>${paragraph(item)}</text:list-item>`).join('')}</text:list>`
    case 'table':
      return table(block.rows, index)
  }
}

function note(text: string, index: number): string {
  return `<text:note text:id="n${index}" text:note-class="footnote"><text:note-citation>${index}</text:note-citation><text:note-body>${paragraph(text)}</text:note-body></text:note>`
}

function table(rows: readonly (readonly string[])[], index: number): string {
  // Not in `table-header-rows`: LibreOffice loses those in presentations and in EPUB.
  const columns = `<table:table-column table:number-columns-repeated="${rows[0]!.length}"/>`
  return `<table:table table:name="table${index}">${columns}${rows.map(row).join('')}</table:table>`
}

function row(cells: readonly string[]): string {
  return `<table:table-row>${cells.map((cell) => `<table:table-cell office:value-type="string">${paragraph(cell)}</table:table-cell>`).join('')}</table:table-row>`
}

function paragraph(text: string): string {
  return `<text:p>${escapeXml(text)}</text:p>`
}

/** Each heading begins one. */
function sectionsOf(blocks: readonly OfficeBlock[]): readonly (readonly OfficeBlock[])[] {
  const sections: OfficeBlock[][] = []
  for (const block of blocks) {
    if (block.kind === 'heading' || sections.length === 0) sections.push([])
    sections.at(-1)!.push(block)
  }
  return sections
}

function rowsOf(block: OfficeBlock): readonly (readonly string[])[] {
  if (block.kind === 'table') return block.rows
  if (block.kind === 'list') return block.items.map((item) => [item])
  return [block.kind === 'paragraph' && block.footnote ? [block.text, block.footnote] : [block.text]]
}

function slide(section: readonly OfficeBlock[]): string {
  const frame = (kind: string, y: number, height: number, content: string) =>
    `<draw:frame ${kind} svg:x="1cm" svg:y="${y}cm" svg:width="19cm" svg:height="${height}cm">${content}</draw:frame>`
  const box = (kind: string, y: number, height: number, paragraphs: readonly string[]) =>
    paragraphs.length === 0
      ? ''
      : frame(`presentation:class="${kind}"`, y, height, `<draw:text-box>${paragraphs.map(paragraph).join('')}</draw:text-box>`)
  const [title] = section
  const body = section.flatMap((block) => (block.kind === 'paragraph' ? [block.text] : block.kind === 'list' ? block.items : []))
  const tables = section.flatMap((block) => (block.kind === 'table' ? [block.rows] : []))
  const notes = section.flatMap((block) => (block.kind === 'paragraph' && block.footnote ? [block.footnote] : []))
  return [
    box('title', 1, 2, title?.kind === 'heading' ? [title.text] : []),
    box('outline', 4, 12, body),
    ...tables.map((rows, index) => frame('', 17, 8, table(rows, index))),
    `<presentation:notes>${box('notes', 15, 10, notes)}</presentation:notes>`,
  ].join('')
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
