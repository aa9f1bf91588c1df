import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from 'node:crypto'
import { z } from 'zod'

/** Schema of bytes in base64. */
const bytes = (count: { readonly min: number; readonly max: number }) =>
  z.base64().refine((text) => {
    const { length } = Buffer.from(text, 'base64')
    return length >= count.min && length <= count.max
  }, 'has another length')

/**
 * A secret sealed with a passphrase: AES-256-GCM with a key that scrypt derives. The cost is part of the format, so
 * that no archive can demand memory.
 */
export const SEALED = z.strictObject({
  kdf: z.literal('scrypt-131072-8-1'),
  cipher: z.literal('aes-256-gcm'),
  salt: bytes({ min: 16, max: 16 }),
  iv: bytes({ min: 12, max: 12 }),
  tag: bytes({ min: 16, max: 16 }),
  text: bytes({ min: 1, max: 65_536 }),
})
/** A sealed secret as it is in an archive. */
export type Sealed = z.output<typeof SEALED>

/** OWASP's first choice for scrypt (Password Storage Cheat Sheet): N = 2^17, r = 8, p = 1. It takes 128 MiB. */
const SCRYPT = { N: 131_072, r: 8, p: 1, maxmem: 160 * 1024 * 1024 }
const KEY_BYTES = 32

/** `context` is not secret; `open` needs the same one. */
export function seal(secret: Uint8Array, passphrase: string, context: string): Sealed {
  const salt = randomBytes(16)
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', toKey(passphrase, salt), iv).setAAD(Buffer.from(context))
  const text = Buffer.concat([cipher.update(secret), cipher.final()])
  const [saltText, ivText, tagText, sealed] = [salt, iv, cipher.getAuthTag(), text].map((each) => each.toString('base64'))
  return { kdf: 'scrypt-131072-8-1', cipher: 'aes-256-gcm', salt: saltText!, iv: ivText!, tag: tagText!, text: sealed! }
}

/** Returns null if the passphrase is wrong, or somebody changed the sealed text. */
export function open(sealed: Sealed, passphrase: string, context: string): Uint8Array | null {
  const [salt, iv, tag, text] = [sealed.salt, sealed.iv, sealed.tag, sealed.text].map((each) => Buffer.from(each, 'base64'))
  const decipher = createDecipheriv('aes-256-gcm', toKey(passphrase, salt!), iv!).setAAD(Buffer.from(context)).setAuthTag(tag!)
  try {
    return Buffer.concat([decipher.update(text!), decipher.final()])
  } catch {
    return null
  }
}

/**
 * Derives the key. The text is normalized, because the same words typed on another system must result in the same key.
 */
function toKey(passphrase: string, salt: Uint8Array): Buffer {
  return scryptSync(passphrase.normalize('NFKC'), salt, KEY_BYTES, SCRYPT)
}
