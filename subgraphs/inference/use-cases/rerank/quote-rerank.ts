import type { Model } from '../../domain/catalog.ts'
import { countRerank } from '../../domain/rerank/rerank-usage.ts'
import { consumeRequest } from '../calls/limited-call.ts'
import { listCandidates } from '../calls/with-fallbacks.ts'
import { getEnginePart, type RequestContext, type With } from '../deps.ts'
import { quoteHolds } from '../money/quote-holds.ts'
import { admitRerank, type RerankInput } from './create-rerank.ts'
import { ceilingOf } from './rerank.ts'

/** The most that one model would cost. Amounts are nano-USD. */
export interface QuotedReranker {
  readonly model: Model
  readonly tokens: number
  readonly searchUnits: number
  readonly heldTokens: number
  readonly heldSearchUnits: number
  readonly amount: bigint
  readonly isCovered: boolean
}

/**
 * Returns the amounts that a reranking would hold: for its model, then for each fallback in order. It holds nothing and
 * calls no engine. It counts as one request of the caller's key.
 * @throws {KisError} the error with which the request itself would be refused.
 * @throws {KisError} `service_unavailable`: billing does not answer.
 * @throws {KisError} `rate_limit_exceeded`: the caller's key has no request left.
 */
export async function quoteRerank(
  deps: With<'limits'>,
  requestContext: RequestContext,
  input: RerankInput,
): Promise<readonly QuotedReranker[]> {
  const { principal, request, model: requested } = admitRerank(deps, requestContext, input)
  await consumeRequest(deps, { caller: principal })
  const counted = listCandidates(deps, principal, requested, () => true).map((model) => {
    const { maxBatch } = getEnginePart(deps, model, 'rerank')
    return {
      model,
      count: countRerank(request.query, request.documents, maxBatch),
      ceiling: ceilingOf(model, request.query, request.documents, maxBatch),
    }
  })
  const quotes = await quoteHolds(deps, { ...requestContext, caller: principal }, counted)
  return counted.map(({ model, count, ceiling }, index) => ({
    model,
    tokens: count.inputTokens,
    searchUnits: count.searchUnits,
    heldTokens: ceiling.inputTokens,
    heldSearchUnits: ceiling.searchUnits,
    ...quotes[index]!,
  }))
}
