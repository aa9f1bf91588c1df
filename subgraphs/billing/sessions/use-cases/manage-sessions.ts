import { listById } from '../../../common/documents/lists.ts'
import { NotFound } from '../../../common/errors.ts'
import { hasScope, type Principal } from '../../../common/identity/principal.ts'
import type { Connection, PageArguments } from '../../../common/link/connection.ts'
import { ownKey } from '../../accounts/use-cases/manage-api-key.ts'
import { rankOfKey, requireRank } from '../../accounts/use-cases/rank-of-key.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Session } from '../../use-cases/tables.ts'

const SESSION_ID = /^ses_[0-9a-f]{32}$/

/**
 * Lists the sessions of the caller's key, or of the whole organization for callers that may manage its keys, newest
 * first.
 */
export async function listSessions({ collections }: BillingDeps, principal: Principal, page: PageArguments): Promise<Connection<Session>> {
  const { organizationId, apiKeyId } = principal
  const filter = hasScope(principal, 'admin') ? { organizationId } : { apiKeyId }
  return listById(collections.sessions, filter, page, SESSION_ID)
}

/** Returns the session of this call; null: the caller sent a key. */
export async function findOwnSession({ collections }: BillingDeps, { sessionId }: Principal): Promise<Session | null> {
  return sessionId === undefined ? null : collections.sessions.findOne({ _id: sessionId })
}

/**
 * Ends a session of the caller's key, or any of the organization for callers that may manage its keys.
 * @throws {NotFound} there is none that the caller may see
 * @throws {KisError} `permission_denied`: its key has a higher rank than the caller
 */
export async function revokeSession(deps: BillingDeps, principal: Principal, id: string): Promise<Session> {
  const { sessions, apiKeys } = deps.collections
  const session = await sessions.findOne({ _id: id })
  if (!session || !maySee(principal, session)) throw new NotFound('session', id, 'id')
  const key = session.apiKeyId === principal.apiKeyId ? null : await apiKeys.findOne({ _id: session.apiKeyId })
  if (key) requireRank(await rankOfKey(deps, await ownKey(deps, principal)), await rankOfKey(deps, key))
  await sessions.findOneAndDelete({ _id: id })
  return session
}

function maySee(principal: Principal, { organizationId, apiKeyId }: Session): boolean {
  return organizationId === principal.organizationId && (apiKeyId === principal.apiKeyId || hasScope(principal, 'admin'))
}

/** Deletes expired sessions. */
export async function sweepSessions({ collections, clock }: BillingDeps): Promise<void> {
  while ((await collections.sessions.deleteMany({ expiresAt: { $lte: clock.now() } })) > 0);
}
