import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import type { CollectionRecord } from '../../domain/records.ts'
import type { RankedChunk } from '../../domain/search/fuse.ts'
import type { StoredChunk } from '../../ports/chunk-index.ts'
import type { CallContext } from '../../ports/inference.ts'
import type { Deps } from '../deps.ts'
import type { SearchRequest } from './search-request.ts'

/** Number of best chunks that a reranker reads. More take seconds and rarely change the first ten. */
export const RERANKED = 50

/** Errors that the client who named the model can fix. */
const ERRORS_OF_CALLER: readonly ErrorCode[] = ['model_not_found', 'residency_policy_violation']

/** The outcome of reranking a search. */
export interface RerankOutcome {
  readonly modelId: string
  /** False: the hits have their original order, for the reason in `error`. */
  readonly applied: boolean
  readonly error: ErrorCode | null
}

interface RerankedChunks {
  readonly ranked: readonly RankedChunk[]
  readonly outcome: RerankOutcome
  /** In nano-USD. */
  readonly cost: bigint
}

/**
 * Returns the model that reranks a search: that of the request, or else the one that all its collections have in
 * common. A lexical search is free, so no default applies to it.
 */
export function chooseReranker({ rerankModel, mode }: SearchRequest, collections: readonly CollectionRecord[]): string | null {
  if (rerankModel !== undefined) return rerankModel
  const defaults = new Set(collections.map((collection) => collection.rerankModel ?? null))
  return mode === 'lexical' || defaults.size > 1 ? null : [...defaults][0]!
}

/**
 * Orders the first chunks by a rerank model, followed by the others. If the model fails, the original order stays.
 * @throws {KisError} `model_not_found` or `residency_policy_violation`, if the request names the model.
 */
export async function rerankChunks(
  { inference }: Pick<Deps, 'inference'>,
  context: CallContext,
  request: SearchRequest,
  modelId: string,
  ranked: readonly RankedChunk[],
  chunks: ReadonlyMap<string, StoredChunk>,
): Promise<RerankedChunks> {
  const known = ranked.filter(({ chunkId }) => chunks.has(chunkId))
  const first = known.slice(0, RERANKED)
  if (first.length === 0) return { ranked: known, outcome: { modelId, applied: true, error: null }, cost: 0n }
  const texts = first.map(({ chunkId }) => toText(chunks.get(chunkId)!))
  try {
    const { results, cost } = await inference.rerankPassages(modelId, request.query, texts, context)
    return {
      ranked: results.map(({ index, score }) => {
        const before = first[index]!
        return { ...before, score, relevance: null, explanation: { ...before.explanation, rankBeforeRerank: index + 1 } }
      }),
      outcome: { modelId, applied: true, error: null },
      cost,
    }
  } catch (error) {
    if (!(error instanceof KisError) || context.signal.aborted) throw error
    if (request.rerankModel && ERRORS_OF_CALLER.includes(error.code))
      throw new KisError(error.code, error.message, { param: 'input.rerankModel', cause: error })
    return { ranked: known, outcome: { modelId, applied: false, error: error.code }, cost: 0n }
  }
}

/** Adds the headings, which say what a chunk is about if its text does not. */
function toText({ headingPath, text }: StoredChunk): string {
  return [headingPath.join(' › '), text].filter(Boolean).join('\n')
}
