import { KisError } from '../../../common/errors.ts'
import type { DocumentRecord } from '../../domain/records.ts'
import { compareSketches, listBands } from '../../domain/text/sketch.ts'
import type { Deps } from '../deps.ts'

/** Documents below this similarity are not near-duplicates. */
const MIN_SIMILARITY = 0.7
const MAX_SIMILAR = 20
/** Maximum documents compared per band. A band that more documents share is boilerplate. */
const MAX_PER_BAND = 50

interface SimilarDocument {
  readonly document: DocumentRecord
  /** 0.7 to 1: the estimated Jaccard similarity of both texts' runs of four words. */
  readonly similarity: number
}

/**
 * Finds ready documents of the same collection with nearly the same text, most similar first. Returns none for a
 * document that is not ready or that an earlier version ingested.
 * @throws {KisError} `integer_below_min_value` or `integer_above_max_value` if `first` is out of range.
 */
export async function findSimilar(
  { store }: Pick<Deps, 'store'>,
  document: DocumentRecord,
  first: number,
): Promise<readonly SimilarDocument[]> {
  if (first < 1) throw new KisError('integer_below_min_value', 'Request at least 1 document.', { param: 'first' })
  if (first > MAX_SIMILAR) throw new KisError('integer_above_max_value', `Request at most ${MAX_SIMILAR} documents.`, { param: 'first' })
  const { _id, organizationId, collectionId, sketch, status } = document
  if (sketch === undefined || status !== 'ready') return []
  const alike = await Promise.all(
    listBands(sketch).map((band) => store.sketches.find({ key: toKey(collectionId, band) }, { limit: MAX_PER_BAND })),
  )
  const ids = [...new Set(alike.flat().map(({ documentId }) => documentId))].filter((id) => id !== _id)
  if (ids.length === 0) return []
  const found = await store.documents.find(
    { _id: { $in: ids }, collectionId, organizationId, listed: true, status: 'ready' },
    { limit: ids.length },
  )
  return found
    .flatMap((other) => (other.sketch === undefined ? [] : [{ document: other, similarity: compareSketches(sketch, other.sketch) }]))
    .filter(({ similarity }) => similarity >= MIN_SIMILARITY)
    .sort((a, b) => b.similarity - a.similarity || (a.document._id < b.document._id ? -1 : 1))
    .slice(0, first)
}

/** Stores a document's sketch for `findSimilar`, and replaces its earlier sketch. Repeatable. */
export async function storeSketch(
  { store }: Pick<Deps, 'store'>,
  { _id: documentId, organizationId, collectionId }: DocumentRecord,
  sketch: string,
): Promise<void> {
  await purgeSketch({ store }, documentId)
  await store.sketches.insertMissing(
    listBands(sketch).map((band, i) => ({ _id: `${documentId}_${i}`, organizationId, documentId, key: toKey(collectionId, band) })),
  )
}

/** Deletes a document's sketch. Repeatable. */
export async function purgeSketch({ store }: Pick<Deps, 'store'>, documentId: string): Promise<void> {
  await store.sketches.deleteMany({ documentId })
}

function toKey(collectionId: string, band: string): string {
  return `${collectionId}_${band}`
}
