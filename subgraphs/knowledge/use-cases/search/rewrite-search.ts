import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import { normaliseText } from '../../domain/text/normalise-text.ts'
import { normaliseForEmbedding } from '../../domain/text/text-analysis.ts'
import type { CallContext } from '../../ports/inference.ts'
import type { Deps } from '../deps.ts'
import type { SearchRequest } from './search-request.ts'

/** Errors that the client can fix. */
const ERRORS_OF_CALLER: readonly ErrorCode[] = ['permission_denied', 'model_not_found', 'residency_policy_violation']

/** The outcome of rewriting a query that had a conversation. */
export interface RewriteOutcome {
  readonly query: string
  /** False: the original query was searched, for the reason in `error`. */
  readonly applied: boolean
  readonly error: ErrorCode | null
}

/**
 * Lets a chat model rewrite the query so that it is understood without its conversation. If the model fails, the query
 * stays unchanged.
 * @throws {KisError} `permission_denied`, `model_not_found` or `residency_policy_violation`: the caller may not use the
 * model.
 */
export async function rewriteSearch(
  { inference }: Pick<Deps, 'inference'>,
  context: CallContext,
  request: SearchRequest,
): Promise<{ readonly request: SearchRequest; readonly outcome: RewriteOutcome | null; readonly cost: bigint }> {
  const { conversation, query } = request
  if (!conversation) return { request, outcome: null, cost: 0n }
  try {
    const rewritten = await inference.rewriteQuery({ ...conversation, query }, context)
    const written = normaliseText(rewritten.query)
    return {
      request: { ...request, query: written, text: normaliseForEmbedding(written) },
      outcome: { query: written, applied: true, error: null },
      cost: rewritten.cost,
    }
  } catch (error) {
    if (!(error instanceof KisError) || context.signal.aborted) throw error
    if (ERRORS_OF_CALLER.includes(error.code)) throw new KisError(error.code, error.message, { param: 'input.rewriteModel', cause: error })
    return { request, outcome: { query, applied: false, error: error.code }, cost: 0n }
  }
}
