import type { MemoryDocumentStore } from '../../../test/support/memory-document-store.ts'
import type { CollectionSpec, DocumentCollection, DocumentStore, StoredDocument } from '../../common/ports/document-store.ts'

/** Reads change nothing, and are not counted. */
const READS = ['find', 'findOne', 'countDocuments', 'findPrincipal']

/**
 * What one process writes to its stores and to billing. The last of its actions takes effect, but the process dies
 * before it gets the result.
 */
export class Life {
  actions = 0
  readonly #last: number
  readonly #over = Promise.withResolvers<false>()

  constructor(last = Number.POSITIVE_INFINITY) {
    this.#last = last
  }

  of<T extends object>(port: T): T {
    return new Proxy(port, {
      get: (object, name) => {
        const value: unknown = Reflect.get(object, name, object)
        if (typeof value !== 'function') return value
        const isRead = typeof name === 'string' && READS.includes(name)
        return (...args: unknown[]) => this.#act(async () => value.apply(object, args), isRead)
      },
    })
  }

  /** Resolves when the process is dead. */
  get over(): Promise<false> {
    return this.#over.promise
  }

  get isOver(): boolean {
    return this.actions >= this.#last
  }

  async #act<T>(action: () => Promise<T>, isRead: boolean): Promise<T> {
    if (this.isOver) return new Promise<never>(() => undefined)
    if (!isRead) this.actions += 1
    const result = await action()
    if (!this.isOver) return result
    this.#over.resolve(false)
    return new Promise<never>(() => undefined)
  }
}

export class StoreOfLife implements Pick<DocumentStore, 'collection'> {
  readonly #store: MemoryDocumentStore
  readonly #life: Life

  constructor(store: MemoryDocumentStore, life: Life) {
    this.#store = store
    this.#life = life
  }

  collection<T extends StoredDocument>(spec: CollectionSpec): DocumentCollection<T> {
    return this.#life.of(this.#store.collection<T>(spec))
  }
}
