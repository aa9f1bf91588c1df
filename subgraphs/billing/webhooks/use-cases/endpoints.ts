import { EVENTS, type EventType } from '../../../../schema/events.ts'
import { listById } from '../../../common/documents/lists.ts'
import { KisError, NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection, PageArguments } from '../../../common/link/connection.ts'
import { pingEventId } from '../../ledger/domain/ids.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { WebhookEndpoint } from '../domain/records.ts'
import { newNonce, ROTATION_MS } from '../domain/signature.ts'
import { checkDescription, checkEventTypes, checkUrl } from './endpoint-input.ts'
import { secretOf } from './endpoint-secrets.ts'

/** Endpoints of an organization. Each event is written once for each endpoint that wants it. */
export const MAX_ENDPOINTS = 20
const ENDPOINT_ID = /^whe_[0-9a-f]{32}$/
/** Queues that become due when an endpoint is switched on again. The others become due within a day. */
const MAX_WOKEN_LANES = 1_000
const PAGE_LANES = 100
/** Attempts of a change while other calls change the same endpoint. */
const MAX_ATTEMPTS = 5

interface EndpointInput {
  readonly url: string
  readonly eventTypes: readonly string[]
  readonly description?: string | null
}

/** An endpoint with its secret, which is returned only here and at its rotation. */
interface EndpointWithSecret {
  readonly webhookEndpoint: WebhookEndpoint
  readonly secret: string
}

/**
 * Creates an endpoint, which gets the events of its types from now on.
 * @throws {KisError} the input is wrong, or there are too many endpoints
 */
export async function createEndpoint(deps: BillingDeps, principal: Principal, input: EndpointInput): Promise<EndpointWithSecret> {
  const { organizationId } = requireScope(principal, 'admin')
  const { webhookEndpoints } = deps.collections
  const eventTypes = checkEventTypes(input.eventTypes)
  const webhookEndpoint: WebhookEndpoint = {
    _id: deps.ids('whe'),
    organizationId,
    url: await checkUrl(deps, organizationId, input.url),
    description: checkDescription(input.description ?? null),
    eventTypes,
    isActive: true,
    disabledReason: null,
    disabledAt: null,
    failingSince: null,
    nonce: newNonce(),
    previousNonce: null,
    previousUntil: null,
    createdAt: deps.clock.now(),
  }
  if ((await webhookEndpoints.countDocuments({ organizationId })) >= MAX_ENDPOINTS)
    throw new KisError('invalid_request', `An organization has at most ${MAX_ENDPOINTS} webhook endpoints.`)
  await openFeeds(deps, organizationId, eventTypes)
  await webhookEndpoints.insertOne(webhookEndpoint)
  return { webhookEndpoint, secret: secretOf(deps, webhookEndpoint) }
}

/**
 * Changes an endpoint. Absent fields stay. Switching it on also clears the reason why the service had switched it off.
 * @throws {KisError} the input is wrong, or there is no such endpoint
 */
export async function updateEndpoint(
  deps: BillingDeps,
  principal: Principal,
  {
    id,
    isActive,
    ...input
  }: {
    readonly id: string
    readonly url?: string | null
    readonly eventTypes?: readonly string[] | null
    readonly description?: string | null
    readonly isActive?: boolean | null
  },
): Promise<WebhookEndpoint> {
  const { organizationId } = requireScope(principal, 'admin')
  const before = await getEndpoint(deps, principal, id)
  const eventTypes = input.eventTypes ? checkEventTypes(input.eventTypes) : before.eventTypes
  const url = input.url ? await checkUrl(deps, organizationId, input.url) : before.url
  if (isActive && !before.isActive) await checkUrl(deps, organizationId, url)
  await openFeeds(deps, organizationId, eventTypes)
  const changed = await deps.collections.webhookEndpoints.findOneAndUpdate(
    { _id: id, organizationId },
    {
      $set: {
        url,
        eventTypes,
        ...(input.description !== undefined && { description: checkDescription(input.description) }),
        ...(isActive === true && { isActive, disabledReason: null, disabledAt: null, failingSince: null }),
        ...(isActive === false && before.isActive && { isActive, disabledReason: null, disabledAt: deps.clock.now() }),
      },
    },
  )
  if (!changed) throw new NotFound('webhook', id, 'id')
  if (isActive && !before.isActive) await wakeLanes(deps, id)
  return changed
}

/**
 * Issues a new secret for the endpoint. The earlier secret also signs for a day.
 * @throws {NotFound} there is no such endpoint
 */
export async function rotateSecret(deps: BillingDeps, principal: Principal, id: string): Promise<EndpointWithSecret> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const before = await getEndpoint(deps, principal, id)
    const { nonce: previousNonce, organizationId, sealedSecret } = before
    const previousUntil = new Date(deps.clock.now().getTime() + ROTATION_MS)
    const webhookEndpoint = await deps.collections.webhookEndpoints.findOneAndUpdate(
      { _id: id, organizationId, nonce: previousNonce },
      {
        $set: { nonce: newNonce(), previousNonce, previousUntil, ...(sealedSecret && { sealedPreviousSecret: sealedSecret }) },
        $unset: { sealedSecret: '', ...(!sealedSecret && { sealedPreviousSecret: '' }) },
      },
    )
    if (webhookEndpoint) return { webhookEndpoint, secret: secretOf(deps, webhookEndpoint) }
  }
  throw new KisError('service_unavailable', 'Too many requests change the endpoint at once.', { retryAfterMs: 1_000 })
}

/**
 * Deletes an endpoint and its log. Nothing more is sent to it.
 * @throws {NotFound} there is no such endpoint, or it was deleted meanwhile
 */
export async function deleteEndpoint({ collections, clock }: BillingDeps, principal: Principal, id: string): Promise<WebhookEndpoint> {
  const { organizationId } = requireScope(principal, 'admin')
  const deleted = await collections.webhookEndpoints.findOneAndDelete({ _id: id, organizationId })
  if (!deleted) throw new NotFound('webhook', id, 'id')
  await purgeQueue({ collections }, id)
  // Deleting the ping ensures that deleted endpoints leave no more pings than existing ones.
  await collections.webhookEvents.findOneAndDelete({ _id: pingEventId(organizationId, id, clock.now()) })
  return deleted
}

/**
 * Deletes the queue and the deliveries of a deleted endpoint. Idempotent. The sender finds what a crash leaves behind.
 */
export async function purgeQueue({ collections }: Pick<BillingDeps, 'collections'>, endpointId: string): Promise<void> {
  while ((await collections.webhookDeliveries.deleteMany({ endpointId })) > 0);
  while ((await collections.webhookLanes.deleteMany({ endpointId })) > 0);
}

/** @throws {NotFound} there is none, or it belongs to another organization */
export async function getEndpoint({ collections }: BillingDeps, principal: Principal, id: string): Promise<WebhookEndpoint> {
  const found = await findEndpoint({ collections }, principal, id)
  if (!found) throw new NotFound('webhook', id, 'id')
  return found
}

/** Returns an endpoint of the caller's organization; null when there is none. */
export async function findEndpoint(
  { collections }: Pick<BillingDeps, 'collections'>,
  principal: Principal,
  id: string,
): Promise<WebhookEndpoint | null> {
  const { organizationId } = requireScope(principal, 'admin')
  return collections.webhookEndpoints.findOne({ _id: id, organizationId })
}

/** Lists the endpoints, newest first. */
export async function listEndpoints(
  { collections }: BillingDeps,
  principal: Principal,
  page: PageArguments,
): Promise<Connection<WebhookEndpoint>> {
  const { organizationId } = requireScope(principal, 'admin')
  return listById(collections.webhookEndpoints, { organizationId }, page, ENDPOINT_ID)
}

/**
 * Opens the feeds of the endpoint's types. Feeds stay: an endpoint may be created while the last one is being deleted,
 * and needs them.
 */
async function openFeeds({ collections, clock }: BillingDeps, organizationId: string, eventTypes: readonly EventType[]): Promise<void> {
  const sources = new Set(eventTypes.flatMap((type) => EVENTS[type] ?? []))
  const since = clock.now()
  await collections.webhookFeeds.insertMissing(
    [...sources].map((source) => ({ _id: `${source}_${organizationId}`, source, organizationId, cursor: null, since })),
  )
}

async function wakeLanes({ collections, clock, webhooksDue }: BillingDeps, endpointId: string): Promise<void> {
  const dueAt = clock.now()
  for (let woken = 0; woken < MAX_WOKEN_LANES; ) {
    const lanes = await collections.webhookLanes.find(
      { endpointId, 'job.dueAt': { $gt: dueAt } },
      { sort: { 'job.dueAt': 1 }, limit: PAGE_LANES },
    )
    for (const { _id } of lanes)
      await collections.webhookLanes.findOneAndUpdate({ _id, 'job.lease': null }, { $set: { 'job.dueAt': dueAt } })
    woken += PAGE_LANES
    if (lanes.length < PAGE_LANES) break
  }
  webhooksDue()
}
