import { billingOperation } from '../schema/operations.ts'
import { InvalidApiKey } from '../subgraphs/common/errors.ts'
import type { Principal } from '../subgraphs/common/identity/principal.ts'
import { PRINCIPAL_FIELDS, principalFrom } from '../subgraphs/common/identity/principal-answer.ts'
import { type Link, type LinkContext, request } from '../subgraphs/common/link/link.ts'

const PRINCIPAL_OF_API_KEY = billingOperation(
  `query PrincipalOfApiKey($apiKey: String!) { principalOfApiKey(apiKey: $apiKey) { ${PRINCIPAL_FIELDS} } }`,
)

/**
 * Asks billing for the principal of a key.
 * @throws {InvalidApiKey} the key is unknown, revoked or expired
 */
export function authenticateBy(billing: Link): (apiKey: string, context: Pick<LinkContext, 'requestId' | 'signal'>) => Promise<Principal> {
  return async (apiKey, { requestId, signal }) => {
    const { principalOfApiKey } = await request(
      billing,
      { query: PRINCIPAL_OF_API_KEY, variables: { apiKey } },
      { caller: { service: 'gateway' }, requestId, signal },
    )
    if (!principalOfApiKey) throw new InvalidApiKey()
    return principalFrom(principalOfApiKey)
  }
}
