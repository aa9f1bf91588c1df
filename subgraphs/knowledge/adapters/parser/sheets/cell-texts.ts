import { format, getFormatFromId, isDateFormat } from 'numfmt'

/** Maximum characters of a number format: Excel's limit. */
const MAX_FORMAT_CHARS = 255
/** Excel shows short dates in the format of each computer. These fixed formats replace them. */
const SHORT_DATES: Readonly<Record<number, string>> = { 14: 'yyyy-mm-dd', 22: 'yyyy-mm-dd hh:mm' }
/** The number of days between the epochs of Excel's 1900 and 1904 date systems. */
const DAYS_TO_1904 = 1462

interface CellText {
  readonly text: string
  readonly isText: boolean
}

/** Formats the values of cells as the workbook displays them. */
export class CellTexts {
  readonly #shared: readonly string[]
  readonly #styles: readonly number[]
  readonly #formats: ReadonlyMap<number, string>
  readonly #since1904: boolean

  /**
   * @param styles number format IDs by style
   * @param formats the number formats that the workbook defines, by ID
   */
  constructor(shared: readonly string[], styles: readonly number[], formats: ReadonlyMap<number, string>, since1904: boolean) {
    this.#shared = shared
    this.#styles = styles
    this.#formats = formats
    this.#since1904 = since1904
  }

  /**
   * Returns the text of a cell.
   * @param type the cell's type (ECMA-376, 18.18.11)
   */
  of(type: string, value: string, style: number): CellText {
    if (type === 's') return { text: this.#shared[Number(value)] ?? '', isText: true }
    if (type === 'b') return { text: value === '1' ? 'TRUE' : 'FALSE', isText: false }
    if (type !== 'n') return { text: value, isText: type === 'str' || type === 'inlineStr' }
    const number = value.trim() === '' ? Number.NaN : Number(value)
    return { text: Number.isFinite(number) ? this.#shown(number, style) : value, isText: false }
  }

  #shown(number: number, style: number): string {
    const id = this.#styles[style] ?? 0
    const code = this.#formats.get(id) ?? SHORT_DATES[id] ?? String(getFormatFromId(id) ?? 'General')
    try {
      if (code.length > MAX_FORMAT_CHARS) return String(number)
      return format(code, this.#since1904 && isDateFormat(code) ? number + DAYS_TO_1904 : number).trim()
    } catch {
      return String(number)
    }
  }
}
