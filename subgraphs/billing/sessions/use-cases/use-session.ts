import { OrganizationSuspended, SessionEnded } from '../../../common/errors.ts'
import { isSessionToken } from '../../../common/identity/credentials.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { principalOfKey } from '../../accounts/use-cases/find-principal.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Session } from '../../use-cases/tables.ts'
import { digestToken } from './open-session.ts'

/** The interval for keys applies here, too. */
const USE_RECORDED_EVERY_MS = 300_000

/**
 * Returns the principal of a session: that of its key as it is now. Text that is no token costs no read of the store.
 * @throws {SessionEnded} the session is unknown or over, or its key was revoked, rotated or has expired; the error does
 * not say which
 * @throws {OrganizationSuspended}
 */
export async function principalOfSession(deps: BillingDeps, token: string): Promise<Principal> {
  const { collections, clock } = deps
  const session = isSessionToken(token) ? await collections.sessions.findOne({ digest: digestToken(token) }) : null
  if (!session || session.expiresAt <= clock.now()) throw new SessionEnded()
  const principal = await principalOfKey(deps, session.organizationId, session.apiKeyId)
  // Replacing the secret of a leaked key also ends the sessions that were opened with the old secret.
  if (!principal || principal.isEnded || principal.rotations !== session.rotations) throw new SessionEnded()
  if (principal.isSuspended) throw new OrganizationSuspended()
  await recordUse(deps, session)
  return { ...principal, sessionId: session._id }
}

/** Ends a session by its token. Idempotent. False: there was none. */
export async function endSession({ collections }: BillingDeps, token: string): Promise<boolean> {
  return isSessionToken(token) && (await collections.sessions.findOneAndDelete({ digest: digestToken(token) })) !== null
}

/** Records a use of the session and of its key. A read-only store must not lock out all callers. */
async function recordUse({ collections: { sessions, apiKeys }, clock }: BillingDeps, session: Session): Promise<void> {
  const now = clock.now()
  if (now.getTime() - session.lastUsedAt.getTime() < USE_RECORDED_EVERY_MS) return
  await Promise.all([
    sessions.findOneAndUpdate({ _id: session._id }, { $set: { lastUsedAt: now } }),
    apiKeys.findOneAndUpdate({ _id: session.apiKeyId }, { $set: { lastUsedAt: now } }),
  ]).catch(() => undefined)
}
