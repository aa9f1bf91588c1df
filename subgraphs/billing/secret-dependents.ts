import type { Dependents } from '../common/rotation/secret-rotation.ts'
import type { BillingDeps } from './use-cases/deps.ts'
import type { ApiKey, Invitation } from './use-cases/tables.ts'
import type { WebhookEndpoint } from './webhooks/domain/records.ts'
import { earlierSecretOf, sealSecret, secretOf } from './webhooks/use-cases/endpoint-secrets.ts'

type Deps = Pick<BillingDeps, 'collections' | 'peppers' | 'sealed' | 'secretMark' | 'clock'>

/**
 * What in billing depends on the installation's secret. Only who has its text can move a key or an invitation, so those
 * are only labelled here; what does not work any more depends on nothing.
 */
export function secretDependents(deps: Deps): readonly [Dependents<ApiKey>, Dependents<Invitation>, Dependents<WebhookEndpoint>] {
  const { apiKeys, invitations, webhookEndpoints } = deps.collections
  return [
    { kind: 'api_keys', collection: apiKeys, move: (key, madeWith) => labelKey(deps, key, madeWith) },
    { kind: 'invitations', collection: invitations, move: (invitation, madeWith) => labelInvitation(deps, invitation, madeWith) },
    { kind: 'webhook_endpoints', collection: webhookEndpoints, move: (endpoint) => keepSecret(deps, endpoint) },
  ]
}

async function labelKey({ collections, peppers, clock }: Deps, key: ApiKey, madeWith: string): Promise<void> {
  const { _id, digest, memberId, revokedAt, expiresAt } = key
  const isOver = memberId !== undefined || revokedAt !== null || (expiresAt !== null && expiresAt <= clock.now())
  const secretFingerprint = isOver ? peppers.current.secretFingerprint : madeWith
  if (secretFingerprint !== key.secretFingerprint)
    await collections.apiKeys.findOneAndUpdate({ _id, digest }, { $set: { secretFingerprint } })
}

async function labelInvitation({ collections, peppers, clock }: Deps, invitation: Invitation, madeWith: string): Promise<void> {
  const { _id, acceptedAt, revokedAt, expiresAt } = invitation
  const isOver = acceptedAt !== null || revokedAt !== null || expiresAt <= clock.now()
  const secretFingerprint = isOver ? peppers.current.secretFingerprint : madeWith
  if (secretFingerprint !== invitation.secretFingerprint)
    await collections.invitations.findOneAndUpdate({ _id }, { $set: { secretFingerprint } })
}

/** Receivers have the endpoint's secret, so it stays, sealed. */
async function keepSecret(deps: Deps, endpoint: WebhookEndpoint): Promise<void> {
  const { _id, nonce, previousNonce, secretFingerprint = null } = endpoint
  const earlier = earlierSecretOf(deps, endpoint, deps.clock.now())
  await deps.collections.webhookEndpoints.findOneAndUpdate(
    { _id, nonce, secretFingerprint },
    {
      $set: {
        secretFingerprint: deps.peppers.current.secretFingerprint,
        sealedSecret: sealSecret(deps, endpoint, nonce, secretOf(deps, endpoint)),
        ...(earlier !== null && { sealedPreviousSecret: sealSecret(deps, endpoint, previousNonce!, earlier) }),
      },
    },
  )
}
