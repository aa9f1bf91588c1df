import { type Connection, type PageArguments, readPage, toConnection } from '../link/connection.ts'
import type { DocumentCollection, Filter, StoredDocument } from '../ports/document-store.ts'
import type { AnswerBudget } from './answer-budget.ts'
import { longRecordsPage } from './long-records.ts'

export interface OrderedPage extends PageArguments {
  /** The default is `desc`. */
  readonly order?: 'asc' | 'desc' | null
}

/**
 * A page of the records that meet the filter, by id, which is by the time of their creation. `idPattern` is how their
 * ids begin. `budget`: the records may be long, so that the page may end early. Default: they are short.
 * @throws {KisError} `invalid_request`, `integer_below_min_value` or `integer_above_max_value`: the page's arguments;
 * `operation_too_complex`: the budget.
 */
export async function listById<T extends StoredDocument>(
  records: DocumentCollection<T>,
  filter: Filter,
  { order, ...args }: OrderedPage,
  idPattern: RegExp,
  budget?: AnswerBudget,
): Promise<Connection<T>> {
  const page = readPage(args, idPattern)
  const isAscending = (order === 'asc') !== page.isBackward
  const idOf = ({ _id }: T) => _id
  const read = (from: string | null, limit: number) => {
    const rest = from === null ? {} : { _id: isAscending ? { $gt: from } : { $lt: from } }
    return records.find({ ...filter, ...rest }, { sort: { _id: isAscending ? 1 : -1 }, limit })
  }
  const count = (limit: number) => records.countDocuments(filter, { limit })
  return budget ? longRecordsPage(page, budget, idOf, read, count) : toConnection(await read(page.from, page.limit), page, idOf, count)
}
