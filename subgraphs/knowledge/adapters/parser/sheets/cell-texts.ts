import { format, getFormatFromId, isDateFormat } from 'numfmt'

/** Excel allows 255; longer ones are nobody's. */
const MAX_FORMAT_CHARS = 255
/** Excel writes its short dates as each computer does; these are read alike by everybody. */
const SHORT_DATES: Readonly<Record<number, string>> = { 14: 'yyyy-mm-dd', 22: 'yyyy-mm-dd hh:mm' }
/** From the 1st of January 1900, by Excel's count, to that of 1904. */
const DAYS_TO_1904 = 1462

export interface CellText {
  readonly text: string
  readonly isText: boolean
}

/** What cells show, of the values that they hold and the formats that they are written in. */
export class CellTexts {
  readonly #shared: readonly string[]
  readonly #styles: readonly number[]
  readonly #formats: ReadonlyMap<number, string>
  readonly #since1904: boolean

  /** @param styles ids of number formats by style @param formats those that the workbook defines */
  constructor(shared: readonly string[], styles: readonly number[], formats: ReadonlyMap<number, string>, since1904: boolean) {
    this.#shared = shared
    this.#styles = styles
    this.#formats = formats
    this.#since1904 = since1904
  }

  /** @param type as the cell says it (ECMA-376, 18.18.11) */
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
