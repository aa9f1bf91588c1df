import { billingOperation } from '../../../schema/operations.ts'
import type { ServicePrincipal } from '../identity/principal.ts'
import { type Link, type LinkContext, request } from '../link/link.ts'
import type { WebhookInbox } from './webhook-events.ts'

const FEEDS = billingOperation('query WebhookFeeds($after: ID) { webhookFeeds(after: $after) { organizationId cursor since } }')
const ACCEPT = billingOperation('mutation AcceptWebhookEvents($input: AcceptWebhookEventsInput!) { acceptWebhookEvents(input: $input) }')

/** Billing's inbox for the events of this service. */
export function inboxOver(link: Link, service: ServicePrincipal['service']): WebhookInbox {
  const buildContext = (signal: AbortSignal): LinkContext => ({ caller: { service }, requestId: 'webhooks', signal })
  return {
    async feeds(after, signal) {
      const { webhookFeeds } = await request(link, { query: FEEDS, variables: { after } }, buildContext(signal))
      return webhookFeeds.map(({ since, ...feed }) => ({ ...feed, since: new Date(since) }))
    },

    async accept({ events, ...page }, signal) {
      const input = { ...page, events: events.map(({ at, ...event }) => ({ ...event, at: at.toISOString() })) }
      await request(link, { query: ACCEPT, variables: { input } }, buildContext(signal))
    },
  }
}
