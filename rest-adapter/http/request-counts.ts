import { gatewayOperation, type OperationText } from '../../schema/operations.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { LinkContext } from '../../subgraphs/common/link/link.ts'
import type { RestDeps } from './deps.ts'
import { LIMITS } from './rate-limits.ts'
import { askGateway } from './route.ts'

/** Counts what is no call of a model against the limits of its key. */

const OWED = gatewayOperation('query RateLimits { rateLimits { requests { limit } } }')
const COUNT = gatewayOperation(`mutation CountRequest { countRequest { ${LIMITS} } }`)
const COUNT_REFUSED = gatewayOperation(`mutation CountRefusedRequest { countRequest(isRefused: true) { ${LIMITS} } }`)

type Gateway = RestDeps['gateway']
type Context = LinkContext<string | null>

/** @throws {KisError} `rate_limit_exceeded`: refused bodies have taken more requests than the key has */
export async function requireNoDebt(gateway: Gateway, context: Context): Promise<void> {
  await unlessAway(gateway, OWED, context)
}

/**
 * Returns what the key has left.
 * @throws {KisError} `rate_limit_exceeded`: nothing
 */
export async function countRequest(gateway: Gateway, context: Context) {
  return (await unlessAway(gateway, COUNT, context))?.countRequest
}

/** Counts a request whose large body was read, and adds to its error what the key has left. */
export async function countRefused(gateway: Gateway, context: Context, error: KisError): Promise<void> {
  error.rateLimits = (await unlessAway(gateway, COUNT_REFUSED, context))?.countRequest ?? null
}

/** While the part that counts does not answer, requests go on without. */
async function unlessAway<Data>(gateway: Gateway, query: OperationText<Data, never>, context: Context): Promise<Data | undefined> {
  try {
    return await askGateway(gateway, { query }, context)
  } catch (error) {
    if (error instanceof KisError && error.code === 'service_unavailable') return undefined
    throw error
  }
}
