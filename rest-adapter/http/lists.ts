import type { JsonObject } from './route.ts'
import { toInstant } from './values.ts'

/** Selected by every list operation in addition to its nodes. */
export const PAGE_INFO = 'pageInfo { hasNextPage }'

/** A page of a GraphQL connection. */
export interface ConnectionData<Node> {
  readonly edges: readonly { readonly node: Node; readonly cursor?: string }[]
  readonly pageInfo: { readonly hasNextPage: boolean }
}

/** Names of list arguments in errors. */
export const PAGE_NAMES = { first: 'limit' }

/**
 * Converts a checked query into the arguments of a list operation. A cursor is the base64url of an item's sort key,
 * which in most lists is its ID. `after` may be an ID or a cursor: IDs have an underscore, which no cursor has.
 */
export function pageVariables({ limit, after, order }: JsonObject): JsonObject {
  return {
    first: limit ?? 20,
    ...(typeof after === 'string' && { after: after.includes('_') ? Buffer.from(after).toString('base64url') : after }),
    ...(typeof order === 'string' && { order: order.toUpperCase() }),
  }
}

/** Converts a page of a connection to a list of the REST API. */
export function toList<Node, Item>(
  { edges, pageInfo }: ConnectionData<Node>,
  toItem: (node: Node) => Item,
  readId: (item: Item) => string,
) {
  return wholeList(
    edges.map(({ node }) => toItem(node)),
    readId,
    pageInfo.hasNextPage,
  )
}

/** Selected by lists that are filtered by name. */
export const NAMED_PAGE_INFO = 'pageInfo { hasNextPage endCursor }'

const TIME_NAMES = { 'filter.since': 'since', 'filter.until': 'until' }
/** Names of the arguments of lists of runs in errors. */
export const RUN_PAGE_NAMES = { ...PAGE_NAMES, ...TIME_NAMES, 'filter.status': 'status' }
/** Names of the arguments of `namedPageVariables` in errors. */
export const NAMED_PAGE_NAMES = { ...PAGE_NAMES, ...TIME_NAMES, 'filter.nameContains': 'name_contains', sortBy: 'sort_by' }

/**
 * Like `pageVariables`, for a list with names. A cursor of a sort by name may have underscores, and no ID looks like
 * one.
 */
export function namedPageVariables(query: JsonObject): JsonObject {
  const { after, name_contains: nameContains, sort_by: sortBy } = query
  return {
    ...pageVariables(query),
    ...(sortBy === 'name' && { sortBy: 'NAME', ...(typeof after === 'string' && { after }) }),
    ...filterVariables({ nameContains, ...timeFilter(query) }),
  }
}

/** Like `pageVariables`, for a list of runs. */
export function runPageVariables(query: JsonObject): JsonObject {
  const { status } = query
  const filter = { status: typeof status === 'string' ? status.toUpperCase() : undefined, ...timeFilter(query) }
  return { ...pageVariables(query), ...filterVariables(filter) }
}

const timeFilter = ({ since, until }: JsonObject): JsonObject => ({
  since: since === undefined ? undefined : toInstant(since as number),
  until: until === undefined ? undefined : toInstant(until as number),
})

function filterVariables(filter: JsonObject): JsonObject {
  return Object.values(filter).every((value) => value === undefined) ? {} : { filter }
}

/**
 * Returns the list for `namedPageVariables`. When IDs cannot mark a position, because the list is sorted by name or its
 * page may end after an omitted item, `last_id` is a cursor, even on a page without items.
 */
export function namedList<Node, Item extends { readonly id: string }>(
  connection: ConnectionData<Node> & { readonly pageInfo: { readonly endCursor: string | null } },
  toItem: (node: Node) => Item,
  { name_contains, sort_by }: JsonObject,
) {
  const isByName = name_contains !== undefined || sort_by === 'name'
  return { ...toList(connection, toItem, readId), ...(isByName && { last_id: connection.pageInfo.endCursor }) }
}

/**
 * Returns a list whose sort key is not the ID. `last_id` is the cursor of the last item; clients send it as `after` for
 * the next page.
 */
export function listByCursor<Node, Item extends { readonly id: string }>(connection: ConnectionData<Node>, toItem: (node: Node) => Item) {
  return { ...toList(connection, toItem, readId), last_id: connection.edges.at(-1)?.cursor ?? null }
}

/** Returns a list on a single page, unless the caller says that more follows. */
export function wholeList<Item>(data: readonly Item[], readId: (item: Item) => string, hasMore = false) {
  const first = data[0]
  const last = data.at(-1)
  return {
    object: 'list' as const,
    data,
    has_more: hasMore,
    first_id: first === undefined ? null : readId(first),
    last_id: last === undefined ? null : readId(last),
  }
}

export const readId = ({ id }: { readonly id: string }) => id
