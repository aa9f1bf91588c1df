import { setImmediate } from 'node:timers/promises'
import { requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { keepInnermost } from '../../domain/chunking/chunk-context.ts'
import { toEmbeddingText } from '../../domain/chunking/chunk-document.ts'
import { grams, normaliseForEmbedding, words } from '../../domain/text/text-analysis.ts'
import type { Passage, RebuildStep, Terms } from '../../ports/chunk-index.ts'
import type { Deps } from '../deps.ts'

/** Passages analysed before other work gets its turn: some milliseconds. */
const PASSAGES_PER_TURN = 16

/**
 * One step of building the chunk index anew, of all organizations: its structure and its terms, from the vectors and
 * texts that it holds, so nothing is embedded and nobody pays. An index that cannot be read is replaced by an empty one
 * instead. Repeatable.
 * @throws {KisError} `permission_denied`; `invalid_request`: `after` is no place; `service_unavailable`.
 */
export async function rebuildIndex(
  { index }: Pick<Deps, 'index'>,
  context: LinkContext,
  after: string | null,
): Promise<RebuildStep & { readonly replaced: boolean }> {
  requireScope(context.caller, 'operator')
  if (after === null && (await index.replaceUnreadable())) return { chunks: 0, next: null, replaced: true }
  const step = await index.rebuild(after, toTerms, context.signal)
  return { ...step, replaced: false }
}

/** The terms that ingestion would give the passages today. */
export async function toTerms(passages: readonly Passage[]): Promise<readonly Terms[]> {
  const terms: Terms[] = []
  for (const { text, context, headingPath } of passages) {
    if (terms.length % PASSAGES_PER_TURN === 0) await setImmediate()
    // Of a passage from before the context was kept the headings are known; a table's header row is not.
    const analysed = normaliseForEmbedding(toEmbeddingText({ text, context: context ?? keepInnermost(headingPath) }))
    terms.push({ words: words(analysed), grams: grams(analysed) })
  }
  return terms
}
