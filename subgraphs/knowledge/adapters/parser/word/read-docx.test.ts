import mammoth from 'mammoth'
import { describe, expect, it, vi } from 'vitest'
import { outline, read, zip } from '../test-support/reading.ts'

const REL = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const WORD = 'xmlns:w="w" xmlns:mc="mc"'
const PARTS = ['styles', 'numbering', 'footnotes', 'header', 'footer'] as const

/** Returns a document. With `isNamed`, its parts have the names that mammoth knows. */
function docx(body: string, parts: Partial<Record<(typeof PARTS)[number] | 'header2', string>> = {}, isNamed = false): Buffer {
  const names = Object.keys(parts)
  const word = isNamed ? WORD.replace('"w"', '"http://schemas.openxmlformats.org/wordprocessingml/2006/main"') : WORD
  return zip({
    'word/document.xml': `<w:document ${word}><w:body>${body}</w:body></w:document>`,
    'word/_rels/document.xml.rels': `<Relationships>${names
      .map((name) => `<Relationship Id="${name}" Type="${REL}/${name.replace(/\d/, '')}" Target="${name}.xml"/>`)
      .join('')}</Relationships>`,
    ...Object.fromEntries(Object.entries(parts).map(([name, xml]) => [`word/${name}.xml`, `<w:${name} ${WORD}>${xml}</w:${name}>`])),
  })
}

const run = (text: string, facts = '') => `<w:r>${facts && `<w:rPr>${facts}</w:rPr>`}<w:t>${text}</w:t></w:r>`
const p = (text: string, facts = '') => `<w:p><w:pPr>${facts}</w:pPr>${text.startsWith('<') ? text : run(text)}</w:p>`
const item = (text: string, list: number, level = 0) => p(text, `<w:numPr><w:ilvl w:val="${level}"/><w:numId w:val="${list}"/></w:numPr>`)
const level = (at: number, format: string, text: string, more = '') =>
  `<w:lvl w:ilvl="${at}"><w:start w:val="1"/><w:numFmt w:val="${format}"/>${more}<w:lvlText w:val="${text}"/></w:lvl>`

const STYLES = `<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="3"/></w:numPr></w:pPr></w:style>
  <w:style w:type="paragraph" w:styleId="H2"><w:name w:val="Custom"/><w:basedOn w:val="H1"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
  <w:style w:type="paragraph" w:styleId="T"><w:name w:val="Title"/></w:style>`
const NUMBERING = `<w:abstractNum w:abstractNumId="0">${level(0, 'decimal', '%1.')}${level(1, 'lowerLetter', '%2)')}${level(2, 'lowerRoman', '%1.%2.%3')}</w:abstractNum>
  <w:abstractNum w:abstractNumId="1">${level(0, 'arabicAbjad', '%1-')}${level(1, 'bullet', '•')}</w:abstractNum>
  <w:abstractNum w:abstractNumId="2">${level(0, 'decimal', 'المادة %1:', '<w:pStyle w:val="H1"/>')}${level(1, 'decimal', '%1.%2', '<w:pStyle w:val="H2"/>')}</w:abstractNum>
  <w:abstractNum w:abstractNumId="3"><w:lvl w:ilvl="0"><w:start w:val="9"/><w:numFmt w:val="custom" w:format="١, ٢, ٣, ..."/><w:lvlText w:val="(%1)"/></w:lvl></w:abstractNum>
  <w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="3"><w:abstractNumId w:val="2"/></w:num>
  <w:num w:numId="4"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num><w:num w:numId="5"><w:abstractNumId w:val="3"/></w:num>`

describe('DOCX documents', () => {
  it('number lists like Word: levels, restarts, abjad, bullets, other digits', async () => {
    const body = [
      ...[item('a', 1), item('b', 1, 1), item('c', 1, 1), item('d', 1, 2), item('e', 1), item('f', 1, 1)],
      ...[item('g', 2), item('h', 2), item('i', 2, 1), item('j', 4), item('k', 4), item('l', 5), item('m', 5), item('n', 0), item('o', 77)],
    ].join('')
    expect(await outline(docx(body, { numbering: NUMBERING }))).toEqual([
      ...['list_item: 1. a', 'list_item: a) b', 'list_item: b) c', 'list_item: 1.b.i d', 'list_item: 2. e', 'list_item: a) f'],
      ...[
        'list_item: أ- g',
        'list_item: ب- h',
        'list_item: i',
        'list_item: 5. j',
        'list_item: 6. k',
        'list_item: (٩) l',
        'list_item: (١٠) m',
      ],
      ...['paragraph: n', 'paragraph: o'],
    ])
  })

  it('number headings by their styles', async () => {
    const body = [
      p('Law', '<w:pStyle w:val="T"/>'),
      ...['تعاريف', 'أحكام'].map((text) => p(text, '<w:pStyle w:val="H1"/>')),
      p('Scope', '<w:pStyle w:val="H2"/>'),
    ]
    expect(await outline(docx(body.join(''), { styles: STYLES, numbering: NUMBERING }))).toEqual([
      'heading1: Law',
      'heading1: المادة 1: تعاريف',
      'heading1: المادة 2: أحكام',
      'heading2: 2.1 Scope',
    ])
  })

  it('include accepted changes, notes, boxes, and headers and footers once, without hidden text and comments', async () => {
    const note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    const box = (text: string) => `<w:txbxContent>${p(text)}</w:txbxContent>`
    const body = [
      `<w:p>${run('Old ')}<w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:ins>${run('new')}</w:ins>${run('secret', '<w:vanish/>')}${note}<w:commentRangeStart/><w:r><w:commentReference w:id="1"/></w:r></w:p>`,
      `<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>${run('One ')}</w:p>${p('paragraph')}`,
      `<w:p>${run('Box:')}<w:r><mc:AlternateContent><mc:Choice>${box('in it')}</mc:Choice><mc:Fallback>${box('in it')}</mc:Fallback></mc:AlternateContent></w:r></w:p>`,
      `<w:sdt><w:sdtPr><w:t>x</w:t></w:sdtPr><w:sdtContent>${p('<w:hyperlink><w:r><w:t>link</w:t><w:tab/><w:t>end</w:t></w:r></w:hyperlink>')}</w:sdtContent></w:sdt>`,
    ]
    const page = p('<w:fldSimple w:instr=" PAGE "><w:r><w:t>1</w:t></w:r></w:fldSimple>')
    const parts = {
      footnotes: `<w:footnote w:id="2">${p('A note.')}</w:footnote>`,
      header: p('Ministry') + page,
      header2: p('Ministry'),
      footer: p('Secret'),
    }
    expect(await outline(docx(body.join(''), parts))).toEqual([
      'paragraph: Ministry',
      'paragraph: Old new[1]',
      'paragraph: [1] A note.',
      'paragraph: One paragraph',
      'paragraph: Box:',
      'paragraph: in it',
      'paragraph: link\tend',
      'paragraph: Secret',
    ])
  })

  it('include tables with header rows, merged cells and numbers, and layout tables as text', async () => {
    const cell = (content: string, facts = '') => `<w:tc><w:tcPr>${facts}</w:tcPr>${content}</w:tc>`
    const row = (cells: string, facts = '') => `<w:tr><w:trPr>${facts}</w:trPr>${cells}</w:tr>`
    const table = `<w:tbl>${row(cell(p('Unit')) + cell(p('Cost'), '<w:gridSpan w:val="2"/>'), '<w:tblHeader/>')}
      ${row(cell(p('North'), '<w:vMerge w:val="restart"/>') + cell(item('x', 1)) + cell(p('2')))}${row(cell(p(''), '<w:vMerge/>') + cell(item('y', 1)) + cell(p('4')))}
      ${row(cell(p('gone')) + cell(p('gone')), '<w:del/>')}</w:tbl>`
    expect(await outline(docx(`${table}<w:tbl>${row(cell(p('Only') + p('layout')))}</w:tbl>`, { numbering: NUMBERING }))).toEqual([
      'table_row: Unit | Cost | Cost',
      'table_row [Unit | Cost | Cost]: North | 1. x | 2',
      'table_row [Unit | Cost | Cost]: North | 2. y | 4',
      'paragraph: Only',
      'paragraph: layout',
    ])
  })

  it('accept elements named like built-in object properties', async () => {
    expect(await outline(docx(`<w:p>${run('a')}<w:r><w:constructor/><w:toString/></w:r>${run('b')}</w:p>`))).toEqual(['paragraph: ab'])
  })

  it('are corrupt if parts are broken, and may have cyclic styles', async () => {
    await expect(read(docx('<w:p>'))).rejects.toMatchObject({ code: 'corrupt' })
    const circle = '<w:style w:styleId="A"><w:basedOn w:val="B"/></w:style><w:style w:styleId="B"><w:basedOn w:val="A"/></w:style>'
    expect(await outline(docx(p('x', '<w:pStyle w:val="A"/>'), { styles: circle }))).toEqual(['paragraph: x'])
  })

  describe('with a plain body', () => {
    const cell = (content: string) => `<w:tc>${content}</w:tc>`
    const row = (...cells: readonly string[]) => `<w:tr>${cells.map((each) => cell(p(each))).join('')}</w:tr>`
    const styles = `${STYLES.replace(/<w:numPr>.*?<\/w:numPr>/, '')}<w:style w:type="paragraph" w:styleId="L"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>`
    const BODIES = {
      'headings, tabs, breaks and spaces': `${p('Law', '<w:pStyle w:val="T"/>')}${p('Scope', '<w:pStyle w:val="H2"/>')}
        ${p('<w:r><w:t>a</w:t><w:tab/><w:t xml:space="preserve">b  c</w:t><w:br/><w:t>d</w:t><w:noBreakHyphen/></w:r>')}`,
      'a table in a table': `<w:tbl>${row('Unit', 'Cost')}${row('North', '1')}<w:tr>${cell(p('South') + p('side'))}${cell(`<w:tbl>${row('2', '3')}</w:tbl>`)}</w:tr></w:tbl>`,
      'a table that lays out': `<w:tbl><w:tr>${cell(p('Only') + p('layout'))}</w:tr></w:tbl>`,
      changes: `<w:p>${run('Old ')}<w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:ins>${run('new')}</w:ins></w:p>
        <w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>${run('One ')}</w:p>${p('paragraph')}`,
      'content controls, links and fields': `<w:sdt><w:sdtPr/><w:sdtContent>${p('<w:hyperlink w:anchor="x"><w:r><w:t>link</w:t></w:r></w:hyperlink>')}</w:sdtContent></w:sdt>
        ${p('<w:r><w:fldChar w:fldCharType="begin"/><w:instrText>DATE</w:instrText><w:fldChar w:fldCharType="separate"/><w:t>May</w:t><w:fldChar w:fldCharType="end"/></w:r>')}`,
    }
    const plain = (body: string) => docx(body, { styles }, true)
    const isReadByMammoth = async (bytes: Buffer) => {
      using convert = vi.spyOn(mammoth, 'convertToHtml')
      await outline(bytes)
      return convert.mock.calls.length > 0
    }

    it.each(Object.entries(BODIES))('is read by mammoth, with the same blocks: %s', async (_, body) => {
      const hidden = '<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r></w:p>'
      expect(await isReadByMammoth(plain(body))).toBe(true)
      expect(await isReadByMammoth(plain(body + hidden))).toBe(false)
      const blocks = await outline(plain(body))
      expect(blocks).toEqual(await outline(plain(body + hidden)))
      expect(blocks).not.toEqual([])
    })

    it('is not read by mammoth alone with anything that mammoth leaves out', async () => {
      expect(await isReadByMammoth(plain(p('x', '<w:pStyle w:val="L"/>')))).toBe(false)
      expect(await isReadByMammoth(plain(p('x').repeat(100_000)))).toBe(false)
      expect(await outline(plain(p('<w:ruby><w:rubyBase><w:r><w:t>base</w:t></w:r></w:rubyBase></w:ruby>')))).toEqual(['paragraph: base'])
      expect(await outline(plain(`<w:unknown>${p('kept')}</w:unknown>`))).toEqual(['paragraph: kept'])
    })
  })

  it('with corrupted XML are read as far as mammoth can, with a warning', async () => {
    const broken = `${WORD.replace('"w"', '"http://schemas.openxmlformats.org/wordprocessingml/2006/main"')}`
    const bytes = zip({
      'word/document.xml': `<w:document ${broken}><w:body>${p('Kept & read')}</w:body></w:document>`,
      'word/_rels/document.xml.rels': '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"/>',
    })
    const { text, warnings } = await read(bytes, 'damaged.docx')
    expect(text).toContain('Kept & read')
    expect(warnings).toMatchObject([{ code: 'structure_lost' }])
  })
})
