import { KisError } from '../errors.ts'
import { type Connection, encodeCursor, type PageArguments, readPage, toConnection } from '../link/connection.ts'
import type { DocumentCollection, Filter, StoredDocument } from '../ports/document-store.ts'
import { longRecordsPage, type ReadBudget } from './long-records.ts'

/** A page of a list by time of creation. */
export interface OrderedPage extends PageArguments {
  /** The default is `desc`. */
  readonly order?: 'asc' | 'desc' | null
}

/**
 * Returns a page of the records that meet the filter, by id, and so by the time of their creation. `idPattern` is the
 * form of their ids. `budget`: the records may be long, so the page may end early. Default: they are short.
 * @throws {KisError} `invalid_request`, `integer_below_min_value` or `integer_above_max_value`: the page's arguments;
 * `operation_too_complex`: the budget.
 */
export async function listById<T extends StoredDocument>(
  records: DocumentCollection<T>,
  filter: Filter,
  { order, ...args }: OrderedPage,
  idPattern: RegExp,
  budget?: ReadBudget,
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

/**
 * Records that are read at once, that one page may read before it ends early, and that all pages of one operation may
 * read. The embedded store reads 200 records in a thread, in round robin over the organizations.
 */
const READ_AT_ONCE = 200
const MAX_EXAMINED = 2_000
const MAX_EXAMINED_OF_OPERATION = 20_000

/** Separates a name and an id in a cursor. No name contains it. */
const SEPARATOR = '\n'

/** Limits what the lists of one operation read in one subgraph where no index serves them. */
export class SiftBudget {
  #left = MAX_EXAMINED_OF_OPERATION

  /** @throws {KisError} `operation_too_complex`: the operation has read as much as it may. */
  spend(records: number): void {
    this.#left -= records
    if (this.#left >= 0) return
    throw new KisError(
      'operation_too_complex',
      `The operation reads more than ${MAX_EXAMINED_OF_OPERATION} objects by parts of their names or by their metadata. Request fewer such lists at once.`,
    )
  }
}

/** The conditions of a list. A record must meet all of them. */
export interface Sieve<T> {
  /** Equalities that an index serves. */
  readonly filter: Filter
  /** The prefix of the list's ids, such as `doc`. */
  readonly idPrefix: string
  /** Creation at or after `since`, and before `until`. */
  readonly since?: Date | null | undefined
  readonly until?: Date | null | undefined
  /** The conditions that no index serves. Null: none. */
  readonly matches: ((record: T) => boolean) | null
  /** The budget of the operation. Absent: only the page is limited. */
  readonly sifting?: SiftBudget
  /** The field to sort by, which an index has after the fields of `filter`. Null: the time of creation. */
  readonly sortBy: string | null
}

/**
 * Returns a page of the records that pass the sieve. Where no index serves the sieve, a page reads at most 2,000
 * records: it may then have fewer items than requested, or none, and reports that more follow. Such a list is not
 * counted. `budget`: the records may be long, and an index serves the sieve.
 * @throws {KisError} `invalid_request`, `integer_below_min_value` or `integer_above_max_value`: the page's arguments;
 * `operation_too_complex`: a budget.
 */
export async function listSifted<T extends StoredDocument>(
  records: DocumentCollection<T>,
  { filter, idPrefix, since, until, matches, sortBy, sifting = new SiftBudget() }: Sieve<T>,
  { order, ...args }: OrderedPage,
  budget?: ReadBudget,
): Promise<Connection<T>> {
  const range = { ...(since && { $gte: firstIdAt(idPrefix, since) }), ...(until && { $lt: firstIdAt(idPrefix, until) }) }
  const isInRange = (id: string) => (range.$gte === undefined || id >= range.$gte) && (range.$lt === undefined || id < range.$lt)
  const hasRange = since != null || until != null
  const whole = hasRange && sortBy === null ? { ...filter, _id: range } : filter
  const passes = sortBy !== null && hasRange ? (record: T) => isInRange(record._id) && (matches?.(record) ?? true) : matches
  if (!passes && !hasRange && sortBy === null)
    return listById(records, filter, { order: order ?? null, ...args }, new RegExp(`^${idPrefix}_`), budget)

  const page = readPage(args, new RegExp(sortBy === null ? `^${idPrefix}_` : `${SEPARATOR}${idPrefix}_[^${SEPARATOR}]*$`))
  const isAscending = (order === 'asc') !== page.isBackward
  const keyOf = (record: T) => (sortBy === null ? record._id : `${textAt(record, sortBy)}${SEPARATOR}${record._id}`)
  const read = (from: string | null, limit: number) =>
    sortBy === null
      ? readById(records, filter, range, from, isAscending, limit)
      : readByField(records, filter, sortBy, from, isAscending, limit)
  if (!passes) {
    const count = (limit: number) => records.countDocuments(whole, { limit })
    return budget ? longRecordsPage(page, budget, keyOf, read, count) : toConnection(await read(page.from, page.limit), page, keyOf, count)
  }
  const found: T[] = []
  let from = page.from
  for (let examined = 0; ; ) {
    sifting.spend(READ_AT_ONCE)
    const some = await read(from, READ_AT_ONCE)
    for (const record of some) {
      if (passes(record)) found.push(record)
      // The next page starts after the last item found, so it contains the rest of what was read.
      if (found.length === page.limit) return toConnection(found, page, keyOf, uncounted)
      from = keyOf(record)
    }
    examined += some.length
    if (some.length < READ_AT_ONCE) return toConnection(found, page, keyOf, uncounted)
    if (examined >= MAX_EXAMINED) return toConnection(found, page, keyOf, uncounted, encodeCursor(from!))
  }
}

const uncounted = () => Number.POSITIVE_INFINITY

/** Returns the smallest id of a time. Later ids sort after it: see `idSource`. */
function firstIdAt(prefix: string, time: Date): string {
  return `${prefix}_${Math.max(0, time.getTime()).toString(16).padStart(12, '0')}`
}

function readById<T extends StoredDocument>(
  records: DocumentCollection<T>,
  filter: Filter,
  range: { readonly $gte?: string; readonly $lt?: string },
  from: string | null,
  isAscending: boolean,
  limit: number,
): Promise<readonly T[]> {
  const seen = from === null ? {} : isAscending ? { $gt: from } : { $lt: range.$lt !== undefined && range.$lt < from ? range.$lt : from }
  const _id = { ...range, ...seen }
  return records.find({ ...filter, ...(Object.keys(_id).length > 0 && { _id }) }, { sort: { _id: isAscending ? 1 : -1 }, limit })
}

/** Records with equal texts are sorted by id, so what follows one of them is two ranges of the index. */
async function readByField<T extends StoredDocument>(
  records: DocumentCollection<T>,
  filter: Filter,
  field: string,
  from: string | null,
  isAscending: boolean,
  limit: number,
): Promise<readonly T[]> {
  const direction = isAscending ? 1 : -1
  const beyond = (value: string) => (isAscending ? { $gt: value } : { $lt: value })
  if (from === null) return records.find(filter, { sort: { [field]: direction }, limit })
  const end = from.lastIndexOf(SEPARATOR)
  const [text, id] = [from.slice(0, end), from.slice(end + 1)]
  const equal = await records.find({ ...filter, [field]: text, _id: beyond(id) }, { sort: { _id: direction }, limit })
  if (equal.length === limit) return equal
  const others = await records.find({ ...filter, [field]: beyond(text) }, { sort: { [field]: direction }, limit: limit - equal.length })
  return [...equal, ...others]
}

function textAt(record: object, field: string): string {
  return String((record as Readonly<Record<string, unknown>>)[field])
}

/** A filter by a part of the name, and by the time of creation. */
export interface NameFilter {
  readonly nameContains?: string | null
  readonly since?: Date | null
  readonly until?: Date | null
}

/** A page of a list by time of creation or by name. */
export interface SortedPage extends PageArguments {
  readonly order?: 'asc' | 'desc' | null
  readonly sortBy?: 'created_at' | 'name' | null
}

/** Returns a test whether a name contains the words, in any case and any Unicode form. Null: no words are given. */
export function nameTest(nameContains: string | null | undefined): ((name: string) => boolean) | null {
  if (!nameContains) return null
  const wanted = folded(nameContains)
  return (name) => folded(name).includes(wanted)
}

function folded(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}
