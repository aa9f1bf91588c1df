import { type Connection, connectionOf, type PageArguments, pageOf } from '../link/connection.ts'
import type { DocumentCollection, Filter, StoredDocument } from '../ports/document-store.ts'

export interface OrderedPage extends PageArguments {
  /** The default is `desc`. */
  readonly order?: 'asc' | 'desc' | null
}

/**
 * A page of the records that meet the filter, by id, which is by the time of their creation. `idPattern` is how their ids begin.
 * @throws {KisError} `invalid_request`, `integer_below_min_value` or `integer_above_max_value`: the page's arguments.
 */
export async function listById<T extends StoredDocument>(
  records: DocumentCollection<T>,
  filter: Filter,
  { order, ...args }: OrderedPage,
  idPattern: RegExp,
): Promise<Connection<T>> {
  const page = pageOf(args, idPattern)
  const isAscending = order === 'asc'
  const rest = page.after === null ? {} : { _id: isAscending ? { $gt: page.after } : { $lt: page.after } }
  const items = await records.find({ ...filter, ...rest }, { sort: { _id: isAscending ? 1 : -1 }, limit: page.limit })
  return connectionOf(items, page, ({ _id }) => _id)
}
