import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/accounts.ts'
import { PAGE_INFO } from '../http/lists.ts'
import { actionRoute, createRoute, deleteRoute, listRoute, readRoute, updateRoute } from '../http/resource-routes.ts'
import type { JsonObject, Route } from '../http/route.ts'
import { lowerCase, toEnum, toInstant, toScope, unixSeconds, unixSecondsOrNull } from '../http/values.ts'

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

function toSpendLimit({ amount, period, spent, held, resetsAt }: NonNullable<KeyData['spendLimit']>): operations.SpendLimit {
  return { amount_usd: amount, period: lowerCase(period), spent_usd: spent, held_usd: held, resets_at: unixSecondsOrNull(resetsAt) }
}

export function toKey(data: KeyData): operations.Key {
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

/** Converts the body to the input. Absent fields stay absent; null is a value. */
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
  createRoute(operations.createKey, CREATE, toInput, (data) => withSecret(data.createApiKey), NAMES),
  listRoute(operations.listKeys, LIST, (data) => data.organization.apiKeys, toKey),
  readRoute(operations.getKey, GET, 'key', ({ apiKey }) => apiKey && toKey(apiKey)),
  updateRoute(operations.updateKey, UPDATE, toInput, (data) => toKey(data.updateApiKey.apiKey), NAMES),
  deleteRoute(operations.revokeKey, REVOKE, 'key', (data) => data.revokeApiKey.apiKey.id),
  actionRoute(operations.rotateKey, ROTATE, (data) => withSecret(data.rotateApiKey)),
]
