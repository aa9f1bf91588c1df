import type { OperationText } from '../../schema/operations.ts'
import { NotFound } from '../../subgraphs/common/errors.ts'
import { type ConnectionData, PAGE_NAMES, pageVariables, readId, toList } from './lists.ts'
import type { ParamNames } from './param-names.ts'
import { created, deleted, type JsonObject, ok, type Route } from './route.ts'

/** Reads the resource whose ID is in the path. `read` returns null if there is none. */
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
  /** The noun for the ID in the path, in errors. */
  readonly owner?: string
  /** Converts the query to the variables. Default: those of a page. */
  readonly variables?: (query: JsonObject) => JsonObject
  readonly names?: ParamNames
}

/** Lists resources; if the path has an ID, those of that owner. `pick` returns nothing if there is no such owner. */
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

/** Runs an action on the resource whose ID is in the path; the action has no other input. */
export function actionRoute<Data>(
  method: 'POST' | 'DELETE',
  path: string,
  mutation: OperationText<Data, never>,
  toBody: (data: Data) => unknown,
  names?: ParamNames,
): Route {
  return { method, path, handle: async ({ execute, params: { id } }) => ok(toBody(await execute(mutation, { id }, names))) }
}

/** Deletes the resource whose ID is in the path. `object` is its type in the response. */
export function deleteRoute<Data>(path: string, mutation: OperationText<Data, never>, object: string, toId: (data: Data) => string): Route {
  return { method: 'DELETE', path, handle: async ({ execute, params: { id } }) => deleted(object, toId(await execute(mutation, { id }))) }
}

/** Creates a resource from the body. */
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

/** Changes the resource whose ID is in the path as the body says. */
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
