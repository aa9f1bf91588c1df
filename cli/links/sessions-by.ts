import type { SessionStore } from '../../gateway/sessions/session-store.ts'
import { billingOperation } from '../../schema/operations.ts'
import { InvalidApiKey } from '../../subgraphs/common/errors.ts'
import { type Link, request } from '../../subgraphs/common/link/link.ts'

const OPEN = billingOperation(
  `mutation OpenSession($apiKey: String!, $userAgent: String) { openSession(apiKey: $apiKey, userAgent: $userAgent) { token session { id expiresAt } } }`,
)
const END = billingOperation('mutation EndSession($token: String!) { endSession(token: $token) }')

/** A session store over billing, which stores the sessions. */
export function sessionsBy(billing: Link): SessionStore {
  const caller = { service: 'gateway' } as const
  return {
    async open(apiKey, userAgent, context) {
      const { openSession } = await request(billing, { query: OPEN, variables: { apiKey, userAgent } }, { caller, ...context })
      if (!openSession) throw new InvalidApiKey()
      const { token, session } = openSession
      return { id: session.id, token, expiresAt: new Date(session.expiresAt) }
    },
    async end(token, context) {
      await request(billing, { query: END, variables: { token } }, { caller, ...context })
    },
  }
}
