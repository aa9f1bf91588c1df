import type { GraphQLDataSource } from '@apollo/gateway'
import { type ExecutionResult, GraphQLError, Kind, parse, type SelectionSetNode } from 'graphql'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { Link, LinkContext, Operation } from '../../subgraphs/common/link/link.ts'

type ProcessOptions = Parameters<GraphQLDataSource['process']>[0]
type Response = Awaited<ReturnType<GraphQLDataSource['process']>>
type Path = readonly (string | number)[]
type Values = Record<string, unknown>

/** The context of one execution by `ApolloGateway`. */
export interface FetchContext extends LinkContext {
  /** A fetch whose result is known and is not sent, such as the event of a subscription. Without `query`: every fetch. */
  readonly known?: { readonly query?: string; readonly result: ExecutionResult } | undefined
}

/**
 * A subgraph as `ApolloGateway` calls it: our link, with the caller, the request id and the signal of the running
 * operation. It fetches each distinct entity once.
 */
export class LinkDataSource implements GraphQLDataSource {
  readonly #link: Link

  constructor(link: Link) {
    this.#link = link
  }

  async process({ request: { query = '', operationName, variables = {} }, context }: ProcessOptions): Promise<Response> {
    const { known } = context as FetchContext
    if (known && (known.query ?? query) === query) return attachErrors(known.result, query)
    const { representations } = variables as { readonly representations?: readonly Values[] }
    const keys = representations?.map((representation) => JSON.stringify(representation))
    const distinct = [...new Set(keys)]
    const isRepeated = keys !== undefined && distinct.length < keys.length
    const sent = isRepeated ? { ...variables, representations: distinct.map((key) => JSON.parse(key) as Values) } : variables
    const result = await this.send({ query, operationName, variables: sent }, context as FetchContext)
    const response = attachErrors(result, query, sent.representations)
    if (!isRepeated) return response
    const indexes = new Map(distinct.map((key, index) => [key, index]))
    return repeatEntities(
      response,
      keys.map((key) => indexes.get(key)!),
    )
  }

  /** Sends one fetch as it is. A failure of the link is an error of the result. */
  async send(operation: Operation, context: LinkContext): Promise<ExecutionResult> {
    try {
      return await this.#link.execute(operation, context)
    } catch (error) {
      if (!(error instanceof KisError)) throw error
      return { errors: [new GraphQLError(error.message, { extensions: { ...error.extensions } })] }
    }
  }
}

/** Places the error of a fetch that returned no data at each field that the fetch was for. */
export function attachErrors({ data, errors }: ExecutionResult, query: string, representations?: unknown): Response {
  const first = errors?.[0]
  if (!first) return { data } as Response
  // The field of entities as a whole is at a path that clients do not see.
  const hasNoData = data === undefined || (data === null && Array.isArray(representations) && first.path?.length === 1)
  if (!hasNoData) return { data, errors } as Response
  const { message, extensions = {} } = first
  return { errors: pathsOf(query, representations).map((path) => ({ message, path, extensions: { ...extensions } })) }
}

function pathsOf(query: string, representations: unknown): readonly Path[] {
  const operation = parse(query, { noLocation: true }).definitions.find(({ kind }) => kind === Kind.OPERATION_DEFINITION)
  if (operation?.kind !== Kind.OPERATION_DEFINITION) return []
  if (!Array.isArray(representations)) return keysOf(operation.selectionSet).map((key) => [key])
  const [entities] = operation.selectionSet.selections
  if (entities?.kind !== Kind.FIELD || !entities.selectionSet) return []
  const { selectionSet } = entities
  return representations.flatMap(({ __typename }: { readonly __typename?: string }, index) =>
    keysOf(selectionSet, __typename).map((key) => ['_entities', index, key]),
  )
}

/** Names of fields in the result, of fragments those on this type. Query plans have no named fragments. */
function keysOf({ selections }: SelectionSetNode, type?: string): readonly string[] {
  return selections.flatMap((selection) => {
    if (selection.kind === Kind.FIELD) return selection.name.value === '__typename' ? [] : [(selection.alias ?? selection.name).value]
    if (selection.kind !== Kind.INLINE_FRAGMENT) return []
    const on = selection.typeCondition?.name.value
    return on === undefined || type === undefined || on === type ? keysOf(selection.selectionSet, type) : []
  })
}

/** Gives each representation its entity and its errors. `indexes`: for each representation, that of its distinct entity. */
function repeatEntities({ data, errors = [] }: Response, indexes: readonly number[]): Response {
  const entities: unknown = data?._entities
  const repeated = errors.flatMap((error) => {
    const [root, index, ...below] = error.path ?? []
    if (root !== '_entities' || typeof index !== 'number') return [error]
    return indexes.flatMap((each, at) => (each === index ? [{ ...error, path: [root, at, ...below] }] : []))
  })
  return {
    // Later fetches write into what they find, so two places must not share an object.
    data: Array.isArray(entities) ? { _entities: indexes.map((index) => copyOf(entities[index])) } : data,
    ...(repeated.length > 0 && { errors: repeated }),
  } as Response
}

/** Copies objects and lists. Everything else, such as a vector of a subgraph in this process, is shared. */
function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf)
  if (typeof value !== 'object' || value === null) return value
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  // Clients choose the names in it, `__proto__` too.
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, copyOf(each)]))
}
