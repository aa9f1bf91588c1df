import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { NotFound } from '../../subgraphs/common/errors.ts'
import { PAGE_INFO, PAGE_NAMES, pageVariables, readId, toList } from '../http/lists.ts'
import { created, deleted, type JsonObject, ok, type Route } from '../http/route.ts'
import { toEnum, toInstant, toScope, unixSeconds, unixSecondsOrNull } from '../http/values.ts'

export const KEY = `id name scopes modelAllowlist requestsPerMinute tokensPerMinute
  spendLimit { amount period spent held resetsAt } last4 lastUsedAt expiresAt revokedAt createdAt`

type KeyData = Selected<'ApiKey', typeof KEY>

interface SecretData {
  readonly apiKey: KeyData
  readonly key: string
}

const CREATE = gatewayOperation(
  `mutation CreateApiKey($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { ${KEY} } } }`,
)
const LIST = gatewayOperation(`query ApiKeys($first: Int!, $after: String) {
  organization { apiKeys(first: $first, after: $after) { edges { node { ${KEY} } } ${PAGE_INFO} } } }`)
const GET = gatewayOperation(`query ApiKey($id: ID!) { apiKey(id: $id) { ${KEY} } }`)
const UPDATE = gatewayOperation(`mutation UpdateApiKey($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { apiKey { ${KEY} } } }`)
const ROTATE = gatewayOperation(`mutation RotateApiKey($id: ID!) { rotateApiKey(id: $id) { key apiKey { ${KEY} } } }`)
const REVOKE = gatewayOperation('mutation RevokeApiKey($id: ID!) { revokeApiKey(id: $id) { apiKey { id } } }')

function toSpendLimit({ amount, period, spent, held, resetsAt }: NonNullable<KeyData['spendLimit']>) {
  return { amount_usd: amount, period: period.toLowerCase(), spent_usd: spent, held_usd: held, resets_at: unixSecondsOrNull(resetsAt) }
}

export function toKey(data: KeyData) {
  return {
    id: data.id,
    object: 'key',
    created_at: unixSeconds(data.createdAt),
    name: data.name,
    scopes: data.scopes.map(toScope),
    model_allowlist: data.modelAllowlist,
    spend_limit: data.spendLimit && toSpendLimit(data.spendLimit),
    requests_per_minute: data.requestsPerMinute,
    tokens_per_minute: data.tokensPerMinute,
    last4: data.last4,
    last_used_at: unixSecondsOrNull(data.lastUsedAt),
    expires_at: unixSecondsOrNull(data.expiresAt),
    revoked_at: unixSecondsOrNull(data.revokedAt),
  }
}

const NAMES = { 'spendLimit.amount': 'spend_limit.amount_usd' }

const withSecret = ({ apiKey, key }: SecretData) => ({ ...toKey(apiKey), key })

/** Fields that were left out stay out; null is a value. */
function toInput({
  name,
  scopes,
  model_allowlist,
  requests_per_minute,
  tokens_per_minute,
  spend_limit,
  expires_at,
}: JsonObject): JsonObject {
  const limit = spend_limit as { readonly amount_usd: string; readonly period: string } | null | undefined
  return {
    name,
    scopes: (scopes as readonly string[] | undefined)?.map(toEnum),
    modelAllowlist: model_allowlist,
    requestsPerMinute: requests_per_minute,
    tokensPerMinute: tokens_per_minute,
    spendLimit: limit && { amount: limit.amount_usd, period: toEnum(limit.period) },
    expiresAt: typeof expires_at === 'number' ? toInstant(expires_at) : expires_at,
  }
}

export const keyRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/keys',
    async handle({ ask, body }) {
      const data = await ask(CREATE, { input: toInput(body) }, NAMES)
      return created(withSecret(data.createApiKey))
    },
  },
  {
    method: 'GET',
    path: '/v1/keys',
    async handle({ ask, query }) {
      const data = await ask(LIST, pageVariables(query), PAGE_NAMES)
      return ok(toList(data.organization.apiKeys, toKey, readId))
    },
  },
  {
    method: 'GET',
    path: '/v1/keys/{id}',
    async handle({ ask, params }) {
      const { apiKey } = await ask(GET, { id: params.id })
      if (!apiKey) throw new NotFound('key', params.id!)
      return ok(toKey(apiKey))
    },
  },
  {
    method: 'PATCH',
    path: '/v1/keys/{id}',
    async handle({ ask, params, body }) {
      const data = await ask(UPDATE, { input: { id: params.id, ...toInput(body) } }, NAMES)
      return ok(toKey(data.updateApiKey.apiKey))
    },
  },
  {
    method: 'DELETE',
    path: '/v1/keys/{id}',
    async handle({ ask, params }) {
      const data = await ask(REVOKE, { id: params.id })
      return deleted('key', data.revokeApiKey.apiKey.id)
    },
  },
  {
    method: 'POST',
    path: '/v1/keys/{id}/rotate',
    async handle({ ask, params }) {
      const data = await ask(ROTATE, { id: params.id })
      return ok(withSecret(data.rotateApiKey))
    },
  },
]
