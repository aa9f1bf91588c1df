import type { Model } from '../../domain/catalog.ts'
import { countRerank } from '../../domain/rerank/rerank-usage.ts'
import { listCandidates } from '../calls/first-to-answer.ts'
import { type AskContext, getEnginePart, type Ports } from '../deps.ts'
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
 * calls no engine.
 * @throws {KisError} the error with which the request itself would be refused.
 * @throws {KisError} `service_unavailable`: billing does not answer.
 */
export async function quoteRerank(deps: Ports, ask: AskContext, input: RerankInput): Promise<readonly QuotedReranker[]> {
  const { principal, request, model: asked } = admitRerank(deps, ask, input)
  const counted = listCandidates(deps, principal, asked, () => true).map((model) => {
    const { maxBatch } = getEnginePart(deps, model, 'rerank')
    return {
      model,
      count: countRerank(request.query, request.documents, maxBatch),
      ceiling: ceilingOf(model, request.query, request.documents, maxBatch),
    }
  })
  const quotes = await quoteHolds(deps, { ...ask, caller: principal }, counted)
  return counted.map(({ model, count, ceiling }, index) => ({
    model,
    tokens: count.inputTokens,
    searchUnits: count.searchUnits,
    heldTokens: ceiling.inputTokens,
    heldSearchUnits: ceiling.searchUnits,
    ...quotes[index]!,
  }))
}
