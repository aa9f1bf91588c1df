import { KisError } from '../../../common/errors.ts'
import type { WorkerClient } from '../../../common/process/threads/worker-rpc.ts'
import type { Passage, RebuildStep, ToTerms } from '../../ports/chunk-index.ts'
import { joinedTerms } from './chunk-index-packing.ts'
import type { ReaderPool } from './chunk-index-reader-pool.ts'

/** Passages taken over in one step: one transaction of the writer, about 100 ms. */
const PAGE = 256

/** Progress of a rebuild: after this row of this collection, filling the tables with this key. */
export interface DraftPlace {
  readonly collectionId: string
  readonly key: number
  readonly after: number
}

/** A passage, by its row in the tables that are being replaced. */
export interface StoredPassage extends Passage {
  readonly id: number
}

/** The new terms of a passage, as passed to the writer. */
export interface RemadePassage {
  readonly id: number
  readonly words: string
  readonly grams: string
}

/**
 * Rebuilds one collection after another, into new tables that take every write from then on. The last step drops the
 * old tables in the transaction that puts the new ones in their place. The file keeps its size, and reuses the space.
 */
export async function rebuildStep(
  writer: WorkerClient,
  readers: ReaderPool,
  after: string | null,
  toTerms: ToTerms,
  signal: AbortSignal,
): Promise<RebuildStep> {
  const place = after === null ? await writer.call<DraftPlace | null>('beginDraft', ['']) : readPlace(after)
  if (!place) return { chunks: 0, next: null }
  const passages = await readers.call<readonly StoredPassage[]>('passages', [place.collectionId, place.after, PAGE], signal)
  const terms = await toTerms(passages)
  const remade = passages.map(
    ({ id }, i): RemadePassage => ({ id, words: joinedTerms(terms[i]!.words), grams: joinedTerms(terms[i]!.grams) }),
  )
  const next = await writer.call<DraftPlace | null>('continueDraft', [place, remade, passages.length < PAGE])
  return { chunks: passages.length, next: next && Buffer.from(JSON.stringify(next)).toString('base64url') }
}

function readPlace(after: string): DraftPlace {
  try {
    const place = JSON.parse(Buffer.from(after, 'base64url').toString()) as Partial<Record<keyof DraftPlace, unknown>>
    if (typeof place.collectionId === 'string' && Number.isInteger(place.key) && Number.isInteger(place.after)) return place as DraftPlace
  } catch {
    // Refused below.
  }
  throw new KisError('invalid_request', 'The cursor is not one that a rebuild gave.', { param: 'after' })
}
