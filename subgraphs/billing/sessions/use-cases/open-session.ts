import { createHash, randomBytes } from 'node:crypto'
import { sessionTokenFrom } from '../../../common/identity/credentials.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { DocumentCollection } from '../../../common/ports/document-store.ts'
import { principalOfApiKey } from '../../accounts/use-cases/find-principal.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Session } from '../../use-cases/tables.ts'

/** A working day with a break. A portal that is left open overnight needs a new sign-in. */
export const SESSION_MS = 12 * 3_600_000
/** Sessions of one key, which several people may share. */
export const MAX_SESSIONS_OF_KEY = 50
/** The limit of keys of an organization. */
const MAX_SESSIONS_OF_ORGANIZATION = 1_000
/** Longest stored user agent. Those of browsers have 100 to 250 characters. */
const MAX_USER_AGENT_CHARACTERS = 300

/** A session with its token, which is never shown again. */
interface OpenedSession {
  readonly session: Session
  readonly token: string
}

/**
 * Exchanges the text of an API key for a session.
 * @throws {InvalidApiKey} the key is unknown, revoked or expired
 * @throws {OrganizationSuspended}
 */
export async function openSession(deps: BillingDeps, apiKey: string, userAgent: string | null): Promise<OpenedSession> {
  return openSessionOf(deps, await principalOfApiKey(deps, apiKey), { memberId: null, userAgent })
}

/**
 * Opens a session for a key. The oldest sessions end if the key or its organization then has too many. `memberId`: the
 * person who signed in, if the key is theirs.
 */
export async function openSessionOf(
  deps: BillingDeps,
  { apiKeyId, organizationId, rotations }: Pick<Principal, 'apiKeyId' | 'organizationId' | 'rotations'>,
  { memberId, userAgent }: Pick<Session, 'memberId' | 'userAgent'>,
): Promise<OpenedSession> {
  const { sessions } = deps.collections
  const token = sessionTokenFrom(randomBytes(32))
  const now = deps.clock.now()
  const session: Session = {
    _id: deps.ids('ses'),
    digest: digestToken(token),
    apiKeyId,
    organizationId,
    rotations,
    memberId,
    userAgent: userAgent?.slice(0, MAX_USER_AGENT_CHARACTERS) ?? null,
    createdAt: now,
    lastUsedAt: now,
    expiresAt: new Date(now.getTime() + SESSION_MS),
  }
  await sessions.insertOne(session)
  // The limits are applied after the insertion, so that they also hold when many people sign in at once.
  await endOldest(sessions, { apiKeyId }, MAX_SESSIONS_OF_KEY)
  await endOldest(sessions, { organizationId }, MAX_SESSIONS_OF_ORGANIZATION)
  return { session, token }
}

/** Returns the digest that is stored instead of the token. The token is random, so it needs no pepper. */
export function digestToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

async function endOldest(sessions: DocumentCollection<Session>, filter: { readonly [field: string]: string }, most: number): Promise<void> {
  const surplus = (await sessions.countDocuments(filter)) - most
  if (surplus <= 0) return
  for (const { _id } of await sessions.find(filter, { limit: Math.min(surplus, 1_000) })) await sessions.findOneAndDelete({ _id })
}
