import { type GraphQLErrorExtensions, Kind, parse, type SelectionSetNode } from 'graphql'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { Link, LinkContext } from '../../subgraphs/common/link/link.ts'

/** One fetch of a plan, as a subgraph gets it. */
export interface FetchedOperation {
  readonly query: string
  readonly operationName: string | undefined
  readonly variables: Readonly<Record<string, unknown>>
}

type Path = readonly (string | number)[]

/** An error of a subgraph, as plain JSON or of this process. */
export interface FetchedError {
  readonly message: string
  readonly path?: Path | undefined
  readonly extensions?: GraphQLErrorExtensions | undefined
}

/** What a subgraph gave. Whoever asked may write into `data`. */
export interface Fetched {
  readonly data?: Record<string, unknown> | null | undefined
  readonly errors?: readonly FetchedError[] | undefined
}

/** A subgraph as the executor of plans calls it. */
export type SubgraphService = (operation: FetchedOperation, context: LinkContext) => Promise<Fetched>

/** Calls our link with the caller, the request id and the signal of the running operation. */
export function subgraphService(link: Link): SubgraphService {
  return async (operation, context) => {
    const { data, errors } = await link.execute(operation, context).catch((error: unknown) => {
      if (!(error instanceof KisError)) throw error
      const { message, extensions } = error
      return { data: undefined, errors: [{ message, extensions: { ...extensions } }] }
    })
    if (!errors) return { data }
    const { representations } = operation.variables
    const [first] = errors as readonly FetchedError[]
    // The field of entities as a whole is an error at a place that clients do not see.
    const ofAll = data === undefined || (data === null && Array.isArray(representations) && first?.path?.length === 1)
    if (ofAll && first) return { errors: placed(first, operation.query, representations) }
    return { data, errors }
  }
}

/** The error of a fetch that gave no data, at each field that it was for. */
function placed({ message, extensions = {} }: FetchedError, query: string, representations: unknown): readonly FetchedError[] {
  return pathsOf(query, representations).map((path) => ({ message, path, extensions: { ...extensions } }))
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

/** Names in the answer, of fragments those on this type. Query plans have no named fragments. */
export function keysOf({ selections }: SelectionSetNode, type?: string): readonly string[] {
  return selections.flatMap((selection) => {
    if (selection.kind === Kind.FIELD) return selection.name.value === '__typename' ? [] : [(selection.alias ?? selection.name).value]
    if (selection.kind !== Kind.INLINE_FRAGMENT) return []
    const on = selection.typeCondition?.name.value
    return on === undefined || type === undefined || on === type ? keysOf(selection.selectionSet, type) : []
  })
}
