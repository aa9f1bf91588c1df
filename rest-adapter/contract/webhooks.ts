import type { Static } from '@sinclair/typebox'
import { anyObject, array, boolean, constant, define, integer, nullable, object, oneOf, operation, optional, string } from './build.ts'
import { After, Deletion, Limit, listOf, UnixSeconds } from './shared.ts'

export const WebhookUrl = define('WebhookUrl').as(
  string('The address: a public https URL on port 443, or any URL with a host and port that the operator has named.', {
    minLength: 1,
    maxLength: 2048,
  }),
)

export const WebhookEventTypes = define('WebhookEventTypes').as(
  array(string(undefined, { maxLength: 100 }), 'The types of events to send, such as `document.updated`. See Events.', {
    minItems: 1,
    maxItems: 50,
  }),
)

export const WebhookCreation = define('WebhookCreation').closed({
  url: WebhookUrl,
  event_types: WebhookEventTypes,
  description: optional(nullable(string('Your description: 1 to 100 characters.', { minLength: 1, maxLength: 100 }))),
})

export const WebhookChange = define('WebhookChange').closed(
  {
    url: optional(WebhookUrl),
    event_types: optional(WebhookEventTypes),
    description: optional(nullable(string('Your description: 1 to 100 characters. Null removes it.', { minLength: 1, maxLength: 100 }))),
    is_active: optional(boolean('Whether the service sends events. True also switches on a webhook that the service had switched off.')),
  },
  { minProperties: 1 },
)

export const Webhook = define('Webhook').object('An address that receives events.', {
  id: string('The id: `whe_…`.'),
  object: constant('webhook'),
  created_at: UnixSeconds,
  url: WebhookUrl,
  description: nullable(string('Your description. Null if there is none.')),
  event_types: WebhookEventTypes,
  is_active: boolean('Whether the service queues and sends events.'),
  disabled_reason: nullable(
    oneOf(
      ['gone', 'failing', 'backlog', 'residency'],
      'Why the service switched the webhook off. `gone`: it returned 410. `failing`: it accepted nothing for five days. ' +
        '`backlog`: more than 100,000 events waited. `residency`: the organization became `local_only`, and the operator has not ' +
        'named the host. Null if the webhook is on, or if you switched it off.',
    ),
  ),
  disabled_at: nullable(integer('When the webhook was switched off, in Unix seconds. Null if it is on.')),
  failing_since: nullable(integer('Since when every attempt has failed, in Unix seconds. Null if the last attempt succeeded.')),
  previous_secret_until: nullable(
    integer('Until when messages also carry a signature of the old secret, in Unix seconds. Null if none does.'),
  ),
})
export type Webhook = Static<typeof Webhook>

export const WebhookWithSecret = define('WebhookWithSecret').extend([Webhook], {
  secret: string('The secret, `whsec_…`, as libraries of Standard Webhooks expect it. The service never shows it again.'),
})

export const WebhookList = define('WebhookList').as(listOf(Webhook))

export const WebhookDelivery = define('WebhookDelivery').object('The delivery of one event to one webhook.', {
  id: string('The id: `whd_…`.'),
  object: constant('webhook_delivery'),
  created_at: UnixSeconds,
  status: oneOf(
    ['pending', 'delivered', 'failed'],
    'The status. `pending`: it waits for its turn or the next attempt. `delivered`: the endpoint returned 2xx. `failed`: all ' +
      '10 attempts failed.',
  ),
  event: object('The event.', {
    id: string('The id: `evt_…`. It is the `webhook-id` of every attempt and redelivery.'),
    type: string('The type, such as `document.updated`.'),
    subject: string(
      'What the event is about: the id of a document, a run or a usage record, or for a wallet the id of the organization. ' +
        'Events of one subject arrive in order.',
    ),
    timestamp: string('When it happened, in ISO 8601.'),
    data: anyObject('The `data` of the message, as the webhook of its type has it.'),
  }),
  attempts: array(
    object('One request to the endpoint.', {
      at: integer('When the service sent the request, in Unix seconds.'),
      status_code: nullable(integer('The status code of the response. Null if there was none.')),
      duration_ms: integer('How many milliseconds the attempt took.'),
      error: nullable(string('Why the attempt failed. Null if it succeeded.')),
      response_start: nullable(string('The first 500 bytes of the response. Null if there was none, or it is not text.')),
    }),
    'The 20 newest attempts, oldest first.',
  ),
})
export type WebhookDelivery = Static<typeof WebhookDelivery>

export const WebhookDeliveryList = define('WebhookDeliveryList').as(listOf(WebhookDelivery))

export const WebhookRedeliveryRequest = define('WebhookRedeliveryRequest').closed({
  since: integer('Sends events that happened at or after this time, in Unix seconds.', { minimum: 0, maximum: 253_402_300_799 }),
  after: optional(nullable(string('The `next` of the previous call. Leave it out to begin.', { maxLength: 200 }))),
})

export const WebhookRedelivery = define('WebhookRedelivery').object({
  object: constant('webhook_redelivery'),
  count: integer('The number of events queued.'),
  next: nullable(string('Pass it as `after` of the next call. Null if all events are queued.')),
})

export const WebhookId = string('The id of the webhook, `whe_…`.')
export const WebhookDeliveryId = string('The id of the delivery, `whd_…`.')

export const createWebhook = operation('createWebhook', 'POST', '/v1/webhooks', {
  tag: 'Webhooks',
  summary: 'Create a webhook',
  description:
    'Sends events to an address from now on. `secret` is never shown again. An organization has at most 20 webhooks. Requires ' +
    'the scope `admin`.',
  body: WebhookCreation,
  responses: { 201: { description: 'The webhook with its secret.', json: WebhookWithSecret } },
})

export const listWebhooks = operation('listWebhooks', 'GET', '/v1/webhooks', {
  tag: 'Webhooks',
  summary: 'List webhooks',
  description: 'Lists the webhooks of your organization, newest first. Requires the scope `admin`.',
  query: { limit: Limit, after: After },
  responses: { 200: { description: 'One page of the list.', json: WebhookList } },
})

export const getWebhook = operation('getWebhook', 'GET', '/v1/webhooks/{id}', {
  tag: 'Webhooks',
  summary: 'Get a webhook',
  description: 'Gets a webhook, without its secret. Requires the scope `admin`.',
  params: { id: WebhookId },
  responses: { 200: { description: 'The webhook.', json: Webhook } },
})

export const updateWebhook = operation('updateWebhook', 'PATCH', '/v1/webhooks/{id}', {
  tag: 'Webhooks',
  summary: 'Change a webhook, or switch it off and on',
  description:
    'Changes a webhook. Fields that you leave out keep their values. While a webhook is off, no new events are queued, and ' +
    'queued ones wait. When you switch it on, the service sends them. Requires the scope `admin`.',
  params: { id: WebhookId },
  body: WebhookChange,
  responses: { 200: { description: 'The webhook.', json: Webhook } },
})

export const deleteWebhook = operation('deleteWebhook', 'DELETE', '/v1/webhooks/{id}', {
  tag: 'Webhooks',
  summary: 'Delete a webhook',
  description: 'Deletes a webhook with its waiting events and its log. Requires the scope `admin`.',
  params: { id: WebhookId },
  responses: { 200: { description: 'The object was deleted.', json: Deletion } },
})

export const rotateWebhook = operation('rotateWebhook', 'POST', '/v1/webhooks/{id}/rotate', {
  tag: 'Webhooks',
  summary: 'Issue a new secret for a webhook',
  description:
    'Issues a new secret for a webhook. `secret` is never shown again. For 24 hours, messages also carry a signature of the old ' +
    'secret. Takes no body. Requires the scope `admin`.',
  params: { id: WebhookId },
  responses: { 200: { description: 'The webhook with its new secret.', json: WebhookWithSecret } },
})

export const pingWebhook = operation('pingWebhook', 'POST', '/v1/webhooks/{id}/ping', {
  tag: 'Webhooks',
  summary: 'Send a webhook a test event',
  description:
    'Sends an event `ping` to a webhook, whatever event types it receives. Pings within one minute are one event: a second ' +
    'ping sends the event again. The list of its deliveries shows the result. Fails with `invalid_request` if the webhook is ' +
    'off. Takes no body. Requires the scope `admin`.',
  params: { id: WebhookId },
  responses: { 200: { description: 'The delivery, which waits to be sent.', json: WebhookDelivery } },
})

export const listWebhookDeliveries = operation('listWebhookDeliveries', 'GET', '/v1/webhooks/{id}/deliveries', {
  tag: 'Webhooks',
  summary: 'List the deliveries of a webhook',
  description:
    'Lists what the service sent or will send to a webhook, newest event first. Deliveries are stored for 14 days. Requires the ' +
    'scope `admin`.',
  params: { id: WebhookId },
  query: {
    limit: Limit,
    after: After,
    status: optional(oneOf(['pending', 'delivered', 'failed'], 'Lists only deliveries with this status.')),
  },
  responses: { 200: { description: 'One page of the list.', json: WebhookDeliveryList } },
})

export const redeliverWebhook = operation('redeliverWebhook', 'POST', '/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver', {
  tag: 'Webhooks',
  summary: 'Send one event again',
  description:
    'Sends one event again, with the same `webhook-id`. An event that waits is sent now. Fails with `invalid_request` if the ' +
    'webhook is off. Takes no body. Requires the scope `admin`.',
  params: { id: WebhookId, delivery_id: WebhookDeliveryId },
  responses: { 200: { description: 'The delivery, which waits to be sent.', json: WebhookDelivery } },
})

export const redeliverWebhooksSince = operation('redeliverWebhooksSince', 'POST', '/v1/webhooks/{id}/redeliver', {
  tag: 'Webhooks',
  summary: 'Send all events since a time again',
  description:
    "Sends all events of the webhook's types since a point in time again, including those from while it was off. One call " +
    'queues at most 500 events: repeat it with `after` until `next` is null. The service stores events for 14 days. Fails with ' +
    '`invalid_request` if the webhook is off. Requires the scope `admin`.',
  params: { id: WebhookId },
  body: WebhookRedeliveryRequest,
  responses: { 200: { description: 'What was queued.', json: WebhookRedelivery } },
})
