import type { ParserLimits } from '../limits.ts'
import { ZipArchive } from '../zip.ts'
import { attributeOf, childrenOf, readXmlTree, type XmlElement } from './xml.ts'

interface Relationship {
  /** The last part of its type: `worksheet`, `notesSlide`. */
  readonly type: string
  readonly part: string
}

/** Alternatives for programs that do not know the first one: the same again. */
export const FALLBACKS: ReadonlySet<string> = new Set(['Fallback'])

/** A document of Office Open XML: parts in an archive, and how they refer to one another. */
export class OfficePackage {
  readonly archive: ZipArchive
  readonly #limits: ParserLimits

  constructor(bytes: Uint8Array, limits: ParserLimits) {
    this.archive = new ZipArchive(bytes, limits)
    this.#limits = limits
  }

  /** @throws {ParseFailure} */
  read(part: string): Promise<XmlElement> {
    return readXmlTree(this.archive.piecesOf(part), this.#limits, { without: FALLBACKS })
  }

  /** What a part refers to, by id; parts outside the package are left out. */
  async relationshipsOf(part: string): Promise<ReadonlyMap<string, Relationship>> {
    const slash = part.lastIndexOf('/') + 1
    const name = `${part.slice(0, slash)}_rels/${part.slice(slash)}.rels`
    if (!this.archive.has(name)) return new Map()
    const entries = childrenOf(await readXmlTree(this.archive.piecesOf(name), this.#limits)).flatMap(
      (element): [string, Relationship][] => {
        const { Id: id, Type: type, Target: target, TargetMode: mode } = element.attributes
        if (id === undefined || type === undefined || target === undefined || mode === 'External') return []
        return [[id, { type: type.slice(type.lastIndexOf('/') + 1), part: resolved(part, target) }]]
      },
    )
    return new Map(entries)
  }

  /** The part of this type that a part refers to, if it is there. */
  async relatedPart(part: string, type: string): Promise<string | undefined> {
    for (const related of (await this.relationshipsOf(part)).values())
      if (related.type === type && this.archive.has(related.part)) return related.part
    return undefined
  }
}

/** The id of what an element refers to. */
export function relationOf(element: XmlElement, name = 'id'): string | undefined {
  for (const key in element.attributes) if (key.endsWith(`:${name}`)) return element.attributes[key]
  return undefined
}

/** `true`, `1`, `on`, or written without a value, of a switch of Office. */
export function isOn(element: XmlElement | undefined): boolean {
  if (!element) return false
  return !/^(?:0|false|off|none)$/.test(attributeOf(element, 'val') ?? '1')
}

/** Targets are relative to the part that names them, or begin at the root. */
function resolved(part: string, target: string): string {
  const path = target.startsWith('/') ? [] : part.split('/').slice(0, -1)
  for (const step of target.replaceAll('\\', '/').split('/')) {
    if (step === '..') path.pop()
    else if (step !== '' && step !== '.') path.push(step)
  }
  return path.join('/')
}
