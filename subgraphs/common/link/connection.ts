import { KisError } from '../errors.ts'

/** Most items of one page, and the default. */
export const MAX_PAGE_ITEMS = 100
export const DEFAULT_PAGE_ITEMS = 20

/** Arguments of every list field of the contract. */
export interface PageArguments {
  readonly first?: number | null
  readonly after?: string | null
}

/**
 * What a list reads from its store. `limit` is one more than the page holds, which shows whether there is a next page.
 */
export interface Page {
  readonly first: number
  readonly limit: number
  /** Sort key of the last item seen; null: the first page. */
  readonly after: string | null
}

export interface Connection<T> {
  readonly edges: readonly { readonly node: T; readonly cursor: string }[]
  readonly pageInfo: {
    readonly hasNextPage: boolean
    readonly hasPreviousPage: boolean
    readonly startCursor: string | null
    readonly endCursor: string | null
  }
}

/**
 * Gives the page that the arguments ask for. `keyPattern` is the form of the list's sort keys, so that a cursor of
 * another list is refused.
 * @throws {KisError} `integer_below_min_value`, `integer_above_max_value` (param `first`)
 * @throws {KisError} `invalid_request` (param `after`)
 */
export function readPage({ first, after }: PageArguments, keyPattern: RegExp): Page {
  const count = first ?? DEFAULT_PAGE_ITEMS
  if (count < 1) throw new KisError('integer_below_min_value', 'A page holds at least 1 item.', { param: 'first' })
  if (count > MAX_PAGE_ITEMS)
    throw new KisError('integer_above_max_value', `A page holds at most ${MAX_PAGE_ITEMS} items.`, { param: 'first' })
  const page = { first: count, limit: count + 1 }
  if (after === undefined || after === null) return { ...page, after: null }
  const key = Buffer.from(after, 'base64url').toString()
  if (encodeCursor(key) !== after || !keyPattern.test(key))
    throw new KisError('invalid_request', 'The cursor is not one that this list gave.', { param: 'after' })
  return { ...page, after: key }
}

/**
 * As `readPage`, for a list whose sort keys are not ids: a cursor may hold the id of an item in place of its key.
 * Clients that page by themselves know nothing else. `findKey` gives the sort key of an item of the list.
 * @throws {KisError} as `readPage`
 */
export async function readPageById(
  args: PageArguments,
  keyPattern: RegExp,
  idPattern: RegExp,
  findKey: (id: string) => Promise<string | undefined>,
): Promise<Page> {
  const page = readPage(args, new RegExp(`${keyPattern.source}|${idPattern.source}`))
  if (page.after === null || !idPattern.test(page.after)) return page
  const after = await findKey(page.after)
  if (after === undefined) throw new KisError('invalid_request', 'This list has no such item to continue after.', { param: 'after' })
  return { ...page, after }
}

/**
 * Gives the Relay connection of `items`, which were read with `page.limit`. The extra item is left out. `isCut`: fewer
 * were read, and more follow.
 */
export function toConnection<T>(items: readonly T[], page: Page, toKey: (item: T) => string, isCut = false): Connection<T> {
  const edges = items.slice(0, page.first).map((node) => ({ node, cursor: encodeCursor(toKey(node)) }))
  return {
    edges,
    pageInfo: {
      hasNextPage: isCut || items.length > page.first,
      hasPreviousPage: page.after !== null,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  }
}

function encodeCursor(key: string): string {
  return Buffer.from(key).toString('base64url')
}
