import { formatNumber, type Numbering } from '../numbering/format-number.ts'
import { isOn } from '../xml/office-package.ts'
import { findAttribute, findChild, listChildren, type XmlElement } from '../xml/xml.ts'

interface Level {
  readonly start: number
  /** Null: a bullet. */
  readonly numbering: Numbering | null
  /** A template such as `المادة %1:`, where `%1` is the number of the first level. */
  readonly text: string
  /** True if the numbers of outer levels are also written in digits. */
  readonly isLegal: boolean
  readonly restartsNever: boolean
  /** The paragraph style with the numbers of this level. */
  readonly style: string | undefined
}

type Levels = ReadonlyMap<number, Level>

interface List {
  /** The ID of the abstract list. Lists of the same kind share their counts. */
  readonly kind: string
  readonly levels: Levels
  /** The levels that restart when the list is first used, with their first numbers. */
  readonly restarts: ReadonlyMap<number, number>
}

const NUMBERINGS: ReadonlySet<string> = new Set<Numbering>([
  'decimal',
  'decimalZero',
  'lowerLetter',
  'upperLetter',
  'lowerRoman',
  'upperRoman',
  'arabicAlpha',
  'arabicAbjad',
  'hindiNumbers',
  'ordinal',
  'none',
])

/** The lists of a Word document and their current counts (ECMA-376, 17.9). */
export class WordNumbering {
  readonly #lists = new Map<string, List>()
  readonly #counts = new Map<string, (number | undefined)[]>()
  readonly #used = new Set<string>()

  constructor(root: XmlElement | undefined) {
    const elements = root ? listChildren(root) : []
    const kinds = new Map(
      elements.filter(({ name }) => name === 'abstractNum').map((kind) => [findAttribute(kind, 'abstractNumId') ?? '', kind]),
    )
    const levels = new Map([...kinds].map(([id, kind]) => [id, readLevels(kind)]))
    // A kind may refer to a style that another kind defines.
    const byStyle = new Map(
      [...kinds].flatMap(([id, kind]) => (valueIn(kind, 'styleLink') === undefined ? [] : [[valueIn(kind, 'styleLink'), id]])),
    )
    for (const list of elements) {
      if (list.name !== 'num') continue
      const named = valueIn(list, 'abstractNumId') ?? ''
      const link = kinds.get(named) && valueIn(kinds.get(named)!, 'numStyleLink')
      const kind = (link === undefined ? undefined : byStyle.get(link)) ?? named
      const overrides = listChildren(list).filter(({ name }) => name === 'lvlOverride')
      this.#lists.set(findAttribute(list, 'numId') ?? '', {
        kind,
        levels: new Map([...(levels.get(kind) ?? []), ...overrides.flatMap((override) => [...readLevels(override)])]),
        restarts: new Map(
          overrides.flatMap((override) => {
            const start = integer(valueIn(override, 'startOverride'))
            return start === undefined ? [] : [[integer(findAttribute(override, 'ilvl')) ?? 0, start] as const]
          }),
        ),
      })
    }
  }

  /** Returns the level of a list that numbers a style. */
  levelOfStyle(list: string, style: string): number | undefined {
    for (const [level, { style: own }] of this.#lists.get(list)?.levels ?? []) if (own === style) return level
    return undefined
  }

  /**
   * Counts a paragraph and returns its number. Returns an empty string for a bullet, and undefined if the list does not
   * exist.
   * @param level from 0
   */
  next(id: string, level: number): string | undefined {
    const list = this.#lists.get(id)
    const own = list?.levels.get(level)
    if (!list || !own) return undefined
    const counts = this.#counts.get(list.kind) ?? []
    this.#counts.set(list.kind, counts)
    if (!this.#used.has(id)) {
      this.#used.add(id)
      for (const [at, start] of list.restarts) counts[at] = start - 1
    }
    counts[level] = (counts[level] ?? own.start - 1) + 1
    for (let deeper = level + 1; deeper < counts.length; deeper += 1)
      if (!list.levels.get(deeper)?.restartsNever) counts[deeper] = undefined
    if (own.numbering === null) return ''
    return own.text
      .replace(/%([1-9])/g, (_, digit) => {
        const at = Number(digit) - 1
        const { start, numbering } = list.levels.get(at) ?? own
        return formatNumber(counts[at] ?? start, own.isLegal ? 'decimal' : (numbering ?? 'none'))
      })
      .trim()
  }
}

function readLevels(parent: XmlElement): Levels {
  return new Map(
    listChildren(parent)
      .filter(({ name }) => name === 'lvl')
      .map((level) => {
        const format = findChild(level, 'numFmt') ?? descendantFormat(level)
        return [
          integer(findAttribute(level, 'ilvl')) ?? 0,
          {
            start: integer(valueIn(level, 'start')) ?? 1,
            numbering: readNumbering(format),
            text: valueIn(level, 'lvlText') ?? '',
            isLegal: isOn(findChild(level, 'isLgl')),
            restartsNever: valueIn(level, 'lvlRestart') === '0',
            style: valueIn(level, 'pStyle'),
          },
        ]
      }),
  )
}

/** Returns a newer number format, which is inside an alternative for programs that know it. */
function descendantFormat(level: XmlElement): XmlElement | undefined {
  return findChild(findChild(findChild(level, 'AlternateContent'), 'Choice'), 'numFmt')
}

function readNumbering(format: XmlElement | undefined): Numbering | null {
  const value = (format && findAttribute(format, 'val')) ?? 'decimal'
  if (value === 'bullet') return null
  if (NUMBERINGS.has(value)) return value as Numbering
  const custom = (format && findAttribute(format, 'format')) ?? ''
  return /[\u0660-\u0669]/.test(custom) ? 'arabicIndic' : 'decimal'
}

/** Returns the attribute `val` of a child element. */
export function valueIn(parent: XmlElement | undefined, name: string): string | undefined {
  const child = findChild(parent, name)
  return child && findAttribute(child, 'val')
}

/** Reads a whole number that is not negative. Returns undefined for any other text. */
export function integer(text: string | undefined): number | undefined {
  const value = text === undefined ? Number.NaN : Number(text)
  return Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
