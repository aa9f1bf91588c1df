import type { EventSource } from '../../../schema/events.ts'
import { KisError } from '../../common/errors.ts'
import { type Caller, requirePrincipal, requireService } from '../../common/identity/principal.ts'
import { acceptEvents } from '../webhooks/use-cases/accept-events.ts'
import {
  createEndpoint,
  deleteEndpoint,
  findEndpoint,
  listEndpoints,
  rotateSecret,
  updateEndpoint,
} from '../webhooks/use-cases/endpoints.ts'
import { listFeeds } from '../webhooks/use-cases/feeds.ts'
import { findDelivery, listDeliveries } from '../webhooks/use-cases/list-deliveries.ts'
import { pingEndpoint, redeliver, redeliverSince } from '../webhooks/use-cases/redeliver.ts'
import type { MutationResolvers, QueryResolvers, Resolvers } from './generated.ts'

/** A service may only deliver its own events. */
function requireSource(caller: Caller | null): EventSource {
  const { service } = requireService(caller)
  if (service !== 'knowledge' && service !== 'inference') throw new KisError('permission_denied', `${service} has no events for webhooks.`)
  return service
}

export const webhookQueries: QueryResolvers = {
  webhookEndpoints(_parent, args, { deps, caller }) {
    return listEndpoints(deps, requirePrincipal(caller), args)
  },

  webhookEndpoint(_parent, { id }, { deps, caller }) {
    return findEndpoint(deps, requirePrincipal(caller), id)
  },

  webhookDeliveries(_parent, args, { deps, caller }) {
    return listDeliveries(deps, requirePrincipal(caller), args)
  },

  webhookFeeds(_parent, { after }, { deps, caller }) {
    return listFeeds(deps, requireSource(caller), after ?? null)
  },
}

export const webhookMutations: MutationResolvers = {
  createWebhookEndpoint(_parent, { input }, { deps, caller }) {
    return createEndpoint(deps, requirePrincipal(caller), input)
  },

  async updateWebhookEndpoint(_parent, { input }, { deps, caller }) {
    return { webhookEndpoint: await updateEndpoint(deps, requirePrincipal(caller), input) }
  },

  async deleteWebhookEndpoint(_parent, { id }, { deps, caller }) {
    return { webhookEndpoint: await deleteEndpoint(deps, requirePrincipal(caller), id) }
  },

  rotateWebhookSecret(_parent, { id }, { deps, caller }) {
    return rotateSecret(deps, requirePrincipal(caller), id)
  },

  async pingWebhookEndpoint(_parent, { id }, { deps, caller }) {
    return { delivery: await pingEndpoint(deps, requirePrincipal(caller), id) }
  },

  async redeliverWebhook(_parent, { input }, { deps, caller }) {
    return { delivery: await redeliver(deps, requirePrincipal(caller), input) }
  },

  redeliverWebhooksSince(_parent, { input }, { deps, caller }) {
    return redeliverSince(deps, requirePrincipal(caller), input)
  },

  acceptWebhookEvents(_parent, { input }, { deps, caller }) {
    return acceptEvents(deps, requireSource(caller), { ...input, after: input.after ?? null })
  },
}

export const webhookTypes: Resolvers = {
  WebhookEndpoint: {
    __resolveReference({ id }, { deps, caller }) {
      return findEndpoint(deps, requirePrincipal(caller), id)
    },
    id: ({ _id }) => _id,
    previousSecretUntil: ({ previousUntil }, _args, { deps }) => (previousUntil && previousUntil > deps.clock.now() ? previousUntil : null),
  },

  WebhookDelivery: {
    __resolveReference({ id }, { deps, caller }) {
      return findDelivery(deps, requirePrincipal(caller), id)
    },
    id: ({ delivery }) => delivery._id,
    status: ({ delivery }) => delivery.status,
    attempts: ({ delivery }) => delivery.attempts,
    event: ({ event }) => ({ ...event, id: event._id, data: JSON.parse(event.data) }),
  },
}
