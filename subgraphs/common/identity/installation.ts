import type { Fingerprints } from './accepted-secrets.ts'
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

/** The installation of this process, whose secret may be under rotation. */
export interface OwnInstallation extends Installation {
  /** Stores with the mark of one of these are its own, too. Absent or null: there is no such secret. */
  readonly previousFingerprint?: string | null
  readonly nextFingerprint?: string | null
  /** Nothing in the store depends on the secret, so a mark of the previous one moves as the store opens. Absent: false. */
  readonly movesAtOnce?: boolean
}

export function ownInstallation(id: string, { current, previous, next }: Fingerprints): OwnInstallation {
  return { id, secretFingerprint: current, previousFingerprint: previous, nextFingerprint: next }
}

export function fingerprintSecret(secret: Uint8Array): string {
  return Buffer.from(deriveKey(secret, 'fingerprint')).toString('hex').slice(0, 16)
}

/**
 * Says why a store with this mark cannot be used, in sentences for the operator; null: it belongs to this installation.
 */
export function explainForeign(store: string, mark: Installation, own: OwnInstallation): string | null {
  if (mark.id !== own.id)
    return `${store} belongs to the installation ${mark.id}, and the other stores to ${own.id}. Put back the one that belongs here, from a backup of the same time.`
  if (![own.secretFingerprint, own.previousFingerprint, own.nextFingerprint].includes(mark.secretFingerprint))
    return (
      `${store} was made with another secret: with this one no API key works, and what callers have entrusted cannot be read. ` +
      `Set KIS_SECRET to the one that it was made with, or put the file \`secret\` back into the data folder. ${STILL_NEEDED}`
    )
  return null
}

/** What to do if a secret was taken away before its rotation had ended. */
export const STILL_NEEDED =
  'If that secret is being rotated, it is still needed: keep it as KIS_SECRET_PREVIOUS until `kis secret` says that nothing is left.'

/** Whether the mark of a store has to be moved to the current secret as the store opens. */
export function hasToMove(mark: Installation, { movesAtOnce, previousFingerprint }: OwnInstallation): boolean {
  return movesAtOnce === true && mark.secretFingerprint === previousFingerprint
}
