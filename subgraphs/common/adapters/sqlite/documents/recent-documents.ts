import { LRUCache } from 'lru-cache'
import { parseDocument, type StoredObject, withDates } from '../../documents/stored-value.ts'

/** Characters of the texts that one collection keeps. Parsed, they take some four times as many bytes. */
const MAX_CHARACTERS = 256 * 1024

interface Parsed<T> {
  readonly stored: StoredObject
  /** Frozen, because others get it, too. */
  readonly document: T
}

/**
 * Documents of a collection that were read before with the same text, such as those of a page that is shown again. To
 * parse them takes longer than to read them.
 */
export class RecentDocuments<T extends object> {
  /** By id. A document is parsed for this when it is read for the second time: most change or are read once. */
  readonly #entries = new LRUCache<string, { readonly text: string; parsed?: Parsed<T> }>({
    maxSize: MAX_CHARACTERS,
    sizeCalculation: ({ text }) => text.length,
  })

  /** Undefined: whoever asks must parse the text. */
  find(id: string, text: string): Parsed<T> | undefined {
    const entry = this.#entries.get(id)
    if (entry?.text === text) {
      entry.parsed ??= { stored: parseDocument(text), document: frozen(withDates(parseDocument(text)) as T) }
      return entry.parsed
    }
    this.#entries.set(id, { text })
    return undefined
  }
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) frozen(inner)
  }
  return value
}
