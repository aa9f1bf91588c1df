import { describe, expect, it } from 'vitest'
import { declaredZip, outline, read, zip } from '../test-support/reading.ts'

const REL = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const relations = (targets: Readonly<Record<string, readonly [type: string, target: string]>>) =>
  `<Relationships>${Object.entries(targets)
    .map(([id, [type, target]]) => `<Relationship Id="${id}" Type="${REL}/${type}" Target="${target}"/>`)
    .join('')}</Relationships>`

interface Workbook {
  readonly sheets: Readonly<Record<string, string>>
  readonly shared?: string
  readonly styles?: string
  readonly settings?: string
}

function xlsx({ sheets, shared = '', styles = '', settings = '' }: Workbook): Buffer {
  const names = Object.keys(sheets)
  const of = (name: string) => `rId${names.indexOf(name) + 1}`
  return zip({
    '_rels/.rels': relations({ rId1: ['officeDocument', '/xl/workbook.xml'] }),
    'xl/workbook.xml': `<workbook xmlns:r="${REL}">${settings}<sheets>${names
      .map(
        (name) => `<sheet name="${name.replace('!hidden', '')}" r:id="${of(name)}"${name.includes('!hidden') ? ' state="hidden"' : ''}/>`,
      )
      .join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relations({
      ...Object.fromEntries(names.map((name, i) => [of(name), ['worksheet', `worksheets/sheet${i}.xml`] as const])),
      s: ['sharedStrings', 'sharedStrings.xml'],
      t: ['styles', 'styles.xml'],
    }),
    ...Object.fromEntries(
      names.map((name, i) => [`xl/worksheets/sheet${i}.xml`, `<x:worksheet xmlns:x="m">${sheets[name]}</x:worksheet>`]),
    ),
    'xl/sharedStrings.xml': `<sst>${shared}</sst>`,
    'xl/styles.xml': `<styleSheet>${styles}</styleSheet>`,
  })
}

const text = (...texts: string[]) => texts.map((each) => `<x:c t="inlineStr"><x:is><x:t>${each}</x:t></x:is></x:c>`).join('')
const row = (number: number, cells: string) => `<x:row r="${number}">${cells}</x:row>`

describe('XLSX workbooks', () => {
  it('include titles, tables with their header row and cells, sheet by sheet, without hidden sheets', async () => {
    const bytes = xlsx({
      sheets: {
        الرواتب: `<x:sheetData>${row(1, text('كشف الرواتب'))}${row(3, text('الاسم', 'الراتب'))}${row(4, '<x:c t="s"><x:v>0</x:v></x:c><x:c><x:v>1200</x:v></x:c>')}${row(
          6,
          `${text('سالم')}<x:c r="B6"><x:v>900</x:v></x:c>`,
        )}</x:sheetData>`,
        'Q1 2024': `<x:sheetData>${row(1, text('City', 'People'))}${row(2, `<x:c r="A2" t="str"><x:f>1</x:f><x:v>Sur</x:v></x:c><x:c r="C2" t="b"><x:v>1</x:v></x:c>`)}</x:sheetData>`,
        'Lists!hidden': `<x:sheetData>${row(1, text('secret'))}</x:sheetData>`,
      },
      shared: '<si><r><t>أحـ</t></r><r><t>مد</t></r><rPh><t>reading</t></rPh></si>',
    })
    expect(await outline(bytes)).toEqual([
      'heading1: الرواتب',
      'paragraph (الرواتب!A1-A1): كشف الرواتب',
      'table_row (الرواتب!A3-B3): الاسم | الراتب',
      'table_row [الاسم | الراتب] (الرواتب!A4-B4): أحـمد | 1200',
      'table_row [الاسم | الراتب] (الرواتب!A6-B6): سالم | 900',
      'heading1: Q1 2024',
      "table_row ('Q1 2024'!A1-C1): City | People",
      "table_row [City | People |] ('Q1 2024'!A2-C2): Sur |  | TRUE",
    ])
  })

  it('show numbers and dates in the format of the sheet', async () => {
    const formats = ['#,##0.00', 'dd/mm/yyyy', '[h]:mm', '0.0%', '"ر.ع." #,##0.000', 'not [a format', '[$-2000401]0.0']
    const styles = `<numFmts>${formats.map((code, i) => `<numFmt numFmtId="${170 + i}" formatCode="${code.replaceAll('"', '&quot;')}"/>`).join('')}</numFmts>
      <cellXfs><xf numFmtId="0"/>${formats.map((_, i) => `<xf numFmtId="${170 + i}"/>`).join('')}<xf numFmtId="14"/><xf numFmtId="22"/></cellXfs>`
    const values = [1234567.891, 45000, 1.5, 0.125, 12.5, 3, 12.5, 45000, 45000.5]
    const cells = values.map((value, i) => `<x:c s="${i + 1}"><x:v>${value}</x:v></x:c>`).join('')
    const sheet = `<x:sheetData>${row(1, `<x:c><x:v>0.30000000000000004</x:v></x:c>${cells}<x:c t="e"><x:v>#N/A</x:v></x:c>`)}</x:sheetData>`
    const shown = '0.3 | 1,234,567.89 | 15/03/2023 | 36:00 | 12.5% | ر.ع. 12.500 | 3 | 12٫5 | 2023-03-15 | 2023-03-15 12:00 | #N/A'
    expect((await outline(xlsx({ sheets: { S: sheet }, styles })))[1]).toBe(`table_row (S!A1-K1): ${shown}`)
    const since1904 = await outline(xlsx({ sheets: { S: sheet }, styles, settings: '<workbookPr date1904="1"/>' }))
    expect(since1904[1]).toContain('16/03/2027')
  })

  it('repeat merged cells, except a title over the whole width', async () => {
    const sheet = `<x:sheetData>
      ${row(1, '<x:c r="A1" t="str"><x:v>Budget</x:v></x:c>')}
      ${row(2, '<x:c r="A2" t="str"><x:v>Unit</x:v></x:c><x:c r="B2" t="str"><x:v>2023</x:v></x:c><x:c r="D2" t="str"><x:v>2024</x:v></x:c>')}
      ${row(3, '<x:c r="B3" t="str"><x:v>Plan</x:v></x:c><x:c r="C3" t="str"><x:v>Real</x:v></x:c><x:c r="D3" t="str"><x:v>Plan</x:v></x:c><x:c r="E3" t="str"><x:v>Real</x:v></x:c>')}
      ${row(4, '<x:c r="A4" t="str"><x:v>North</x:v></x:c><x:c r="B4"><x:v>1</x:v></x:c>')}
      ${row(5, '<x:c r="B5"><x:v>2</x:v></x:c>')}</x:sheetData>
      <x:mergeCells><x:mergeCell ref="A1:E1"/><x:mergeCell ref="A2:A3"/><x:mergeCell ref="B2:C2"/><x:mergeCell ref="D2:E2"/><x:mergeCell ref="A4:A5"/></x:mergeCells>`
    const header = 'Unit | 2023 | 2023 | 2024 | 2024\nUnit | Plan | Real | Plan | Real'
    expect(await outline(xlsx({ sheets: { S: sheet } }))).toEqual([
      'heading1: S',
      'paragraph (S!A1-A1): Budget',
      'table_row (S!A2-E2): Unit | 2023 | 2023 | 2024 | 2024',
      'table_row (S!A3-E3): Unit | Plan | Real | Plan | Real',
      `table_row [${header}] (S!A4-E4): North | 1`,
      `table_row [${header}] (S!A5-E5): North | 2`,
    ])
  })

  it.each([
    [
      'a cell that is merged over every row',
      `<x:sheetData>${row(1, text('x'.repeat(500), 'b'))}${Array.from({ length: 50_000 }, (_, i) => row(i + 2, '<x:c r="B1"><x:v>1</x:v></x:c>')).join('')}</x:sheetData><x:mergeCells><x:mergeCell ref="A1:A1048576"/></x:mergeCells>`,
    ],
    [
      'a shared text in every cell',
      `<x:sheetData>${Array.from({ length: 300 }, (_, i) => row(i + 1, '<x:c t="s"><x:v>0</x:v></x:c>')).join('')}</x:sheetData>`,
    ],
  ])('are refused with %s', async (_what, sheet) => {
    const bytes = xlsx({ sheets: { S: sheet }, shared: `<si><t>${'long '.repeat(20_000)}</t></si>` })
    await expect(read(bytes)).rejects.toMatchObject({ code: 'limit_exceeded' })
  })

  it('with overlapping merges are read without counting every cell of each', async () => {
    const sheet = `<x:sheetData>${row(1, text('a', 'b', 'c'))}${Array.from({ length: 5_000 }, (_, i) => row(i + 2, text('a', 'b'))).join('')}</x:sheetData>
      <x:mergeCells>${'<x:mergeCell ref="A1:B1048576"/>'.repeat(20_000)}</x:mergeCells>`
    expect((await read(xlsx({ sheets: { S: sheet } }))).blocks).toHaveLength(5_002)
  })

  it.each([
    ['is truncated', (bytes: Buffer) => bytes.subarray(0, bytes.length / 2)],
    ['has broken XML', () => xlsx({ sheets: { S: '<x:sheetData><x:row><x:c' } })],
  ])('are corrupt if the file %s', async (_what, corrupt) => {
    const bytes = corrupt(xlsx({ sheets: { S: `<x:sheetData>${row(1, text('a'))}</x:sheetData>` } }))
    await expect(read(bytes, 'a.xlsx')).rejects.toMatchObject({ code: 'corrupt' })
  })

  it('have no_text if all cells are empty', async () => {
    await expect(read(xlsx({ sheets: { '': '<x:sheetData/>' } }))).rejects.toMatchObject({ code: 'no_text' })
  })
})

const ODS = 'application/vnd.oasis.opendocument.spreadsheet'
const NAMES = 'xmlns:o="o" xmlns:t="t" xmlns:p="p" xmlns:s="s"'
const ods = (body: string, more: Readonly<Record<string, string>> = {}) =>
  declaredZip(ODS, { 'content.xml': `<o:document ${NAMES}>${body}</o:document>`, ...more })

describe('ODS spreadsheets', () => {
  it('show cells as formatted, without repeats, merges and comments', async () => {
    const cell = (shown: string, facts = '') => `<t:table-cell ${facts}><p:p>${shown}</p:p></t:table-cell>`
    const body = `<o:styles><s:style s:name="ta2"><s:table-properties t:display="false"/></s:style></o:styles>
      <t:table t:name="مبيعات" t:style-name="ta1"><t:table-header-rows><t:table-row>${cell('المدينة')}${cell('2024-01-05', 'o:value-type="date"')}</t:table-row></t:table-header-rows>
      <t:table-row t:number-rows-repeated="2">${cell('صور<o:annotation><p:p>note</p:p></o:annotation>', 't:number-rows-spanned="2"')}${cell('1<p:s/>200', 'o:value-type="float"')}<t:table-cell t:number-columns-repeated="16382"/></t:table-row>
      <t:table-row t:number-rows-repeated="1048000"><t:table-cell t:number-columns-repeated="16384"/></t:table-row></t:table>
      <t:table t:name="x" t:style-name="ta2"><t:table-row>${cell('hidden')}</t:table-row></t:table>`
    expect(await outline(ods(body))).toEqual([
      'heading1: مبيعات',
      'table_row (مبيعات!A1-B1): المدينة | 2024-01-05',
      'table_row [المدينة | 2024-01-05] (مبيعات!A2-B2): صور | 1 200',
      'table_row [المدينة | 2024-01-05] (مبيعات!A3-B3): صور | 1 200',
    ])
  })

  it('are refused when cells repeat a long text endlessly', async () => {
    const body = `<t:table t:name="x"><t:table-row t:number-rows-repeated="1000000"><t:table-cell t:number-columns-repeated="16384"><p:p>${'x'.repeat(1_000)}</p:p></t:table-cell></t:table-row></t:table>`
    await expect(read(ods(body))).rejects.toMatchObject({ code: 'limit_exceeded' })
  })

  it('require the password when they are encrypted', async () => {
    const bytes = ods('', { 'META-INF/manifest.xml': '<manifest><file-entry><encryption-data/></file-entry></manifest>' })
    await expect(read(bytes)).rejects.toMatchObject({ code: 'password_required' })
  })
})
