import type { OperationText } from '../../schema/operations.ts'
import { NotFound } from '../../subgraphs/common/errors.ts'
import type { BodyOf, ItemOf, ResponseOf, RestOperation } from '../contract/build.ts'
import { type ConnectionData, PAGE_NAMES, pageVariables, readId, toList } from './lists.ts'
import type { ParamNames } from './param-names.ts'
import { created, deleted, type JsonObject, ok, type Route } from './route.ts'

/** Reads the resource whose ID is in the path. `read` returns null if there is none. */
export function readRoute<O extends RestOperation, Data>(
  operation: O,
  query: OperationText<Data, never>,
  noun: string,
  read: (data: Data) => ResponseOf<O> | null,
): Route {
  return {
    operation,
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
export function listRoute<O extends RestOperation, Data, Node>(
  operation: O,
  query: OperationText<Data, never>,
  pick: (data: Data) => ConnectionData<Node> | null | undefined,
  toItem: (node: Node) => ItemOf<O> & { readonly id: string },
  { owner = '', variables = pageVariables, names = PAGE_NAMES }: ListOptions = {},
): Route {
  return {
    operation,
    async handle({ execute, params, query: queryParams }) {
      const connection = pick(await execute(query, { ...params, ...variables(queryParams) }, names))
      if (!connection) throw new NotFound(owner, params.id!)
      return ok(toList(connection, toItem, readId))
    },
  }
}

/** Runs an action on the resource whose ID is in the path; the action has no other input. */
export function actionRoute<O extends RestOperation, Data>(
  operation: O,
  mutation: OperationText<Data, never>,
  toBody: (data: Data) => ResponseOf<O>,
  names?: ParamNames,
): Route {
  return { operation, handle: async ({ execute, params: { id } }) => ok(toBody(await execute(mutation, { id }, names))) }
}

/** Deletes the resource whose ID is in the path. `object` is its type in the response. */
export function deleteRoute<Data>(
  operation: RestOperation,
  mutation: OperationText<Data, never>,
  object: string,
  toId: (data: Data) => string,
): Route {
  return { operation, handle: async ({ execute, params: { id } }) => deleted(object, toId(await execute(mutation, { id }))) }
}

/** Creates a resource from the body. */
export function createRoute<O extends RestOperation, Data>(
  operation: O,
  mutation: OperationText<Data, never>,
  toInput: (body: BodyOf<O>) => JsonObject,
  toBody: (data: Data) => ResponseOf<O>,
  names?: ParamNames,
): Route {
  return {
    operation,
    handle: async ({ execute, body }) => created(toBody(await execute(mutation, { input: toInput(body as BodyOf<O>) }, names))),
  }
}

/** Changes the resource whose ID is in the path as the body says. */
export function updateRoute<O extends RestOperation, Data>(
  operation: O,
  mutation: OperationText<Data, never>,
  toInput: (body: BodyOf<O>) => JsonObject,
  toBody: (data: Data) => ResponseOf<O>,
  names?: ParamNames,
): Route {
  return {
    operation,
    async handle({ execute, body, params: { id } }) {
      return ok(toBody(await execute(mutation, { input: { id, ...toInput(body as BodyOf<O>) } }, names)))
    },
  }
}
