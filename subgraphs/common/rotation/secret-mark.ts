import { ServiceUnavailable } from '../errors.ts'
import { STILL_NEEDED } from '../identity/installation.ts'

/** The secret in the mark of a store. */
export interface SecretMark {
  /** For errors, such as the path of the file. */
  readonly store: string
  /** What it was when the store was opened: what documents that name no secret depend on. */
  readonly fingerprint: string
  /** Moves it to the current secret. Idempotent. */
  move(): Promise<void>
}

/** Stands in for the mark of a store that is not open yet: until `set`, it throws `service_unavailable`. */
export class LateMark implements SecretMark {
  #mark: SecretMark | undefined

  set(mark: SecretMark): void {
    this.#mark = mark
  }

  get store(): string {
    return this.#opened.store
  }

  get fingerprint(): string {
    return this.#opened.fingerprint
  }

  move(): Promise<void> {
    return this.#opened.move()
  }

  get #opened(): SecretMark {
    if (!this.#mark) throw new ServiceUnavailable('The document store')
    return this.#mark
  }
}

/** The error for a store in which documents depend on a secret that is not accepted. */
export function stillNeeded({ store }: SecretMark): Error {
  return new Error(`${store} has records that were made with a secret which is not set. ${STILL_NEEDED}`)
}
