import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/accounts.ts'
import { PAGE_INFO } from '../http/lists.ts'
import { deleteRoute, listRoute } from '../http/resource-routes.ts'
import type { Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'

const SESSION = 'id apiKey { id } userAgent isCurrent createdAt lastUsedAt expiresAt'

type SessionData = Selected<'Session', typeof SESSION>

const LIST = gatewayOperation(`query Sessions($first: Int!, $after: String) {
  sessions(first: $first, after: $after) { edges { node { ${SESSION} } } ${PAGE_INFO} } }`)
const REVOKE = gatewayOperation('mutation RevokeSession($id: ID!) { revokeSession(id: $id) { session { id } } }')

function toSession({ id, apiKey, userAgent, isCurrent, createdAt, lastUsedAt, expiresAt }: SessionData): operations.Session {
  return {
    id,
    object: 'session',
    created_at: unixSeconds(createdAt),
    key_id: apiKey?.id ?? null,
    user_agent: userAgent ?? null,
    is_current: isCurrent,
    last_used_at: unixSeconds(lastUsedAt),
    expires_at: unixSeconds(expiresAt),
  }
}

/** Browsers open sessions at the gateway's `/session`, not here. */
export const sessionRoutes: readonly Route[] = [
  listRoute(operations.listSessions, LIST, (data) => data.sessions, toSession),
  deleteRoute(operations.revokeSession, REVOKE, 'session', (data) => data.revokeSession.session.id),
]
