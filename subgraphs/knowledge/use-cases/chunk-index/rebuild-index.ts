import { setImmediate } from 'node:timers/promises'
import { requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { selectInnermost } from '../../domain/chunking/chunk-context.ts'
import { toEmbeddingText } from '../../domain/chunking/chunk-document.ts'
import { grams, normaliseForEmbedding, words } from '../../domain/text/text-analysis.ts'
import type { ChunkText, RebuildStep, Terms } from '../../ports/chunk-index.ts'
import type { Deps } from '../deps.ts'
import { markTerms } from './index-mark.ts'

/** The number of passages that are analysed before other work gets its turn. It takes some milliseconds. */
const CHUNKS_PER_TICK = 16

/**
 * Rebuilds a part of the chunk index, across all organizations: its structure and its terms. It takes the vectors and
 * texts from the index, so nothing is embedded or charged. An index that cannot be read is replaced by an empty one.
 * Repeatable.
 * @throws {KisError} `permission_denied` if the caller is not an operator.
 * @throws {KisError} `invalid_request` if `after` is not a cursor of this mutation.
 * @throws {KisError} `service_unavailable` if the index cannot be reached.
 */
export async function rebuildIndex(
  { store, index }: Pick<Deps, 'store' | 'index'>,
  context: LinkContext,
  after: string | null,
): Promise<RebuildStep & { readonly replaced: boolean }> {
  requireScope(context.caller, 'operator')
  if (after === null && (await index.replaceUnreadable())) {
    await markTerms({ store })
    return { chunks: 0, next: null, replaced: true }
  }
  const step = await index.rebuild(after, toTerms, context.signal)
  if (step.next === null) await markTerms({ store })
  return { ...step, replaced: false }
}

/** Computes the terms that ingestion would give the passages today. */
export async function toTerms(chunks: readonly ChunkText[]): Promise<readonly Terms[]> {
  const terms: Terms[] = []
  for (const { text, context, headingPath } of chunks) {
    if (terms.length % CHUNKS_PER_TICK === 0) await setImmediate()
    // Older passages have no context. Their headings are known, but not the header row of their table.
    const analysed = normaliseForEmbedding(toEmbeddingText({ text, context: context ?? selectInnermost(headingPath) }))
    terms.push({ words: words(analysed), grams: grams(analysed) })
  }
  return terms
}
