import type { BillingDeps } from '../../use-cases/deps.ts'
import type { WebhookEndpoint } from '../domain/records.ts'
import { deriveSecret } from '../domain/signature.ts'

type Secrets = Pick<BillingDeps, 'peppers' | 'sealed' | 'secretMark'>

/** The secrets that sign for an endpoint now, the newest first. */
export function secretsOf(deps: Secrets, endpoint: WebhookEndpoint, now: Date): readonly [string, ...string[]] {
  const earlier = earlierSecretOf(deps, endpoint, now)
  return earlier === null ? [secretOf(deps, endpoint)] : [secretOf(deps, endpoint), earlier]
}

/** What its receiver knows. */
export function secretOf(deps: Secrets, endpoint: WebhookEndpoint): string {
  return readSecret(deps, endpoint, endpoint.nonce, endpoint.sealedSecret)
}

/** The secret before its rotation, as long as it signs, too. */
export function earlierSecretOf(deps: Secrets, endpoint: WebhookEndpoint, now: Date): string | null {
  const { previousNonce, previousUntil, sealedPreviousSecret } = endpoint
  if (previousNonce === null || previousUntil === null || previousUntil <= now) return null
  return readSecret(deps, endpoint, previousNonce, sealedPreviousSecret)
}

export function sealSecret({ sealed }: Secrets, { _id }: WebhookEndpoint, nonce: string, secret: string): string {
  return sealed.seal(secret, placeOf(_id, nonce))
}

function readSecret(deps: Secrets, endpoint: WebhookEndpoint, nonce: string, kept: string | undefined): string {
  const { _id, secretFingerprint = deps.secretMark.fingerprint } = endpoint
  if (kept !== undefined) return deps.sealed.open(kept, placeOf(_id, nonce))
  const pepper = Object.values(deps.peppers).find((each) => each?.secretFingerprint === secretFingerprint)
  // The start has looked for such endpoints: a process with another secret has made it since.
  if (!pepper) throw new Error(`the webhook endpoint ${_id} was made with a secret of the service that is not set here`)
  return deriveSecret(pepper.key, _id, nonce)
}

/** Where it is sealed: it cannot be opened for another endpoint, or in place of another secret. */
const placeOf = (id: string, nonce: string) => `secret of the webhook endpoint ${id} ${nonce}`
