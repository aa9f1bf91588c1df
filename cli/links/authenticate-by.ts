import type { Authenticate } from '../../gateway/keys/authenticate.ts'
import type { IssuedTokens } from '../../gateway/keys/issued-tokens.ts'
import { billingOperation } from '../../schema/operations.ts'
import { InvalidApiKey, OrganizationSuspended, SessionEnded } from '../../subgraphs/common/errors.ts'
import { isSessionToken, isToken } from '../../subgraphs/common/identity/credentials.ts'
import { hasScope, PRINCIPAL_FIELDS, principalFrom } from '../../subgraphs/common/identity/principal.ts'
import { type Link, request } from '../../subgraphs/common/link/link.ts'

const PRINCIPAL_OF_API_KEY = billingOperation(
  `query PrincipalOfApiKey($apiKey: String!) { principalOfApiKey(apiKey: $apiKey) { ${PRINCIPAL_FIELDS} } }`,
)

const PRINCIPAL_OF_TOKEN = billingOperation(
  `query PrincipalOfToken($apiKeyId: ID!) { principalOfKey(apiKeyId: $apiKeyId) { ${PRINCIPAL_FIELDS} } }`,
)

const PRINCIPAL_OF_SESSION = billingOperation(
  `query PrincipalOfSession($token: String!) { principalOfSession(token: $token) { ${PRINCIPAL_FIELDS} } }`,
)

/**
 * Looks up at billing the principal of a key, of a session, or of an access token, which counts as the key that it
 * names.
 */
export function authenticateBy(billing: Link, tokens: IssuedTokens | null): Authenticate {
  return async (credentials, { requestId, signal }) => {
    const context = { caller: { service: 'gateway' }, requestId, signal } as const
    if (tokens && isToken(credentials)) {
      const { apiKeyId, scopes } = await tokens.read(credentials)
      const { principalOfKey } = await request(billing, { query: PRINCIPAL_OF_TOKEN, variables: { apiKeyId } }, context)
      const principal = principalOfKey && principalFrom(principalOfKey)
      if (!principal || principal.isEnded) throw new InvalidApiKey()
      if (principal.isSuspended) throw new OrganizationSuspended()
      return scopes === null ? principal : { ...principal, scopes: scopes.filter((scope) => hasScope(principal, scope)) }
    }
    if (isSessionToken(credentials)) {
      const { principalOfSession } = await request(billing, { query: PRINCIPAL_OF_SESSION, variables: { token: credentials } }, context)
      if (!principalOfSession) throw new SessionEnded()
      return principalFrom(principalOfSession)
    }
    const { principalOfApiKey } = await request(billing, { query: PRINCIPAL_OF_API_KEY, variables: { apiKey: credentials } }, context)
    if (!principalOfApiKey) throw new InvalidApiKey()
    return principalFrom(principalOfApiKey)
  }
}
