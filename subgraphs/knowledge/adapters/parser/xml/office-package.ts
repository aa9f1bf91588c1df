import type { ParserLimits } from '../limits.ts'
import { ZipArchive } from '../zip.ts'
import { findAttribute, listChildren, readXmlTree, type XmlElement } from './xml.ts'

interface Relationship {
  /** The last part of the type's URI, such as `worksheet` or `notesSlide`. */
  readonly type: string
  readonly part: string
}

/** Elements that repeat content for programs that do not know its newer form. */
export const FALLBACKS: ReadonlySet<string> = new Set(['Fallback'])

/** An Office Open XML document: an archive of parts that refer to one another. */
export class OfficePackage {
  readonly archive: ZipArchive
  readonly #limits: ParserLimits

  constructor(bytes: Uint8Array, limits: ParserLimits) {
    this.archive = new ZipArchive(bytes, limits)
    this.#limits = limits
  }

  /**
   * Reads a part.
   * @throws {ParseFailure} like `readXml` and `ZipArchive.piecesOf`.
   */
  read(part: string): Promise<XmlElement> {
    return readXmlTree(this.archive.piecesOf(part), this.#limits, { without: FALLBACKS })
  }

  /** Returns the relationships of a part by ID. Omits targets outside the package. */
  async readRelationships(part: string): Promise<ReadonlyMap<string, Relationship>> {
    const name = relationshipsOf(part)
    if (!this.archive.has(name)) return new Map()
    const entries = listChildren(await readXmlTree(this.archive.piecesOf(name), this.#limits)).flatMap(
      (element): [string, Relationship][] => {
        const { Id: id, Type: type, Target: target, TargetMode: mode } = element.attributes
        if (id === undefined || type === undefined || target === undefined || mode === 'External') return []
        return [[id, { type: type.slice(type.lastIndexOf('/') + 1), part: resolved(part, target) }]]
      },
    )
    return new Map(entries)
  }

  /** Returns the part of the given type that a part refers to, if it exists. */
  async relatedPart(part: string, type: string): Promise<string | undefined> {
    for (const related of (await this.readRelationships(part)).values())
      if (related.type === type && this.archive.has(related.part)) return related.part
    return undefined
  }
}

/** Returns the name of the part that has a part's relationships. */
export function relationshipsOf(part: string): string {
  const slash = part.lastIndexOf('/') + 1
  return `${part.slice(0, slash)}_rels/${part.slice(slash)}.rels`
}

/** Returns the relationship ID in an element's attributes. */
export function findRelation(element: XmlElement, name = 'id'): string | undefined {
  for (const key in element.attributes) if (key.endsWith(`:${name}`)) return element.attributes[key]
  return undefined
}

/** Reports whether an Office switch is on: its value is not `0`, `false`, `off` or `none`. */
export function isOn(element: XmlElement | undefined): boolean {
  if (!element) return false
  return !/^(?:0|false|off|none)$/.test(findAttribute(element, 'val') ?? '1')
}

/** Resolves a target relative to the part that names it, or to the root of the archive. */
function resolved(part: string, target: string): string {
  const path = target.startsWith('/') ? [] : part.split('/').slice(0, -1)
  for (const step of target.replaceAll('\\', '/').split('/')) {
    if (step === '..') path.pop()
    else if (step !== '' && step !== '.') path.push(step)
  }
  return path.join('/')
}
