import { KisError } from '../errors.ts'

/** Maximum and default number of items of one page. */
const MAX_PAGE_ITEMS = 100
const DEFAULT_PAGE_ITEMS = 20
/** Limit of counted items of a list. Counting this many in an index takes some 10 ms. */
const MAX_COUNTED_ITEMS = 100_000

/** Arguments of every list field of the contract. */
export interface PageArguments {
  readonly first?: number | null
  readonly after?: string | null
  readonly last?: number | null
  readonly before?: string | null
}

/** What a list reads from its store. */
export interface Page {
  /** Number of items of the page. */
  readonly size: number
  /** One more than `size`, which shows whether there is another page. */
  readonly limit: number
  /** Sort key of the last item seen, in the direction of reading; null: read from the first one on. */
  readonly from: string | null
  /** True: read against the order of the list. */
  readonly isBackward: boolean
}

/** A Relay connection. */
export interface Connection<T> {
  readonly edges: readonly { readonly node: T; readonly cursor: string }[]
  readonly pageInfo: {
    readonly hasNextPage: boolean
    readonly hasPreviousPage: boolean
    readonly startCursor: string | null
    readonly endCursor: string | null
  }
  /** Counts the items on all pages, up to `limit`. */
  readonly count: CountItems
}

/** Counts items, up to `limit`. */
export type CountItems = (limit: number) => number | Promise<number>

/**
 * Returns the page that the arguments request. `keyPattern` is the form of the list's sort keys, so that a cursor of
 * another list is refused.
 * @throws {KisError} `integer_below_min_value`, `integer_above_max_value` (param `first` or `last`)
 * @throws {KisError} `invalid_request` (param `after` or `before`): the cursor; (param `last`): both directions at once
 */
export function readPage(args: PageArguments, keyPattern: RegExp): Page {
  const isBackward = args.last != null || args.before != null
  if (isBackward && (args.first != null || args.after != null))
    throw new KisError('invalid_request', 'A page takes `first` with `after`, or `last` with `before`, but not both.', { param: 'last' })
  const [sizeName, keyName] = isBackward ? (['last', 'before'] as const) : (['first', 'after'] as const)
  const size = args[sizeName] ?? DEFAULT_PAGE_ITEMS
  if (size < 1) throw new KisError('integer_below_min_value', 'A page holds at least 1 item.', { param: sizeName })
  if (size > MAX_PAGE_ITEMS)
    throw new KisError('integer_above_max_value', `A page holds at most ${MAX_PAGE_ITEMS} items.`, { param: sizeName })
  const cursor = args[keyName]
  const page = { size, limit: size + 1, isBackward }
  if (cursor === undefined || cursor === null) return { ...page, from: null }
  const key = Buffer.from(cursor, 'base64url').toString()
  if (encodeCursor(key) !== cursor || !keyPattern.test(key))
    throw new KisError('invalid_request', 'The cursor is not from this list.', { param: keyName })
  return { ...page, from: key }
}

/**
 * Reads the page as `readPage` does, for a list whose sort keys are not ids: a cursor may hold the id of an item in
 * place of its key, because clients that build cursors themselves know only ids. `findKey` returns the sort key of an
 * item of the list.
 * @throws {KisError} as `readPage`
 */
export async function readPageById(
  args: PageArguments,
  keyPattern: RegExp,
  idPattern: RegExp,
  findKey: (id: string) => Promise<string | undefined>,
): Promise<Page> {
  const page = readPage(args, new RegExp(`${keyPattern.source}|${idPattern.source}`))
  if (page.from === null || !idPattern.test(page.from)) return page
  const from = await findKey(page.from)
  if (from === undefined)
    throw new KisError('invalid_request', 'This list has no such item to continue from.', { param: page.isBackward ? 'before' : 'after' })
  return { ...page, from }
}

/**
 * Returns the Relay connection of `items`, which were read with `page.limit` in the direction of reading. The extra
 * item is left out. `cutAt`: fewer items were read, and more follow after this cursor.
 */
export function toConnection<T>(
  items: readonly T[],
  { size, from, isBackward }: Page,
  toKey: (item: T) => string,
  count: CountItems,
  cutAt: string | null = null,
): Connection<T> {
  const read = items.slice(0, size)
  const edges = (isBackward ? read.toReversed() : read).map((node) => ({ node, cursor: encodeCursor(toKey(node)) }))
  const hasMore = cutAt !== null || items.length > size
  return {
    edges,
    pageInfo: {
      hasNextPage: isBackward ? from !== null : hasMore,
      hasPreviousPage: isBackward ? hasMore : from !== null,
      startCursor: (isBackward ? cutAt : null) ?? edges[0]?.cursor ?? null,
      endCursor: (isBackward ? null : cutAt) ?? edges.at(-1)?.cursor ?? null,
    },
    count,
  }
}

/** Returns the same page with other nodes. */
export function mapNodes<T, Node>({ edges, ...connection }: Connection<T>, toNode: (node: T) => Node): Connection<Node> {
  return { ...connection, edges: edges.map(({ node, cursor }) => ({ node: toNode(node), cursor })) }
}

/** Returns the field `totalCount` of the contract. */
export async function totalCount({ count }: Pick<Connection<unknown>, 'count'>): Promise<number | null> {
  const counted = await count(MAX_COUNTED_ITEMS + 1)
  return counted > MAX_COUNTED_ITEMS ? null : counted
}

export function encodeCursor(key: string): string {
  return Buffer.from(key).toString('base64url')
}
