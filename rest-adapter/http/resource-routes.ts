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
    async handle({ ask, params: { id } }) {
      const found = read(await ask(query, { id }))
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
    async handle({ ask, params, query: asked }) {
      const connection = pick(await ask(query, { ...params, ...variables(asked) }, names))
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
  return { method, path, handle: async ({ ask, params: { id } }) => ok(toBody(await ask(mutation, { id }, names))) }
}

/** Deletes the thing whose id is in the path. `object` is its type in the answer. */
export function deleteRoute<Data>(path: string, mutation: OperationText<Data, never>, object: string, toId: (data: Data) => string): Route {
  return { method: 'DELETE', path, handle: async ({ ask, params: { id } }) => deleted(object, toId(await ask(mutation, { id }))) }
}

/** Creates a thing from the body. */
export function createRoute<Data>(
  path: string,
  mutation: OperationText<Data, never>,
  toInput: (body: JsonObject) => JsonObject,
  toBody: (data: Data) => unknown,
  names?: ParamNames,
): Route {
  return { method: 'POST', path, handle: async ({ ask, body }) => created(toBody(await ask(mutation, { input: toInput(body) }, names))) }
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
    handle: async ({ ask, body, params: { id } }) => ok(toBody(await ask(mutation, { input: { id, ...toInput(body) } }, names))),
  }
}
