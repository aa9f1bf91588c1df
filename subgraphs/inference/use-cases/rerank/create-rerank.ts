import type { RateLimits } from '../../../../schema/errors.ts'
import { checkRerankRequest, type RerankRequest } from '../../domain/rerank/rerank-request.ts'
import { countRerank } from '../../domain/rerank/rerank-usage.ts'
import { type Admitted, admit } from '../calls/admit.ts'
import { limited } from '../calls/limited-call.ts'
import type { CallDeps, RequestContext } from '../deps.ts'
import { type Reranked, rerank } from './rerank.ts'

export interface RerankResponse extends Reranked {
  readonly rateLimits: RateLimits | null
}

export type RerankInput = Parameters<typeof checkRerankRequest>[0]

/**
 * Orders documents by their relevance to a query.
 * @throws {KisError} the error of a check or of the engine; nothing is charged.
 */
export function createRerank(deps: CallDeps, requestContext: RequestContext, input: RerankInput): Promise<RerankResponse> {
  return limited(deps, requestContext, 'embeddings', async (call, currentContext) => {
    const { principal, request, model } = admitRerank(deps, currentContext, input)
    const { inputTokens } = countRerank(request.query, request.documents, request.documents.length)
    return rerank(deps, await call.admit(principal, inputTokens), model, request)
  })
}

/** @throws {KisError} the error of a check */
export function admitRerank(
  { catalog }: Pick<CallDeps, 'catalog'>,
  { caller }: RequestContext,
  input: RerankInput,
): Admitted<RerankRequest> {
  return admit(catalog, caller, { scope: 'inference', kind: 'rerank', modelParam: 'model', check: () => checkRerankRequest(input) })
}
