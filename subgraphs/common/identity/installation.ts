import { deriveKey } from './secrets.ts'

/** Whose a store is. Each store carries both, so that nobody serves another installation's data, or opens it with a secret that does not fit. */
export interface Installation {
  /** `inst_…` */
  readonly id: string
  /** Tells secrets apart, and nothing else of them. */
  readonly secretFingerprint: string
}

export function secretFingerprintOf(secret: Uint8Array): string {
  return Buffer.from(deriveKey(secret, 'fingerprint')).toString('hex').slice(0, 16)
}

/** What keeps a store with this mark from serving, in sentences for the operator; null: it is the installation's own. */
export function foreignnessOf(store: string, mark: Installation, own: Installation): string | null {
  if (mark.id !== own.id)
    return `${store} belongs to the installation ${mark.id}, and the other stores to ${own.id}. Put back the one that belongs here, from a backup of the same time.`
  if (mark.secretFingerprint !== own.secretFingerprint)
    return (
      `${store} was made with another secret: with this one no API key works, and what callers have entrusted cannot be read. ` +
      'Set KIS_SECRET to the one that it was made with, or put the file `secret` back into the data folder.'
    )
  return null
}
