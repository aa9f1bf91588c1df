import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { PAGE_INFO, PAGE_NAMES, pageVariables, readId, toList } from '../http/lists.ts'
import { deleted, ok, type Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'

const SESSION = 'id apiKey { id } userAgent isCurrent createdAt lastUsedAt expiresAt'

type SessionData = Selected<'Session', typeof SESSION>

const LIST = gatewayOperation(`query Sessions($first: Int!, $after: String) {
  sessions(first: $first, after: $after) { edges { node { ${SESSION} } } ${PAGE_INFO} } }`)
const REVOKE = gatewayOperation('mutation RevokeSession($id: ID!) { revokeSession(id: $id) { session { id } } }')

function toSession({ id, apiKey, userAgent, isCurrent, createdAt, lastUsedAt, expiresAt }: SessionData) {
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

/** Sessions are opened by browsers at the gateway's `/session`, not here. */
export const sessionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/sessions',
    async handle({ ask, query }) {
      const data = await ask(LIST, pageVariables(query), PAGE_NAMES)
      return ok(toList(data.sessions, toSession, readId))
    },
  },
  {
    method: 'DELETE',
    path: '/v1/sessions/{id}',
    async handle({ ask, params }) {
      const data = await ask(REVOKE, { id: params.id })
      return deleted('session', data.revokeSession.session.id)
    },
  },
]
