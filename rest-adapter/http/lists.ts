import type { JsonObject } from './route.ts'

/** What list operations select beside their nodes. */
export const PAGE_INFO = 'pageInfo { hasNextPage }'

export interface ConnectionData<Node> {
  readonly edges: readonly { readonly node: Node; readonly cursor?: string }[]
  readonly pageInfo: { readonly hasNextPage: boolean }
}

/** What errors call the arguments of lists. */
export const PAGE_NAMES = { first: 'limit' }

/**
 * Arguments of a list operation from a checked query. A cursor is base64url of an item's sort key, and in most lists that key is the id.
 * `after` may be an id or a cursor: ids have an underscore, which base64url never makes of the keys' characters.
 */
export function pageVariables({ limit, after, order }: JsonObject): JsonObject {
  return {
    first: limit ?? 20,
    ...(typeof after === 'string' && { after: after.includes('_') ? Buffer.from(after).toString('base64url') : after }),
    ...(typeof order === 'string' && { order: order.toUpperCase() }),
  }
}

export function listOf<Node, Item>({ edges, pageInfo }: ConnectionData<Node>, toItem: (node: Node) => Item, idOf: (item: Item) => string) {
  return wholeList(
    edges.map(({ node }) => toItem(node)),
    idOf,
    pageInfo.hasNextPage,
  )
}

/** A list whose sort key is not the id, so that `last_id` is the cursor of the last item: what `after` takes on the next page. */
export function listByCursor<Node, Item extends { readonly id: string }>(connection: ConnectionData<Node>, toItem: (node: Node) => Item) {
  return { ...listOf(connection, toItem, idOf), last_id: connection.edges.at(-1)?.cursor ?? null }
}

/** A list that is all on one page, unless more is said to follow. */
export function wholeList<Item>(data: readonly Item[], idOf: (item: Item) => string, hasMore = false) {
  const first = data[0]
  const last = data.at(-1)
  return {
    object: 'list',
    data,
    has_more: hasMore,
    first_id: first === undefined ? null : idOf(first),
    last_id: last === undefined ? null : idOf(last),
  }
}

export const idOf = ({ id }: { readonly id: string }) => id
