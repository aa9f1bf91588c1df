import { deriveKey } from './secrets.ts'

/**
 * The owner of a store. Each store has both values, so that nobody serves the data of another installation, or opens it
 * with the wrong secret.
 */
export interface Installation {
  /** `inst_…` */
  readonly id: string
  /** Identifies the secret without revealing it. */
  readonly secretFingerprint: string
}

export function fingerprintSecret(secret: Uint8Array): string {
  return Buffer.from(deriveKey(secret, 'fingerprint')).toString('hex').slice(0, 16)
}

/**
 * Says why a store with this mark cannot be used, in sentences for the operator; null: it belongs to this installation.
 */
export function explainForeign(store: string, mark: Installation, own: Installation): string | null {
  if (mark.id !== own.id)
    return `${store} belongs to the installation ${mark.id}, and the other stores to ${own.id}. Put back the one that belongs here, from a backup of the same time.`
  if (mark.secretFingerprint !== own.secretFingerprint)
    return (
      `${store} was made with another secret: with this one no API key works, and what callers have entrusted cannot be read. ` +
      'Set KIS_SECRET to the one that it was made with, or put the file `secret` back into the data folder.'
    )
  return null
}
