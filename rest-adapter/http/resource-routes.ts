import type { OperationText } from '../../schema/operations.ts'
import { NotFound } from '../../subgraphs/common/errors.ts'
import { type ConnectionData, PAGE_NAMES, pageVariables, readId, toList } from './lists.ts'
import type { ParamNames } from './param-names.ts'
import { created, deleted, type JsonObject, ok, type Route } from './route.ts'

/** Reads the thing whose id is in the path. `read` returns null if there is none. */
export function readRoute<Data>(path: string, query: OperationText<Data, never>, noun: string, read: (data: Data) => object | null): Route {
  return {
    method: 'GET',
    path,
    async handle({ execute, params: { id } }) {
      const found = read(await execute(query, { id }))
      if (!found) throw new NotFound(noun, id!)
      return ok(found)
    },
  }
}

interface ListOptions {
  /** What the id in the path stands for. */
  readonly owner?: string
  /** Default: a page. */
  readonly variables?: (query: JsonObject) => JsonObject
  readonly names?: ParamNames
}

/** Lists things, those of the owner whose id is in the path if it has one. `pick` returns nothing if there is no such owner. */
export function listRoute<Data, Node, Item extends { readonly id: string }>(
  path: string,
  query: OperationText<Data, never>,
  pick: (data: Data) => ConnectionData<Node> | null | undefined,
  toItem: (node: Node) => Item,
  { owner = '', variables = pageVariables, names = PAGE_NAMES }: ListOptions = {},
): Route {
  return {
    method: 'GET',
    path,
    async handle({ execute, params, query: queryParams }) {
      const connection = pick(await execute(query, { ...params, ...variables(queryParams) }, names))
      if (!connection) throw new NotFound(owner, params.id!)
      return ok(toList(connection, toItem, readId))
    },
  }
}

/** Does something with the thing whose id is in the path, which nothing else describes. */
export function actionRoute<Data>(
  method: 'POST' | 'DELETE',
  path: string,
  mutation: OperationText<Data, never>,
  toBody: (data: Data) => unknown,
  names?: ParamNames,
): Route {
  return { method, path, handle: async ({ execute, params: { id } }) => ok(toBody(await execute(mutation, { id }, names))) }
}

/** Deletes the thing whose id is in the path. `object` is its type in the answer. */
export function deleteRoute<Data>(path: string, mutation: OperationText<Data, never>, object: string, toId: (data: Data) => string): Route {
  return { method: 'DELETE', path, handle: async ({ execute, params: { id } }) => deleted(object, toId(await execute(mutation, { id }))) }
}

/** Creates a thing from the body. */
export function createRoute<Data>(
  path: string,
  mutation: OperationText<Data, never>,
  toInput: (body: JsonObject) => JsonObject,
  toBody: (data: Data) => unknown,
  names?: ParamNames,
): Route {
  return {
    method: 'POST',
    path,
    handle: async ({ execute, body }) => created(toBody(await execute(mutation, { input: toInput(body) }, names))),
  }
}

/** Changes the thing whose id is in the path by the body. */
export function updateRoute<Data>(
  path: string,
  mutation: OperationText<Data, never>,
  toInput: (body: JsonObject) => JsonObject,
  toBody: (data: Data) => unknown,
  names?: ParamNames,
): Route {
  return {
    method: 'PATCH',
    path,
    handle: async ({ execute, body, params: { id } }) => ok(toBody(await execute(mutation, { input: { id, ...toInput(body) } }, names))),
  }
}
