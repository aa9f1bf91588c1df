import type { JsonObject } from './route.ts'

/** Selected by every list operation beside its nodes. */
export const PAGE_INFO = 'pageInfo { hasNextPage }'

export interface ConnectionData<Node> {
  readonly edges: readonly { readonly node: Node; readonly cursor?: string }[]
  readonly pageInfo: { readonly hasNextPage: boolean }
}

/** Names of list arguments in errors. */
export const PAGE_NAMES = { first: 'limit' }

/**
 * Turns a checked query into the arguments of a list operation. A cursor is the base64url of an item's sort key, which
 * in most lists is its id. `after` may be an id or a cursor: ids have an underscore, which no cursor has.
 */
export function pageVariables({ limit, after, order }: JsonObject): JsonObject {
  return {
    first: limit ?? 20,
    ...(typeof after === 'string' && { after: after.includes('_') ? Buffer.from(after).toString('base64url') : after }),
    ...(typeof order === 'string' && { order: order.toUpperCase() }),
  }
}

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

/**
 * A list whose sort key is not the id. `last_id` is the cursor of the last item, to be sent as `after` for the next
 * page.
 */
export function listByCursor<Node, Item extends { readonly id: string }>(connection: ConnectionData<Node>, toItem: (node: Node) => Item) {
  return { ...toList(connection, toItem, readId), last_id: connection.edges.at(-1)?.cursor ?? null }
}

/** A list on a single page, unless the caller says that more follows. */
export function wholeList<Item>(data: readonly Item[], readId: (item: Item) => string, hasMore = false) {
  const first = data[0]
  const last = data.at(-1)
  return {
    object: 'list',
    data,
    has_more: hasMore,
    first_id: first === undefined ? null : readId(first),
    last_id: last === undefined ? null : readId(last),
  }
}

export const readId = ({ id }: { readonly id: string }) => id
