import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/**
 * AES-256-GCM: 12 bytes that are never reused, 16 bytes that authenticate the rest (NIST SP 800-38D, sections 5.2.1.1
 * and 5.2.1.2).
 */
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Encrypts secrets in the store, with a key derived from the installation's secret. */
export class SealedTexts {
  readonly #key: Uint8Array

  /** @param key 32 bytes from `deriveKey` */
  constructor(key: Uint8Array) {
    this.#key = key
  }

  /** @param context the owner and purpose of the text; it cannot be opened for another place */
  seal(text: string, context: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(context))
    return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64')
  }

  /** @throws {Error} it was sealed with another key or for another place, or is damaged */
  open(sealed: string, context: string): string {
    const bytes = Buffer.from(sealed, 'base64')
    const nonce = bytes.subarray(0, NONCE_BYTES)
    const decipher = createDecipheriv('aes-256-gcm', this.#key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(context))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8')
  }

  /**
   * Gives a text that `before` has sealed, sealed with this key; one that this key has sealed stays the same.
   * @throws {Error} neither opens it
   */
  reseal(sealed: string, context: string, before: SealedTexts): string {
    try {
      this.open(sealed, context)
      return sealed
    } catch {
      return this.seal(before.open(sealed, context), context)
    }
  }
}
