import type { EventSource } from '../../../schema/events.ts'
import { KisError } from '../../common/errors.ts'
import { type Caller, requirePrincipal, requireService } from '../../common/identity/principal.ts'
import type { PageArguments } from '../../common/link/connection.ts'
import type { ResolverContext, Resolvers } from '../../common/link/subgraph.ts'
import type { BillingDeps } from '../use-cases/deps.ts'
import type { DeliveryStatus, WebhookEndpoint } from '../webhooks/domain/records.ts'
import { acceptEvents, type EventPage } from '../webhooks/use-cases/accept-events.ts'
import {
  createEndpoint,
  deleteEndpoint,
  type EndpointInput,
  findEndpoint,
  listEndpoints,
  rotateSecret,
  updateEndpoint,
} from '../webhooks/use-cases/endpoints.ts'
import { listFeeds } from '../webhooks/use-cases/feeds.ts'
import { type LoggedDelivery, listDeliveries } from '../webhooks/use-cases/list-deliveries.ts'
import { pingEndpoint, redeliver, redeliverSince } from '../webhooks/use-cases/redeliver.ts'

type Context = ResolverContext<BillingDeps>
type Id = { readonly id: string }
type Input<T> = { readonly input: T }

/** Services hand over their own events and no others. */
function sourceOf(caller: Caller | null): EventSource {
  const { service } = requireService(caller)
  if (service !== 'knowledge' && service !== 'inference') throw new KisError('permission_denied', `${service} has no events for webhooks.`)
  return service
}

export const webhookQueries = {
  webhookEndpoints(_parent: unknown, args: PageArguments, { deps, caller }: Context) {
    return listEndpoints(deps, requirePrincipal(caller), args)
  },

  webhookEndpoint(_parent: unknown, { id }: Id, { deps, caller }: Context) {
    return findEndpoint(deps, requirePrincipal(caller), id)
  },

  webhookDeliveries(
    _parent: unknown,
    args: PageArguments & { readonly endpointId: string; readonly status?: DeliveryStatus | null },
    { deps, caller }: Context,
  ) {
    return listDeliveries(deps, requirePrincipal(caller), args)
  },

  webhookFeeds(_parent: unknown, { after }: { readonly after?: string | null }, { deps, caller }: Context) {
    return listFeeds(deps, sourceOf(caller), after ?? null)
  },
}

export const webhookMutations = {
  createWebhookEndpoint(_parent: unknown, { input }: Input<EndpointInput>, { deps, caller }: Context) {
    return createEndpoint(deps, requirePrincipal(caller), input)
  },

  async updateWebhookEndpoint(_parent: unknown, { input }: Input<Parameters<typeof updateEndpoint>[2]>, { deps, caller }: Context) {
    return { webhookEndpoint: await updateEndpoint(deps, requirePrincipal(caller), input) }
  },

  async deleteWebhookEndpoint(_parent: unknown, { id }: Id, { deps, caller }: Context) {
    return { webhookEndpoint: await deleteEndpoint(deps, requirePrincipal(caller), id) }
  },

  rotateWebhookSecret(_parent: unknown, { id }: Id, { deps, caller }: Context) {
    return rotateSecret(deps, requirePrincipal(caller), id)
  },

  async pingWebhookEndpoint(_parent: unknown, { id }: Id, { deps, caller }: Context) {
    return { delivery: await pingEndpoint(deps, requirePrincipal(caller), id) }
  },

  async redeliverWebhook(_parent: unknown, { input }: Input<Parameters<typeof redeliver>[2]>, { deps, caller }: Context) {
    return { delivery: await redeliver(deps, requirePrincipal(caller), input) }
  },

  redeliverWebhooksSince(_parent: unknown, { input }: Input<Parameters<typeof redeliverSince>[2]>, { deps, caller }: Context) {
    return redeliverSince(deps, requirePrincipal(caller), input)
  },

  acceptWebhookEvents(
    _parent: unknown,
    { input }: Input<Omit<EventPage, 'after'> & { readonly after?: number | null }>,
    { deps, caller }: Context,
  ) {
    return acceptEvents(deps, sourceOf(caller), { ...input, after: input.after ?? null })
  },
}

export const webhookTypes: Resolvers<BillingDeps> = {
  WebhookEndpoint: {
    id: ({ _id }: WebhookEndpoint) => _id,
    previousSecretUntil: ({ previousUntil }: WebhookEndpoint, _args: object, { deps }: Context) =>
      previousUntil && previousUntil > deps.clock.now() ? previousUntil : null,
  },

  WebhookDelivery: {
    id: ({ delivery }: LoggedDelivery) => delivery._id,
    status: ({ delivery }: LoggedDelivery) => delivery.status,
    attempts: ({ delivery }: LoggedDelivery) => delivery.attempts,
    event: ({ event }: LoggedDelivery) => ({ ...event, id: event._id, data: JSON.parse(event.data) }),
  },
}
