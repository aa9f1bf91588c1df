import { listAt } from '../../../common/check.ts'
import { MAX_TEXTS } from '../../domain/embeddings/embedding-request.ts'
import { type AskContext, findOrganizationId, getEnginePart, type Ports } from '../deps.ts'
import { admitEmbedding } from './embed-document.ts'

export interface EmbeddingModelFacts {
  readonly id: string
  readonly dimensions: number
  readonly maxTokens: number
  readonly overheadTokens: number
  readonly cosineSpread: number | null
}

/**
 * Returns the facts that a collection needs about its embedding model.
 * @throws {KisError} as `admit`: the caller may not use the model.
 */
export async function describeEmbeddingModel(deps: Ports, ask: AskContext, modelId: string): Promise<EmbeddingModelFacts> {
  const { model } = admitEmbedding(deps, ask, modelId)
  const { id, dimensions, maxTextTokens: maxTokens, cosineSpread, markTokens, passagePrefix } = model
  const [prefixTokens = 0] = passagePrefix
    ? await getEnginePart(deps, model, 'embedding').countTokens([passagePrefix], ask.signal, findOrganizationId(ask))
    : []
  return { id, dimensions, maxTokens, overheadTokens: markTokens + prefixTokens, cosineSpread }
}

/**
 * Counts the tokens of each text, without marks and prefix.
 * @throws {KisError} as `admit`, or `texts` has too many items.
 */
export async function countTokens(
  deps: Ports,
  ask: AskContext,
  { modelId, texts }: { readonly modelId: string; readonly texts: readonly string[] },
): Promise<readonly number[]> {
  const { model } = admitEmbedding(deps, ask, modelId)
  listAt(texts, 'texts', 0, MAX_TEXTS)
  return texts.length ? getEnginePart(deps, model, 'embedding').countTokens(texts, ask.signal, findOrganizationId(ask)) : []
}
