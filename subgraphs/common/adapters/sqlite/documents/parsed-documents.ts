import { LRUCache } from 'lru-cache'
import { parseDocument, type StoredObject } from '../../documents/stored-value.ts'

/** Documents that were parsed recently. Each is handed out once, so the taker may change it. */
export class ParsedDocuments {
  readonly #documents: LRUCache<string, { readonly text: string; readonly document: StoredObject }>

  constructor(limit: number) {
    this.#documents = new LRUCache({ max: limit })
  }

  /** Gives the document of this text. `id` only says where to look. */
  take(id: string, text: string): StoredObject {
    const kept = this.#documents.get(id)
    this.#documents.delete(id)
    return kept?.text === text ? kept.document : parseDocument(text)
  }

  keep(id: string, text: string, document: StoredObject): void {
    this.#documents.set(id, { text, document })
  }
}
