import type { AnswerBudget } from '../../common/link/answer-budget.ts'
import { type Connection, type PageArguments, pageOf } from '../../common/link/connection.ts'
import { longRecordsPage } from '../../common/link/long-records.ts'
import type { DocumentCollection, Filter, StoredDocument } from '../../common/ports/document-store.ts'

type ListArguments = PageArguments & { readonly order?: 'asc' | 'desc' | null }

/** A page of records by id, which is by the time of their making. `idPattern`: what their ids look like. */
export function longRecordsById<T extends StoredDocument>(
  collection: DocumentCollection<T>,
  filter: Filter,
  { order, ...args }: ListArguments,
  idPattern: RegExp,
  budget: AnswerBudget,
): Promise<Connection<T>> {
  const isDescending = (order ?? 'desc') === 'desc'
  const beyond = (after: string) => ({ _id: isDescending ? { $lt: after } : { $gt: after } })
  return longRecordsPage(
    pageOf(args, idPattern),
    budget,
    ({ _id }) => _id,
    (after, limit) => collection.find({ ...filter, ...(after !== null && beyond(after)) }, { sort: { _id: isDescending ? -1 : 1 }, limit }),
  )
}
