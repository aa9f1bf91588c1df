import { KisError, NotFound } from '../../../common/errors.ts'
import { type Caller, type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey } from '../../use-cases/tables.ts'
import { forgetSessions } from './revoke-api-key.ts'
import { putInForce } from './rules-in-force.ts'

/** Keys, or invitations, that one call ends. The caller repeats it. */
const BATCH = 100

/**
 * The keys that work only with the previous secret: nobody has used their text since the rotation began. At most 100.
 * @throws {KisError} `permission_denied`: the caller lacks the scope `operator`
 */
export async function listUnmovedKeys({ collections, peppers }: BillingDeps, caller: Caller | null): Promise<readonly ApiKey[]> {
  requireScope(caller, 'operator')
  if (!peppers.previous) return []
  const { secretFingerprint } = peppers.previous
  return collections.apiKeys.find({ secretFingerprint }, { sort: { _id: 1 }, limit: BATCH })
}

export interface FinishedStep {
  readonly revokedKeys: number
  readonly revokedInvitations: number
  /** Whether another call has more to do. */
  readonly hasMore: boolean
}

/**
 * Revokes keys and invitations that work only with the previous secret, up to 100 of each; the keys that descend from
 * them stay. May be repeated: it goes on where it has stopped.
 * @throws {KisError} `invalid_request`: no previous secret is set; `in_use`: the caller's own key would be revoked
 * @throws {KisError} `service_unavailable`: the keys are still being looked through
 */
export async function finishSecretRotation(deps: BillingDeps, principal: Principal): Promise<FinishedStep> {
  requireScope(principal, 'operator')
  const { collections, peppers, rotation, clock } = deps
  if (!peppers.previous) throw new KisError('invalid_request', 'No rotation of the secret is under way: no previous one is set.')
  if (!rotation.isLooked) throw new KisError('service_unavailable', 'The keys are still being looked through.', { retryAfterMs: 1_000 })
  const { secretFingerprint: previous } = peppers.previous
  const own = [principal.apiKeyId, ...(principal.ancestors ?? [])]
  const left = await collections.apiKeys.find({ secretFingerprint: previous }, { sort: { _id: 1 }, limit: BATCH })
  // Before any is revoked, so that none is whose end is not put in force.
  if (left.some(({ _id }) => own.includes(_id)))
    throw new KisError('in_use', 'Your own key is among them: send its text once, or rotate it, and repeat.', { param: 'id' })
  const moved = { revokedAt: clock.now(), secretFingerprint: peppers.current.secretFingerprint }
  const revoked: ApiKey[] = []
  for (const { _id, digest } of left) {
    const ended = await collections.apiKeys.findOneAndUpdate(
      { _id, digest, revokedAt: null },
      { $set: { ...moved, leavesDescendants: true } },
    )
    if (ended) revoked.push(ended)
  }
  for (const organizationId of new Set(revoked.map((key) => key.organizationId)))
    await putInForce(deps, organizationId).catch((error) => {
      if (!(error instanceof NotFound)) throw error
    })
  for (const { _id } of revoked) await forgetSessions(deps, _id)
  const invitations = await collections.invitations.find({ secretFingerprint: previous }, { sort: { _id: 1 }, limit: BATCH })
  let revokedInvitations = 0
  for (const { _id } of invitations)
    if (await collections.invitations.findOneAndUpdate({ _id, acceptedAt: null, revokedAt: null }, { $set: moved })) revokedInvitations++
  return { revokedKeys: revoked.length, revokedInvitations, hasMore: left.length === BATCH || invitations.length === BATCH }
}
