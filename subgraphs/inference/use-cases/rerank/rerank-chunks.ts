import { textAt } from '../../../common/check.ts'
import type { Model } from '../../domain/catalog.ts'
import { checkRerankRequest, type RerankRequest } from '../../domain/rerank/rerank-request.ts'
import { type Admitted, admit } from '../calls/admit.ts'
import { limited } from '../calls/limited-call.ts'
import type { KeyedDeps, Ports, RequestContext } from '../deps.ts'
import { onceForStepOf } from '../idempotency/once-for-step.ts'
import { type Reranked, rerank } from './rerank.ts'

/** A search has its plain order to answer with, so it does not wait longer for a better one. */
const MAX_MS = 10_000

interface ChunksToRerank {
  readonly modelId: string
  readonly query: string
  readonly texts: readonly string[]
  /** The step of a run that makes the search, as `run/path`. */
  readonly step?: string | null
}

/**
 * Orders the passages of one search for another service and charges the searcher's wallet. It counts as one of the
 * organization's concurrent calls, but not as a request of its key. Within a run, the call is charged once however
 * often it is repeated, and also if its caller leaves.
 * @throws {KisError} as `admit`; or the error of the engine, and nothing is charged.
 * @throws {KisError} `engine_timeout`: the model took longer than 10 s.
 */
export function rerankChunks(deps: KeyedDeps, requestContext: RequestContext, { step, ...chunks }: ChunksToRerank): Promise<Reranked> {
  const once = (effectiveContext: RequestContext) =>
    limited(deps, effectiveContext, 'chat', async (call, admitted) => {
      const { principal, model, request } = admitChunks(deps, admitted, chunks)
      return rerank(deps, await call.admit(principal, null), model, request, MAX_MS)
    })
  // The step's own path is that of the query's embedding.
  return step == null ? once(requestContext) : onceForStepOf(deps, requestContext, `${step}/rerank`, once)
}

/**
 * Returns the id of a model that can rerank for the caller.
 * @throws {KisError} as `admit`: the caller may not use the model.
 */
export function describeRerankModel(deps: Ports, requestContext: RequestContext, modelId: string): Pick<Model, 'id'> {
  const { model } = admit(deps.catalog, requestContext.caller, {
    scope: null,
    kind: 'rerank',
    modelParam: 'id',
    check: () => ({ model: textAt(modelId, 'id') }),
  })
  return { id: model.id }
}

function admitChunks(deps: Ports, requestContext: RequestContext, { modelId, query, texts }: ChunksToRerank): Admitted<RerankRequest> {
  return admit(deps.catalog, requestContext.caller, {
    scope: 'knowledge:read',
    kind: 'rerank',
    modelParam: 'modelId',
    check: () => checkRerankRequest({ model: modelId, query, documents: texts }),
  })
}
