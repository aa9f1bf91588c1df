import { billingOperation } from '../../../schema/operations.ts'
import { PRINCIPAL_FIELDS, principalFrom } from '../../common/identity/principal.ts'
import { type Link, request } from '../../common/link/link.ts'
import type { Accounts } from '../ports/accounts.ts'

const PRINCIPAL_OF_KEY = billingOperation(`query PrincipalOfKey($organizationId: ID!, $apiKeyId: ID!) {
  principalOfKey(organizationId: $organizationId, apiKeyId: $apiKeyId) { ${PRINCIPAL_FIELDS} }
}`)

/** Implements `Accounts` with calls to billing. */
export function accountsOver(link: Link): Accounts {
  return {
    async findPrincipal(organizationId, apiKeyId, signal) {
      const { principalOfKey } = await request(
        link,
        { query: PRINCIPAL_OF_KEY, variables: { organizationId, apiKeyId } },
        { caller: { service: 'knowledge' }, requestId: apiKeyId, signal },
      )
      return principalOfKey && principalFrom(principalOfKey)
    },
  }
}
