import { documentAttributes } from '../../domain/document-attributes.ts'
import type { IndexedDocument } from '../../ports/chunk-index.ts'
import { type KeptGroup, readKeptGroup, toGroup } from '../chunk-index/kept-passages.ts'
import type { KnownGeneration, StillKnowledge } from './indexed-generations.ts'

/** A group of an ingestion's passages, as the index has them. */
export interface GenerationGroup {
  readonly document: IndexedDocument
  readonly passages: KeptGroup['passages']
}

/** Whether the vectors of an ingestion are kept beside the index. Versions before 0.2.0 kept none. */
export async function isKept({ blobs }: Pick<StillKnowledge, 'blobs'>, { index, document, generation }: KnownGeneration): Promise<boolean> {
  const first = await readKeptGroup({ blobs }, { documentId: document._id, generation, collectionId: index.name }, 0)
  // Those of a failed ingestion are kept without vectors.
  return first !== null && first.passages.length > 0 && first.passages[0]!.vector.length === index.dimensions
}

/**
 * Reads the passages that the index has of an ingestion from where they are kept, with their vectors and token states.
 * @throws {Error} some are not kept
 */
export async function* readGeneration(
  { blobs, index: chunks }: Pick<StillKnowledge, 'blobs' | 'index'>,
  { index, document, generation, chunks: count, lastOrdinal }: KnownGeneration,
): AsyncGenerator<GenerationGroup> {
  const { _id: documentId, organizationId } = document
  const there = count === lastOrdinal + 1 ? null : new Set(await chunks.ordinals(index.name, documentId, generation))
  let found = 0
  for (let group = 0; group <= toGroup(lastOrdinal); group++) {
    const kept = await readKeptGroup({ blobs }, { documentId, generation, collectionId: index.name }, group)
    const passages = (kept?.passages ?? []).filter(({ ordinal }) => ordinal <= lastOrdinal && (there?.has(ordinal) ?? true))
    found += passages.length
    if (!kept || passages.length === 0) continue
    const attributes = documentAttributes(kept.attributes, document)
    yield { document: { organizationId, collectionId: index.name, documentId, generation, attributes }, passages }
  }
  if (found !== count)
    throw new Error(
      `The index has ${count} passages of ${documentId}, of which ${found} are kept beside it: run \`kis verify --repair\` on the source.`,
    )
}
