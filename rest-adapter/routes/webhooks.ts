import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { listByCursor, PAGE_INFO, PAGE_NAMES, pageVariables } from '../http/lists.ts'
import { actionRoute, deleteRoute, listRoute, readRoute, updateRoute } from '../http/resource-routes.ts'
import { created, type JsonObject, ok, type Route } from '../http/route.ts'
import { toEnum, toInstant, unixSeconds, unixSecondsOrNull } from '../http/values.ts'

const ENDPOINT = 'id url description eventTypes isActive disabledReason disabledAt failingSince previousSecretUntil createdAt'
const DELIVERY = `id status event { id type subject at data }
  attempts { at statusCode durationMs error responseStart }`

type EndpointData = Selected<'WebhookEndpoint', typeof ENDPOINT>

interface SecretData {
  readonly webhookEndpoint: EndpointData
  readonly secret: string
}

type DeliveryData = Selected<'WebhookDelivery', typeof DELIVERY>

const CREATE = gatewayOperation(`mutation CreateWebhook($input: CreateWebhookEndpointInput!) {
  createWebhookEndpoint(input: $input) { secret webhookEndpoint { ${ENDPOINT} } } }`)
const LIST = gatewayOperation(`query Webhooks($first: Int!, $after: String) {
  webhookEndpoints(first: $first, after: $after) { edges { node { ${ENDPOINT} } } ${PAGE_INFO} } }`)
const GET = gatewayOperation(`query Webhook($id: ID!) { webhookEndpoint(id: $id) { ${ENDPOINT} } }`)
const UPDATE = gatewayOperation(
  `mutation UpdateWebhook($input: UpdateWebhookEndpointInput!) { updateWebhookEndpoint(input: $input) { webhookEndpoint { ${ENDPOINT} } } }`,
)
const DELETE = gatewayOperation('mutation DeleteWebhook($id: ID!) { deleteWebhookEndpoint(id: $id) { webhookEndpoint { id } } }')
const ROTATE = gatewayOperation(
  `mutation RotateWebhook($id: ID!) { rotateWebhookSecret(id: $id) { secret webhookEndpoint { ${ENDPOINT} } } }`,
)
const PING = gatewayOperation(`mutation PingWebhook($id: ID!) { pingWebhookEndpoint(id: $id) { delivery { ${DELIVERY} } } }`)
const DELIVERIES =
  gatewayOperation(`query WebhookDeliveries($endpointId: ID!, $status: WebhookDeliveryStatus, $first: Int!, $after: String) {
  webhookDeliveries(endpointId: $endpointId, status: $status, first: $first, after: $after) { edges { cursor node { ${DELIVERY} } } ${PAGE_INFO} } }`)
const REDELIVER = gatewayOperation(
  `mutation RedeliverWebhook($input: RedeliverWebhookInput!) { redeliverWebhook(input: $input) { delivery { ${DELIVERY} } } }`,
)
const REDELIVER_SINCE = gatewayOperation(
  `mutation RedeliverWebhooks($input: RedeliverWebhooksSinceInput!) { redeliverWebhooksSince(input: $input) { count next } }`,
)

function toWebhook(data: EndpointData) {
  return {
    id: data.id,
    object: 'webhook',
    created_at: unixSeconds(data.createdAt),
    url: data.url,
    description: data.description,
    event_types: data.eventTypes,
    is_active: data.isActive,
    disabled_reason: data.disabledReason?.toLowerCase() ?? null,
    disabled_at: unixSecondsOrNull(data.disabledAt),
    failing_since: unixSecondsOrNull(data.failingSince),
    previous_secret_until: unixSecondsOrNull(data.previousSecretUntil),
  }
}

const withSecret = ({ webhookEndpoint, secret }: SecretData) => ({ ...toWebhook(webhookEndpoint), secret })

function toDelivery({ id, status, event, attempts }: DeliveryData) {
  return {
    id,
    object: 'webhook_delivery',
    created_at: unixSeconds(event.at),
    status: status.toLowerCase(),
    event: { id: event.id, type: event.type, subject: event.subject, timestamp: event.at, data: event.data },
    attempts: attempts.map(({ at, statusCode, durationMs, error, responseStart }) => ({
      at: unixSeconds(at),
      status_code: statusCode,
      duration_ms: durationMs,
      error,
      response_start: responseStart,
    })),
  }
}

/** Fields that were left out stay out; null is a value. */
function toInput({ url, event_types, description, is_active }: JsonObject): JsonObject {
  return { url, eventTypes: event_types, description, isActive: is_active }
}

export const webhookRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/webhooks',
    async handle({ execute, body }) {
      const { isActive: _, ...input } = toInput(body)
      const data = await execute(CREATE, { input })
      return created(withSecret(data.createWebhookEndpoint))
    },
  },
  listRoute('/v1/webhooks', LIST, (data) => data.webhookEndpoints, toWebhook),
  readRoute('/v1/webhooks/{id}', GET, 'webhook', ({ webhookEndpoint }) => webhookEndpoint && toWebhook(webhookEndpoint)),
  updateRoute('/v1/webhooks/{id}', UPDATE, toInput, (data) => toWebhook(data.updateWebhookEndpoint.webhookEndpoint)),
  deleteRoute('/v1/webhooks/{id}', DELETE, 'webhook', (data) => data.deleteWebhookEndpoint.webhookEndpoint.id),
  actionRoute('POST', '/v1/webhooks/{id}/rotate', ROTATE, (data) => withSecret(data.rotateWebhookSecret)),
  actionRoute('POST', '/v1/webhooks/{id}/ping', PING, (data) => toDelivery(data.pingWebhookEndpoint.delivery)),
  {
    method: 'GET',
    path: '/v1/webhooks/{id}/deliveries',
    async handle({ execute, params, query }) {
      const { status } = query
      const variables = { endpointId: params.id, ...pageVariables(query), ...(typeof status === 'string' && { status: toEnum(status) }) }
      const data = await execute(DELIVERIES, variables, PAGE_NAMES)
      return ok(listByCursor(data.webhookDeliveries, toDelivery))
    },
  },
  {
    method: 'POST',
    path: '/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver',
    async handle({ execute, params }) {
      const data = await execute(REDELIVER, {
        input: { endpointId: params.id, id: params.delivery_id },
      })
      return ok(toDelivery(data.redeliverWebhook.delivery))
    },
  },
  {
    method: 'POST',
    path: '/v1/webhooks/{id}/redeliver',
    async handle({ execute, params, body }) {
      const { since, after } = body as { readonly since: number; readonly after?: string | null }
      const data = await execute(REDELIVER_SINCE, {
        input: { endpointId: params.id, since: toInstant(since), after },
      })
      return ok({ object: 'webhook_redelivery', ...data.redeliverWebhooksSince })
    },
  },
]
