import type { DocumentCollection, Filter, StoredDocument } from '../ports/document-store.ts'

/** Documents that are read at once. */
const PAGE = 100

/**
 * Gives the documents whose date `field` is `until` or before, the earliest first, whatever their number. `field` has an
 * index of its own. A document may change once it was given.
 */
export async function* byTime<T extends StoredDocument>(
  documents: DocumentCollection<T>,
  field: keyof T & string,
  until: Date,
): AsyncGenerator<T> {
  const read = (filter: Filter, order: string) => documents.find(filter, { sort: { [order]: 1 }, limit: PAGE })
  let page = await read({ [field]: { $lte: until } }, field)
  while (page.length > 0) {
    yield* page
    const last = page.at(-1)!
    const time = last[field] as Date
    page = await read({ [field]: time, _id: { $gt: last._id } }, '_id')
    if (page.length === 0) page = await read({ [field]: { $gt: time, $lte: until } }, field)
  }
}
