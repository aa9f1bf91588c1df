import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { gatewayOperation } from '../../schema/operations.ts'
import { isAbort, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import type { RestDeps } from './deps.ts'
import { askGateway } from './route.ts'

/** The gateway judges each call again, so that this decides about nothing but the reading of its body. A revoked key is dead everywhere within 5 s. */
const TTL_MS = 3_500
const MAX_KEYS = 10_000
/** As long as the gateway itself waits for a judgement. */
const TIMEOUT_MS = 2_000

const OWNER = gatewayOperation('{ organization { id } }')

/** Whose a key is, remembered for seconds: asked before a large body is read. */
export class KeyOwners {
  readonly #gateway: RestDeps['gateway']
  readonly #clock: Clock
  readonly #known = new LRUCache<string, { readonly organizationId: string; readonly askedAt: number }>({ max: MAX_KEYS })

  constructor(gateway: RestDeps['gateway'], clock: Clock) {
    this.#gateway = gateway
    this.#clock = clock
  }

  /** @throws {KisError} the gateway does not take the key, or says nothing. */
  async of({ rest }: FastifyRequest): Promise<string> {
    const { apiKey, id: requestId } = rest
    const now = this.#clock.now().getTime()
    const known = this.#known.get(apiKey!)
    // A clock that was set back makes none of them younger.
    if (known && Math.abs(now - known.askedAt) < TTL_MS) return known.organizationId
    rest.keyJudged = true
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    const signal = AbortSignal.any([rest.signal, timeout])
    const asking = askGateway(this.#gateway, { query: OWNER }, { caller: apiKey, requestId, signal })
    const { organization } = await asking.catch((error) => {
      throw timeout.aborted && isAbort(error) ? new ServiceUnavailable('Authentication', { cause: error }) : error
    })
    this.#known.set(apiKey!, { organizationId: organization.id, askedAt: now })
    return organization.id
  }
}
