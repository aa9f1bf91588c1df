import { formatNumber, type Numbering } from '../numbering/format-number.ts'
import { findAttribute, listChildren, type XmlElement } from '../xml/xml.ts'

interface Level {
  readonly numbering: Numbering
  readonly prefix: string
  readonly suffix: string
  readonly start: number
  /** The number of levels, ending with this one, whose numbers are written. */
  readonly shown: number
}

export type ListLevels = ReadonlyMap<number, Level>

/** The number of list levels that OpenDocument has. */
export const MAX_LEVELS = 10

/** The meaning of `num-format` (ODF 1.3, part 3, 19.502). */
const NUMBERINGS: Readonly<Record<string, Numbering>> = {
  '1': 'decimal',
  a: 'lowerLetter',
  A: 'upperLetter',
  i: 'lowerRoman',
  I: 'upperRoman',
  '١, ٢, ٣, ...': 'arabicIndic',
  'أ, ب, ت, ...': 'arabicAlpha',
  'أ, ب, ج, ...': 'arabicAbjad',
}

/** Returns the numbered levels of a list style or of the outline style. Omits bullets. */
export function readLevels(style: XmlElement): ListLevels {
  const levels = new Map<number, Level>()
  for (const element of listChildren(style)) {
    if (element.name !== 'list-level-style-number' && element.name !== 'outline-level-style') continue
    const format = findAttribute(element, 'num-format') ?? ''
    const level = Number(findAttribute(element, 'level'))
    if (!(level >= 1 && level <= MAX_LEVELS) || format === '') continue
    levels.set(level, {
      numbering: NUMBERINGS[format] ?? 'decimal',
      prefix: findAttribute(element, 'num-prefix') ?? '',
      suffix: findAttribute(element, 'num-suffix') ?? '',
      start: readInteger(findAttribute(element, 'start-value')) ?? 1,
      shown: readInteger(findAttribute(element, 'display-levels')) ?? 1,
    })
  }
  return levels
}

/** Counts the items of one list. */
export class ListNumbers {
  readonly #levels: ListLevels
  readonly #numbers: number[] = []

  constructor(levels: ListLevels) {
    this.#levels = levels
  }

  /**
   * Counts an item and returns its number, or an empty string if the level has no numbers.
   * @param level from 1
   */
  next(level: number, restartAt?: number): string {
    const own = this.#levels.get(level)
    this.#numbers.length = Math.min(this.#numbers.length, level)
    for (let above = this.#numbers.length; above < level - 1; above += 1) this.#numbers[above] = this.#levels.get(above + 1)?.start ?? 1
    const before = this.#numbers[level - 1]
    this.#numbers[level - 1] = restartAt ?? (before === undefined ? (own?.start ?? 1) : before + 1)
    if (!own) return ''
    const numbers: string[] = []
    for (let at = Math.max(1, level - own.shown + 1); at <= level; at += 1) {
      const numbering = this.#levels.get(at)?.numbering
      if (numbering) numbers.push(formatNumber(this.#numbers[at - 1]!, numbering))
    }
    return own.prefix + numbers.join('.') + own.suffix
  }
}

export function readInteger(text: string | undefined): number | undefined {
  const value = text === undefined ? Number.NaN : Number(text)
  return Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
