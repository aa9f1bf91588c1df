import { ServiceUnavailable } from '../../common/errors.ts'
import type { CollectionSpec, DocumentCollection, DocumentStore, StoredDocument } from '../../common/ports/document-store.ts'

/**
 * A fault of one call of the store. A process that dies makes no further call; with `done`, its last call took effect.
 */
export type StoreFault = 'fails' | 'loses its answer' | 'is the last before death' | 'is the last, done, before death'

export const STORE_FAULTS: readonly StoreFault[] = [
  'fails',
  'loses its answer',
  'is the last before death',
  'is the last, done, before death',
]

/** The error of calls that wait for a dead process: its connection ends. */
export class ProcessDied extends Error {
  constructor() {
    super('the process is dead')
    this.name = 'ProcessDied'
  }
}

/**
 * A store shared by several processes, from the view of one of them: calls can fail, lose their responses, or be its
 * last ones.
 */
export class ProcessStore implements DocumentStore {
  readonly #shared: DocumentStore
  readonly #faults = new Map<number, StoreFault>()
  #calls = 0
  #isDead = false

  constructor(shared: DocumentStore) {
    this.#shared = shared
  }

  get isDead(): boolean {
    return this.#isDead
  }

  /** Applies the fault to the `nth` call from now on (1: the next one). */
  strike(nth: number, fault: StoreFault): void {
    this.#faults.set(this.#calls + nth, fault)
  }

  /** Cancels faults that have not happened. */
  heal(): void {
    this.#faults.clear()
  }

  kill(): void {
    this.#isDead = true
  }

  collection<T extends StoredDocument>(spec: CollectionSpec): DocumentCollection<T> {
    const shared = this.#shared.collection<T>(spec)
    return new Proxy(shared, {
      get: (target, name) => {
        const method = target[name as keyof DocumentCollection<T>] as (...args: readonly unknown[]) => Promise<unknown>
        return (...args: readonly unknown[]) => this.#call(() => method.apply(target, args as unknown[]))
      },
    })
  }

  ping(signal: AbortSignal): Promise<Date> {
    return this.#call(() => this.#shared.ping(signal))
  }

  /** The store stays open for the other processes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.kill()
  }

  async #call<R>(effect: () => Promise<R>): Promise<R> {
    if (this.#isDead) throw new ProcessDied()
    const fault = this.#faults.get(++this.#calls)
    if (fault === 'fails') throw new ServiceUnavailable('The document store')
    if (fault === 'is the last before death') this.kill()
    else {
      if (fault === 'is the last, done, before death') this.kill()
      const result = await effect()
      if (fault === 'loses its answer') throw new ServiceUnavailable('The document store')
      // A call that was running when the process died takes effect, but its response is lost.
      if (!this.#isDead) return result
    }
    throw new ProcessDied()
  }
}
