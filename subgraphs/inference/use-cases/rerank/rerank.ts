import type { Model } from '../../domain/catalog.ts'
import type { RerankRequest } from '../../domain/rerank/rerank-request.ts'
import { countRerank, rerankCeiling, rerankUsage } from '../../domain/rerank/rerank-usage.ts'
import { isCount } from '../../domain/tokens/usage.ts'
import type { Quantities } from '../../ports/billing.ts'
import { NeverSent, type Reranking } from '../../ports/engines.ts'
import { listCandidates, withFallbacks } from '../calls/with-fallbacks.ts'
import { type CallContext, getEnginePart, type HoldDeps } from '../deps.ts'
import { billedCall, MAX_CALL_MS } from '../money/billed-call.ts'

interface RerankedDocument {
  /** The place of the document in the request, from 0. */
  readonly index: number
  readonly score: number
}

export interface Reranked {
  /** Best first; equal scores in the order of the request. */
  readonly results: readonly RerankedDocument[]
  /** The model that answered. */
  readonly modelId: string
  readonly tokens: number
  readonly searchUnits: number
  /** Nano-USD. */
  readonly cost: bigint
}

/**
 * Scores the documents with the model, or with the first of its fallbacks that answers, and charges it. Each attempt
 * takes at most `maxMs`.
 * @throws {KisError} as `firstToAnswer`; nothing is charged, unless it is a `StoppedByLimit`.
 */
export function rerank(
  deps: HoldDeps,
  context: CallContext,
  model: Model,
  { query, documents, topN }: Pick<RerankRequest, 'query' | 'documents' | 'topN'>,
  maxMs: number = MAX_CALL_MS,
): Promise<Reranked> {
  const models = listCandidates(deps, context.caller, model, () => true)
  return withFallbacks(deps, context, models, async (candidate, endsAt, chargedBefore) => {
    const { maxBatch } = getEnginePart(deps, candidate, 'rerank')
    const counted = countRerank(query, documents, maxBatch)
    const ceiling = ceilingOf(candidate, query, documents, maxBatch)
    const usageOf = (said: Pick<Reranking, 'tokens' | 'searchUnits'>) => rerankUsage(counted, said, candidate)
    const unsaid = { tokens: null, searchUnits: null }
    let sent = 0
    const reranked = await billedCall(
      deps,
      context,
      { operation: 'rerank', model: candidate, ceiling, atLeast: usageOf(unsaid).quantities },
      () => rerankUsage(countRerank(query, documents.slice(0, sent), maxBatch), unsaid, candidate),
      async (signal) => {
        const { scores, ...said } = await rerankInBatches(deps, context, candidate, query, documents, signal, (count) => {
          sent = count
        })
        const usage = usageOf(said)
        const { inputTokens: tokens, searchUnits } = usage.quantities
        const results = scores.map((score, index) => ({ index, score })).sort((a, b) => b.score - a.score || a.index - b.index)
        return { value: { results: results.slice(0, topN), modelId: candidate.id, tokens, searchUnits }, usage }
      },
      Math.min(maxMs, endsAt - deps.clock.now().getTime()),
    )
    return { ...reranked, cost: chargedBefore + reranked.cost }
  })
}

/**
 * Asks the engine in batches of its size. Scores of one model can be compared across its calls. A report of zero does not
 * count. `onSent` is called before each batch with the number of documents sent up to its end.
 */
async function rerankInBatches(
  deps: HoldDeps,
  { requestId, caller }: CallContext,
  model: Model,
  query: string,
  documents: readonly string[],
  signal: AbortSignal,
  onSent: (documents: number) => void,
): Promise<Reranking> {
  const engine = getEnginePart(deps, model, 'rerank')
  const call = { engineModel: model.engineModel, requestId, organizationId: caller.organizationId }
  const parts: Reranking[] = []
  for (let start = 0; start < documents.length; start += engine.maxBatch) {
    signal.throwIfAborted()
    const batch = documents.slice(start, start + engine.maxBatch)
    onSent(start + batch.length)
    const part = await engine.rerank(call, query, batch, signal).catch((error) => {
      if (error instanceof NeverSent) onSent(start)
      // For the parts before, it was asked.
      throw error instanceof NeverSent && start > 0 ? error.cause : error
    })
    if ((model.price.search === null ? part.tokens : part.searchUnits) === 0) deps.zeroUsage.note(model)
    parts.push({ ...part, tokens: part.tokens || null, searchUnits: part.searchUnits || null })
  }
  return {
    scores: parts.flatMap(({ scores }) => scores),
    tokens: sumReports(parts.map(({ tokens }) => tokens)),
    searchUnits: sumReports(parts.map(({ searchUnits }) => searchUnits)),
  }
}

/** Null unless every call has its report and an `Int` can hold the sum. */
function sumReports(reports: readonly (number | null)[]): number | null {
  const sum = reports.reduce<number>((total, report) => total + (report ?? Number.NaN), 0)
  return isCount(sum) ? sum : null
}

/** The most that a model can take for them. Only the unit that has a price is recorded with search units. */
export function ceilingOf({ price }: Model, query: string, documents: readonly string[], maxBatch: number): Quantities {
  const ceiling = rerankCeiling(query, documents, maxBatch)
  return price.search === null ? { ...ceiling, searchUnits: 0 } : ceiling
}
