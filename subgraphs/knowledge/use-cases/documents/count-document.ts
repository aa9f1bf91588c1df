import type { CountedNumber, DocumentRecord } from '../../domain/records.ts'
import type { Counted } from '../count-usage.ts'
import type { Deps } from '../deps.ts'

/** Counts a document's vectors for its organization. Only the holder of the document's lease may write the number. */
export function countedVectors({ store }: Pick<Deps, 'store'>, document: DocumentRecord): Counted {
  return { ...share(store, document, 'countedVectors'), subject: `${document._id}_vectors`, total: 'vectors' }
}

/**
 * Counts a ready document's chunks for its collection. Only the holder of the document's lease may write the number.
 */
export function countedChunks({ store }: Pick<Deps, 'store'>, document: DocumentRecord): Counted {
  return { ...share(store, document, 'countedChunks'), subject: `${document._id}_chunks`, total: `chunks.${document.collectionId}` }
}

function share(store: Deps['store'], { _id, organizationId, job }: DocumentRecord, field: 'countedVectors' | 'countedChunks') {
  return {
    organizationId,
    exclusive: true,
    current: async () => (await store.documents.findOne({ _id }))?.[field],
    write: async (number: CountedNumber, { by }: CountedNumber) =>
      (await store.documents.findOneAndUpdate(
        { _id, 'job.lease': job!.lease, [`${field}.by`]: by },
        { $set: { [field]: { ...number } } },
      )) !== null,
  }
}
