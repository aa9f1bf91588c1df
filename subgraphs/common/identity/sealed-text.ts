import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/**
 * AES-256-GCM: 12 bytes that are never reused, 16 bytes that authenticate the rest (NIST SP 800-38D, sections 5.2.1.1
 * and 5.2.1.2).
 */
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Encrypts secrets of callers in the store, with keys derived from the installation's secrets. */
export class SealedTexts {
  readonly #current: Uint8Array
  readonly #accepted: readonly Uint8Array[]

  /** @param current 32 bytes from `deriveKey`; `accepted`: others of them, which only open */
  constructor(current: Uint8Array, ...accepted: readonly Uint8Array[]) {
    this.#current = current
    this.#accepted = accepted
  }

  /** @param place the owner and purpose of the text; it cannot be opened for another place */
  seal(text: string, place: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#current, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(place))
    return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64')
  }

  /** @throws {Error} it was sealed with another key or for another place, or is damaged */
  open(sealed: string, place: string): string {
    let failure: unknown
    for (const key of [this.#current, ...this.#accepted]) {
      try {
        return openBy(key, sealed, place)
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  /**
   * Gives the text sealed with the current key; the same one if it is already.
   * @throws {Error} as `open`
   */
  renew(sealed: string, place: string): string {
    try {
      openBy(this.#current, sealed, place)
      return sealed
    } catch {
      return this.seal(this.open(sealed, place), place)
    }
  }
}

function openBy(key: Uint8Array, sealed: string, place: string): string {
  const bytes = Buffer.from(sealed, 'base64')
  const nonce = bytes.subarray(0, NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(place))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8')
}
