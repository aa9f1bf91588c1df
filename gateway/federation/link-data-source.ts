import type { GraphQLDataSource } from '@apollo/gateway'
import { type GraphQLFormattedError, Kind, parse, type SelectionSetNode } from 'graphql'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { Link, LinkContext } from '../../subgraphs/common/link/link.ts'

/**
 * A subgraph as a data source of Apollo's executor. It calls our link with the caller, the request id and the signal of
 * the running operation.
 */
export function linkDataSource(link: Link): GraphQLDataSource {
  return {
    async process({ request, context }) {
      const { query = '', operationName, variables = {} } = request
      const { representations } = variables
      const unique = Array.isArray(representations) ? findUnique(representations) : undefined
      const operation = { query, operationName, variables: unique ? { ...variables, representations: unique.values } : variables }
      const { data, errors } = await link.execute(operation, context as LinkContext).catch((error: unknown) => {
        if (!(error instanceof KisError)) throw error
        const { message, extensions } = error
        return { data: undefined, errors: [{ message, extensions: { ...extensions } }] }
      })
      const [first] = (errors ?? []) as readonly GraphQLFormattedError[]
      // The field of entities as a whole is an error at a place that clients do not see.
      const ofAll = data === undefined || (data === null && Array.isArray(representations) && first?.path?.length === 1)
      if (ofAll && first) return { errors: placed(first, query, representations) }
      const answer: Answer = { ...(data !== undefined && { data }), ...(errors && { errors: errors as readonly GraphQLFormattedError[] }) }
      return unique ? fanOut(answer, unique.positions) : answer
    },
  }
}

type Answer = Awaited<ReturnType<GraphQLDataSource['process']>>

/**
 * Gives each distinct representation once, with the positions at which it stood; undefined when all are distinct. The
 * JS gateway does not deduplicate them itself.
 */
function findUnique(
  representations: readonly unknown[],
): { values: readonly unknown[]; positions: readonly (readonly number[])[] } | undefined {
  const found = new Map<string, { value: unknown; positions: number[] }>()
  representations.forEach((value, position) => {
    const key = JSON.stringify(value)
    const known = found.get(key)
    if (known) known.positions.push(position)
    else found.set(key, { value, positions: [position] })
  })
  if (found.size === representations.length) return undefined
  const distinct = [...found.values()]
  return { values: distinct.map(({ value }) => value), positions: distinct.map(({ positions }) => positions) }
}

function fanOut({ data, errors }: Answer, positions: readonly (readonly number[])[]): Answer {
  const answer: Answer = {}
  if (data !== undefined) {
    const received = data?._entities
    const entities: unknown[] = []
    if (Array.isArray(received)) {
      received.forEach((entity, index) => {
        // Apollo's executor writes into what it gets, so two places must not share an object.
        positions[index]?.forEach((position, copy) => {
          entities[position] = copy === 0 ? entity : structuredClone(entity)
        })
      })
    }
    answer.data = Array.isArray(received) ? { ...data, _entities: entities } : data
  }
  if (errors) {
    answer.errors = errors.flatMap((error): GraphQLFormattedError[] => {
      const [root, index, ...below] = error.path ?? []
      if (root !== '_entities' || typeof index !== 'number') return [error]
      const { message, extensions } = error
      return (positions[index] ?? []).map((position) => ({
        message,
        path: [root, position, ...below],
        ...(extensions && { extensions }),
      }))
    })
  }
  return answer
}

/** The error of a fetch that gave no data, at each field that it was for. */
function placed(
  { message, extensions = {} }: Pick<GraphQLFormattedError, 'message' | 'extensions'>,
  query: string,
  representations: unknown,
): readonly GraphQLFormattedError[] {
  return pathsOf(query, representations).map((path) => ({ message, path, extensions: { ...extensions } }))
}

type Path = readonly (string | number)[]

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
