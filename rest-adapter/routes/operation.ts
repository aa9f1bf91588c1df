import { gatewayOperation } from '../../schema/operations.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import * as operations from '../contract/organizations.ts'
import { wholeList } from '../http/lists.ts'
import { type Call, ok, type Route, route } from '../http/route.ts'
import { unixSecondsOrNull } from '../http/values.ts'
import { LIMITS, toLimits } from './organization.ts'

const PLANS = gatewayOperation(`query Plans { plans { code ${LIMITS} } }`)
const QUEUES = gatewayOperation(`query IngestionQueues($after: String) {
  ingestionQueues(after: $after) { next queues { organization { id } due underWay dueSince } } }`)

/** One operation per part: a part that does not respond fails alone. */
const HEALTH = {
  billing: gatewayOperation('query BillingHealth { health: billingHealth { isReady problems } }'),
  inference: gatewayOperation('query InferenceHealth { health: inferenceHealth { isReady problems } }'),
  knowledge: gatewayOperation('query KnowledgeHealth { health: knowledgeHealth { isReady problems } }'),
} as const

const PARTS = ['billing', 'inference', 'knowledge'] as const

/** Reads the health of a part. One that does not respond is not ready, with the gateway's message as the reason. */
async function readHealth(execute: Call['execute'], part: keyof typeof HEALTH) {
  try {
    const { health } = await execute(HEALTH[part])
    return { is_ready: health.isReady, problems: health.problems }
  } catch (error) {
    if (error instanceof KisError && error.code === 'service_unavailable') return { is_ready: false, problems: [error.message] }
    throw error
  }
}

/** Routes for the operator about the service as a whole. */
export const operationRoutes: readonly Route[] = [
  route({
    operation: operations.listPlans,
    async handle({ execute }) {
      const { plans } = await execute(PLANS)
      const items = plans.map(({ code, ...limits }) => ({ object: 'plan' as const, code, limits: toLimits(limits) }))
      return ok(wholeList(items, ({ code }) => code))
    },
  }),
  route({
    operation: operations.listIngestionQueues,
    async handle({ execute, query }) {
      const { next, queues } = (await execute(QUEUES, { after: query.after })).ingestionQueues
      const items = queues.map(({ organization, due, underWay, dueSince }) => ({
        object: 'ingestion_queue' as const,
        organization_id: organization.id,
        due,
        under_way: underWay,
        due_since: unixSecondsOrNull(dueSince),
      }))
      // The next page starts after the last organization of this one, even if that one has nothing in the queue any
      // more.
      return ok({ ...wholeList(items, ({ organization_id }) => organization_id, next !== null), ...(next !== null && { last_id: next }) })
    },
  }),
  route({
    operation: operations.getHealth,
    async handle({ execute }) {
      const parts = await Promise.all(
        PARTS.map(async (part) => ({ object: 'part_health' as const, part, ...(await readHealth(execute, part)) })),
      )
      return ok(wholeList(parts, ({ part }) => part))
    },
  }),
]
