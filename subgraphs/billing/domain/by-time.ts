import type { DocumentCollection, Filter, StoredDocument } from '../../common/ports/document-store.ts'

/** Documents of one read. */
const PAGE = 50

/**
 * Yields all documents that have the date `field`, the earliest first. `until`: only those whose date is not later;
 * null: all. `field` has an index of its own. A document may change after it was returned. A document that is added
 * meanwhile may be missed.
 */
export async function* byTime<T extends StoredDocument>(
  documents: DocumentCollection<T>,
  field: keyof T & string,
  until: Date | null,
): AsyncGenerator<T, undefined> {
  const read = (filter: Filter, order: string) => documents.find(filter, { sort: { [order]: 1 }, limit: PAGE })
  const after = (time: Date) => read({ [field]: { $gt: time, ...(until && { $lte: until }) } }, field)
  let page = await after(new Date(0))
  while (page.length === PAGE) {
    yield* page
    const last = page.at(-1)!
    const time = last[field] as Date
    // More than one page may have the same time.
    page = await read({ [field]: time, _id: { $gt: last._id } }, '_id')
    if (page.length === PAGE) continue
    yield* page
    page = await after(time)
  }
  yield* page
}
