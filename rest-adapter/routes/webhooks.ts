import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/webhooks.ts'
import { listByCursor, PAGE_INFO, PAGE_NAMES, pageVariables } from '../http/lists.ts'
import { actionRoute, deleteRoute, listRoute, readRoute, updateRoute } from '../http/resource-routes.ts'
import { created, type JsonObject, ok, type Route, route } from '../http/route.ts'
import { lowerCase, toEnum, toInstant, unixSeconds, unixSecondsOrNull } from '../http/values.ts'

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

function toWebhook(data: EndpointData): operations.Webhook {
  return {
    id: data.id,
    object: 'webhook',
    created_at: unixSeconds(data.createdAt),
    url: data.url,
    description: data.description,
    event_types: data.eventTypes,
    is_active: data.isActive,
    disabled_reason: lowerCase(data.disabledReason),
    disabled_at: unixSecondsOrNull(data.disabledAt),
    failing_since: unixSecondsOrNull(data.failingSince),
    previous_secret_until: unixSecondsOrNull(data.previousSecretUntil),
  }
}

const withSecret = ({ webhookEndpoint, secret }: SecretData) => ({ ...toWebhook(webhookEndpoint), secret })

function toDelivery({ id, status, event, attempts }: DeliveryData): operations.WebhookDelivery {
  return {
    id,
    object: 'webhook_delivery',
    created_at: unixSeconds(event.at),
    status: lowerCase(status),
    event: { id: event.id, type: event.type, subject: event.subject, timestamp: event.at, data: event.data as JsonObject },
    attempts: attempts.map(({ at, statusCode, durationMs, error, responseStart }) => ({
      at: unixSeconds(at),
      status_code: statusCode,
      duration_ms: durationMs,
      error,
      response_start: responseStart,
    })),
  }
}

/** Converts the body to the input. Absent fields stay absent; null is a value. */
function toInput({ url, event_types, description, is_active }: JsonObject): JsonObject {
  return { url, eventTypes: event_types, description, isActive: is_active }
}

export const webhookRoutes: readonly Route[] = [
  route({
    operation: operations.createWebhook,
    async handle({ execute, body }) {
      const { isActive: _, ...input } = toInput(body)
      const data = await execute(CREATE, { input })
      return created(withSecret(data.createWebhookEndpoint))
    },
  }),
  listRoute(operations.listWebhooks, LIST, (data) => data.webhookEndpoints, toWebhook),
  readRoute(operations.getWebhook, GET, 'webhook', ({ webhookEndpoint }) => webhookEndpoint && toWebhook(webhookEndpoint)),
  updateRoute(operations.updateWebhook, UPDATE, toInput, (data) => toWebhook(data.updateWebhookEndpoint.webhookEndpoint)),
  deleteRoute(operations.deleteWebhook, DELETE, 'webhook', (data) => data.deleteWebhookEndpoint.webhookEndpoint.id),
  actionRoute(operations.rotateWebhook, ROTATE, (data) => withSecret(data.rotateWebhookSecret)),
  actionRoute(operations.pingWebhook, PING, (data) => toDelivery(data.pingWebhookEndpoint.delivery)),
  route({
    operation: operations.listWebhookDeliveries,
    async handle({ execute, params, query }) {
      const { status } = query
      const variables = { endpointId: params.id, ...pageVariables(query), ...(typeof status === 'string' && { status: toEnum(status) }) }
      const data = await execute(DELIVERIES, variables, PAGE_NAMES)
      return ok(listByCursor(data.webhookDeliveries, toDelivery))
    },
  }),
  route({
    operation: operations.redeliverWebhook,
    async handle({ execute, params }) {
      const data = await execute(REDELIVER, {
        input: { endpointId: params.id, id: params.delivery_id },
      })
      return ok(toDelivery(data.redeliverWebhook.delivery))
    },
  }),
  route({
    operation: operations.redeliverWebhooksSince,
    async handle({ execute, params, body }) {
      const { since, after } = body as { readonly since: number; readonly after?: string | null }
      const data = await execute(REDELIVER_SINCE, {
        input: { endpointId: params.id, since: toInstant(since), after },
      })
      return ok({ object: 'webhook_redelivery', ...data.redeliverWebhooksSince })
    },
  }),
]
