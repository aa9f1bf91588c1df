import type { SealedTexts } from '../../../common/identity/sealed-text.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Collections } from '../../use-cases/tables.ts'
import type { WebhookEndpoint } from '../domain/records.ts'
import { deriveSecret } from '../domain/signature.ts'

type Secrets = Pick<BillingDeps, 'pepper' | 'sealed'>

const BATCH = 100

/** The secrets that sign for an endpoint now, the newest first. */
export function secretsOf(deps: Secrets, endpoint: WebhookEndpoint, now: Date): readonly [string, ...string[]] {
  const { _id, previousNonce, previousUntil, sealedPreviousSecret } = endpoint
  const secret = secretOf(deps, endpoint)
  // After a rotation of the endpoint's secret, the one before signs for a while, too.
  if (previousNonce === null || previousUntil === null || previousUntil <= now) return [secret]
  return [secret, readSecret(deps, _id, previousNonce, sealedPreviousSecret)]
}

/** What its receiver knows. */
export function secretOf(deps: Secrets, { _id, nonce, sealedSecret }: WebhookEndpoint): string {
  return readSecret(deps, _id, nonce, sealedSecret)
}

/** Seals what is sealed with another key. Repeatable. */
export async function resealEndpoints(
  { webhookEndpoints }: Pick<Collections, 'webhookEndpoints'>,
  before: SealedTexts,
  after: SealedTexts,
): Promise<void> {
  for (let last = '', isMore = true; isMore; ) {
    const page = await webhookEndpoints.find({ _id: { $gt: last } }, { sort: { _id: 1 }, limit: BATCH })
    for (const { _id, nonce, previousNonce, sealedSecret, sealedPreviousSecret } of page) {
      const reseal = (sealed: string, of: string) => after.reseal(sealed, endpointSealContext(_id, of), before)
      const resealed = {
        ...(sealedSecret && { sealedSecret: reseal(sealedSecret, nonce) }),
        ...(sealedPreviousSecret && { sealedPreviousSecret: reseal(sealedPreviousSecret, previousNonce!) }),
      }
      if (Object.keys(resealed).length > 0) await webhookEndpoints.findOneAndUpdate({ _id }, { $set: resealed })
    }
    isMore = page.length === BATCH
    if (isMore) last = page.at(-1)!._id
  }
}

function readSecret({ pepper, sealed }: Secrets, id: string, nonce: string, stored: string | undefined): string {
  return stored === undefined ? deriveSecret(pepper(), id, nonce) : sealed.open(stored, endpointSealContext(id, nonce))
}

/** Where it is sealed: it cannot be opened for another endpoint, or in place of another secret. */
export const endpointSealContext = (id: string, nonce: string) => `secret of the webhook endpoint ${id} ${nonce}`
