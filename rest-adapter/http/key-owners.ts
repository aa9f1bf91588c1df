import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { gatewayOperation } from '../../schema/operations.ts'
import { isAbort, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import type { RestDeps } from './deps.ts'
import { executeOnGateway } from './route.ts'

/**
 * How long an owner is remembered. The gateway checks each call again, so a remembered key only decides whether a body
 * is read. A revoked key stops working everywhere within 5 s.
 */
const TTL_MS = 3_500
const MAX_KEYS = 10_000
/** As long as the gateway itself waits for this answer. */
const TIMEOUT_MS = 4_000

const OWNER = gatewayOperation('query OrganizationOfKey { organization { id } }')

/** Finds the organization of a key before a large body is read, and remembers it for seconds. */
export class KeyOwners {
  readonly #gateway: RestDeps['gateway']
  readonly #clock: Clock
  readonly #known = new LRUCache<string, { readonly organizationId: string; readonly requestedAt: number }>({ max: MAX_KEYS })

  constructor(gateway: RestDeps['gateway'], clock: Clock) {
    this.#gateway = gateway
    this.#clock = clock
  }

  /** @throws {KisError} the gateway refuses the key, or does not answer */
  async of({ rest }: FastifyRequest): Promise<string> {
    const { apiKey, id: requestId } = rest
    const now = this.#clock.now().getTime()
    const known = this.#known.get(apiKey!)
    // Absolute, because a clock that was set back must not make an answer last longer.
    if (known && Math.abs(now - known.requestedAt) < TTL_MS) return known.organizationId
    rest.keyJudged = true
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    const signal = AbortSignal.any([rest.signal, timeout])
    const pending = executeOnGateway(this.#gateway, { query: OWNER }, { caller: apiKey, requestId, signal })
    const { organization } = await pending.catch((error) => {
      throw timeout.aborted && isAbort(error) ? new ServiceUnavailable('Authentication', { cause: error }) : error
    })
    this.#known.set(apiKey!, { organizationId: organization.id, requestedAt: now })
    return organization.id
  }
}
