import { sizeText } from '../../../../common/sizes.ts'
import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { findRelation, OfficePackage } from '../xml/office-package.ts'
import { findChild, listChildren, listDescendants, readXml, readXmlTree, textIn, type XmlElement } from '../xml/xml.ts'
import { addSheet, locateCells } from './add-sheet.ts'
import { CellTexts } from './cell-texts.ts'
import { Grid, type Merge } from './grid.ts'

/** The elements of a sheet that are read: rows and merged cells. */
const SHEET_UNITS = new Set(['row', 'mergeCell'])
/** The last row and column of a sheet in Excel. */
const MAX_ROW = 1_048_576
const MAX_COLUMN = 16_383

/**
 * Reads an Excel workbook: its visible sheets in order, and the displayed text of their cells.
 * @throws {ParseFailure} `limit_exceeded` if the workbook exceeds a limit.
 * @throws {ParseFailure} `corrupt` if the archive or its XML is corrupted.
 */
export async function readXlsx(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<void> {
  const parts = new OfficePackage(bytes, limits)
  const main = (await parts.relatedPart('', 'officeDocument')) ?? 'xl/workbook.xml'
  const workbook = await parts.read(main)
  const related = await parts.readRelationships(main)
  const texts = await readCellTexts(parts, main, workbook, limits)
  for (const sheet of listChildren(findChild(workbook, 'sheets') ?? workbook)) {
    const part = related.get(findRelation(sheet) ?? '')
    if (sheet.name !== 'sheet' || part?.type !== 'worksheet' || !parts.archive.has(part.part)) continue
    if (/hidden/i.test(sheet.attributes.state ?? '')) continue
    const name = sheet.attributes.name ?? ''
    const grid = new Grid(limits)
    const merges: Merge[] = []
    let row = 0
    await readXml(
      parts.archive.piecesOf(part.part),
      limits,
      (element) => {
        if (element.name === 'mergeCell') merges.push(...readMerge(element))
        else row = addRow(element, row, grid, texts)
      },
      { units: SHEET_UNITS },
    )
    grid.repeat(merges)
    builder.add('heading', name, { level: 1 })
    addSheet(grid.rows, builder, locateCells(name))
  }
}

async function readCellTexts(parts: OfficePackage, main: string, workbook: XmlElement, limits: ParserLimits): Promise<CellTexts> {
  const shared: string[] = []
  let length = 0
  const sharedPart = await parts.relatedPart(main, 'sharedStrings')
  if (sharedPart)
    await readXml(
      parts.archive.piecesOf(sharedPart),
      limits,
      (item) => {
        const text = joinString(item)
        length += text.length
        if (length > limits.maxTextBytes)
          throw new ParseFailure(
            'limit_exceeded',
            `The document has more than ${sizeText(limits.maxTextBytes)} of text. Split it into smaller files.`,
          )
        shared.push(text)
      },
      { units: new Set(['si']) },
    )
  const formats = new Map<number, string>()
  const styles: number[] = []
  const stylePart = await parts.relatedPart(main, 'styles')
  if (stylePart) {
    const root = await readXmlTree(parts.archive.piecesOf(stylePart), limits)
    for (const { attributes } of listChildren(findChild(root, 'numFmts') ?? root))
      if (attributes.formatCode !== undefined) formats.set(Number(attributes.numFmtId), attributes.formatCode)
    const cells = findChild(root, 'cellXfs')
    if (cells) for (const { attributes } of listChildren(cells)) styles.push(Number(attributes.numFmtId ?? 0))
  }
  const since1904 = /^(?:1|true)$/.test(findChild(workbook, 'workbookPr')?.attributes.date1904 ?? '')
  return new CellTexts(shared, styles, formats, since1904)
}

/** Joins the runs of a string, without phonetic guides (Japanese). */
function joinString(item: XmlElement): string {
  return listChildren(item)
    .map((child) => (child.name === 't' ? textIn(child) : child.name === 'r' ? textIn(findChild(child, 't')) : ''))
    .join('')
}

/** Adds a row and returns its number. A row or cell without a position follows the previous one. */
function addRow(element: XmlElement, before: number, grid: Grid, texts: CellTexts): number {
  const number = Number(element.attributes.r ?? before + 1)
  if (!Number.isSafeInteger(number) || number <= before || number > MAX_ROW) return before
  let next = 0
  for (const cell of listDescendants(element, 'c')) {
    const column = cell.attributes.r === undefined ? next : readColumn(cell.attributes.r)
    if (column === undefined || column < next) continue
    next = column + 1
    const inline = findChild(cell, 'is')
    const { t: type = 'n', s: style } = cell.attributes
    const found = inline ? { text: joinString(inline), isText: true } : texts.of(type, textIn(findChild(cell, 'v')), Number(style ?? 0))
    grid.add(number, { column, ...found })
  }
  return number
}

/** Returns the column of a reference such as `AB12`, counted from 0. */
function readColumn(reference: string): number | undefined {
  const letters = /^[A-Z]{1,3}(?=\d)/.exec(reference)?.[0]
  if (!letters) return undefined
  const column = [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1
  return column > MAX_COLUMN ? undefined : column
}

function readMerge({ attributes: { ref = '' } }: XmlElement): readonly Merge[] {
  const [, from, firstRow, to, lastRow] = /^([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})$/.exec(ref) ?? []
  const firstColumn = readColumn(`${from}1`)
  const lastColumn = readColumn(`${to}1`)
  if (firstColumn === undefined || lastColumn === undefined) return []
  return [{ firstRow: Number(firstRow), lastRow: Number(lastRow), firstColumn, lastColumn }]
}
