import type { RateLimits } from '../../../../schema/errors.ts'
import { checkRerankRequest, type RerankRequest } from '../../domain/rerank/rerank-request.ts'
import { countRerank } from '../../domain/rerank/rerank-usage.ts'
import { type Admitted, admit } from '../calls/admit.ts'
import { limited } from '../calls/limited-call.ts'
import type { AskContext, CallDeps } from '../deps.ts'
import { type Reranked, rerank } from './rerank.ts'

export interface RerankAnswer extends Reranked {
  readonly rateLimits: RateLimits | null
}

export type RerankInput = Parameters<typeof checkRerankRequest>[0]

/**
 * Orders documents by their relevance to a query.
 * @throws {KisError} the error of a check or of the engine; nothing is charged.
 */
export function createRerank(deps: CallDeps, ask: AskContext, input: RerankInput): Promise<RerankAnswer> {
  return limited(deps, ask, 'embeddings', async (call, asking) => {
    const { principal, request, model } = admitRerank(deps, asking, input)
    const { inputTokens } = countRerank(request.query, request.documents, request.documents.length)
    return rerank(deps, await call.admit(principal, inputTokens), model, request)
  })
}

/** @throws {KisError} the error of a check */
export function admitRerank({ catalog }: Pick<CallDeps, 'catalog'>, { caller }: AskContext, input: RerankInput): Admitted<RerankRequest> {
  return admit(catalog, caller, { scope: 'inference', kind: 'rerank', modelParam: 'model', check: () => checkRerankRequest(input) })
}
