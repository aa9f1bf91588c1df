import { fingerprintSecret } from './installation.ts'
import { deriveKey, type Purpose } from './secrets.ts'

/**
 * The secrets that a process accepts. While the installation's secret is rotated, processes before and after the change
 * run side by side, so the name says the direction: what depends on `previous` is moved to `current`, and nothing is
 * moved to `next`.
 */
export interface Secrets {
  /** Signs, seals and digests what is new. */
  readonly current: Uint8Array
  /** The coming secret: other processes have it as `current` already, or will soon. */
  readonly next: Uint8Array | null
  /** The secret before the current one. */
  readonly previous: Uint8Array | null
}

/** A key for one purpose, and the secret that it was derived from. */
export interface DerivedKey {
  readonly secretFingerprint: string
  /** 32 bytes. */
  readonly key: Uint8Array
}

/** The keys for one purpose, one from each accepted secret. */
export interface DerivedKeys {
  readonly current: DerivedKey
  readonly next: DerivedKey | null
  readonly previous: DerivedKey | null
}

/** The fingerprints of the accepted secrets. */
export interface Fingerprints {
  readonly current: string
  readonly next: string | null
  readonly previous: string | null
}

/** Secrets that equal the current one are none: a rotation may be prepared, or over, for some processes only. */
export function acceptedSecrets(current: Uint8Array, { next, previous }: Omit<Secrets, 'current'>): Secrets {
  const other = (secret: Uint8Array | null) => (secret && !Buffer.from(secret).equals(current) ? secret : null)
  return { current, next: other(next), previous: other(previous) }
}

export function deriveKeys({ current, next, previous }: Secrets, purpose: Purpose): DerivedKeys {
  const derive = (secret: Uint8Array): DerivedKey => ({
    secretFingerprint: fingerprintSecret(secret),
    key: deriveKey(secret, purpose),
  })
  return { current: derive(current), next: next && derive(next), previous: previous && derive(previous) }
}

/** The keys themselves, the current one first. */
export function listKeys({ current, next, previous }: DerivedKeys): readonly [Uint8Array, ...Uint8Array[]] {
  return [current.key, ...[next, previous].flatMap((each) => each?.key ?? [])]
}

export function fingerprintsOf({ current, next, previous }: DerivedKeys): Fingerprints {
  return {
    current: current.secretFingerprint,
    next: next?.secretFingerprint ?? null,
    previous: previous?.secretFingerprint ?? null,
  }
}
