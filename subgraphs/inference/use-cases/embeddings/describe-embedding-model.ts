import { listAt } from '../../../common/check.ts'
import { MAX_TEXTS } from '../../domain/embeddings/embedding-request.ts'
import type { CosineCalibration } from '../../ports/engines.ts'
import { findOrganizationId, getEnginePart, type Ports, type RequestContext } from '../deps.ts'
import { admitEmbedding } from './embed-document.ts'

interface EmbeddingModelFacts {
  readonly id: string
  readonly dimensions: number
  readonly maxTokens: number
  readonly overheadTokens: number
  readonly cosineSpread: number | null
  readonly calibration: CosineCalibration | null
}

/**
 * Returns the facts that a collection needs about its embedding model.
 * @throws {KisError} as `admit`: the caller may not use the model.
 */
export async function describeEmbeddingModel(deps: Ports, requestContext: RequestContext, modelId: string): Promise<EmbeddingModelFacts> {
  const { model } = admitEmbedding(deps, requestContext, modelId)
  const { id, dimensions, maxTextTokens: maxTokens, cosineSpread, markTokens, passagePrefix } = model
  const embedding = getEnginePart(deps, model, 'embedding')
  const [prefixTokens = 0] = passagePrefix
    ? await embedding.countTokens([passagePrefix], requestContext.signal, findOrganizationId(requestContext))
    : []
  // The vectors of a shortened model are others.
  const isMeasured = embedding.calibration?.arabicAnchor.length === dimensions
  const calibration = isMeasured ? embedding.calibration : null
  return { id, dimensions, maxTokens, overheadTokens: markTokens + prefixTokens, cosineSpread, calibration }
}

/**
 * Counts the tokens of each text, without marks and prefix.
 * @throws {KisError} as `admit`, or `texts` has too many items.
 */
export async function countTokens(
  deps: Ports,
  requestContext: RequestContext,
  { modelId, texts }: { readonly modelId: string; readonly texts: readonly string[] },
): Promise<readonly number[]> {
  const { model } = admitEmbedding(deps, requestContext, modelId)
  listAt(texts, 'texts', 0, MAX_TEXTS)
  return texts.length
    ? getEnginePart(deps, model, 'embedding').countTokens(texts, requestContext.signal, findOrganizationId(requestContext))
    : []
}
