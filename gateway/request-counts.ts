import { inferenceOperation, type OperationText } from '../schema/operations.ts'
import { KisError } from '../subgraphs/common/errors.ts'
import { hasRequestLimit, type Principal } from '../subgraphs/common/identity/principal.ts'
import { type Link, type LinkContext, request } from '../subgraphs/common/link/link.ts'

const OWED = inferenceOperation('query RateLimits { rateLimits { requests { limit } } }')
const COUNT_REFUSED = inferenceOperation('mutation CountRefusedRequest { countRequest(isRefused: true) { requests { limit } } }')

/** As long as the gateway waits for the answer about a key. */
const TIMEOUT_MS = 2_000

type Context = LinkContext<Principal>

/** Counts requests whose large bodies were refused against the limits of their keys. */
export class RequestCounts {
  readonly #inference: Link

  constructor(inference: Link) {
    this.#inference = inference
  }

  /** @throws {KisError} `rate_limit_exceeded`: refused bodies have taken more requests than the key has */
  requireNoDebt(context: Context): Promise<void> {
    return this.#ask(OWED, context)
  }

  countRefused(context: Context): Promise<void> {
    return this.#ask(COUNT_REFUSED, context)
  }

  /** While inference does not answer, requests go on without. */
  async #ask(query: OperationText<unknown, Record<string, never>>, { caller, requestId }: Context): Promise<void> {
    if (!hasRequestLimit(caller)) return
    // Not the signal of the request: a caller who has left counts as well.
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    await request(this.#inference, { query, variables: {} }, { caller, requestId, signal }).catch((error) => {
      if (error instanceof KisError && error.code === 'rate_limit_exceeded') throw error
    })
  }
}
