import type { FetchNode, PlanNode, QueryPlanSelectionNode } from '@apollo/query-planner'
import { type ExecutionResult, GraphQLError } from 'graphql'
import type { LinkContext } from '../../subgraphs/common/link/link.ts'
import type { AnswerShapes } from './answer-shapes.ts'
import { applyRewrites, isOfType } from './rewrites.ts'
import type { Fetched, FetchedError, SubgraphService } from './subgraph-service.ts'
import type { SupergraphTypes } from './supergraph-types.ts'
import { copyOf, isValues, mergeValues, setValue, type Values, type Variables } from './values.ts'

export type Services = Readonly<Record<string, SubgraphService>>

/** A plan, and how its data becomes the answer. Kept by operation. */
export interface ExecutablePlan {
  /** Undefined: nothing is asked of a subgraph. */
  readonly node: PlanNode | undefined
  readonly shapes: AnswerShapes
}

/** One execution of a plan. */
interface Run {
  readonly types: SupergraphTypes
  readonly services: Services
  readonly variables: Variables
  readonly context: LinkContext
  readonly data: Values
  readonly errors: unknown[]
}

type Path = readonly (string | number)[]

/** Where a node of the plan works: at the values at this path of the data. `@` stands for all items of a list. */
interface Cursor {
  readonly path: Path
  readonly values: readonly Values[]
}

const EACH = '@'
/** Code of an error to which the subgraph gave none. */
const WITHOUT_CODE = 'DOWNSTREAM_SERVICE_ERROR'

/**
 * Runs the plan of a query or mutation, and gives the answer as clients see it. The variables must be coerced. It does
 * what `executeQueryPlan` of @apollo/gateway does (`test/gateway/apollo-executor.test.ts` compares them), but reads the
 * operation once for all its runs, and fetches each distinct entity once.
 */
export async function executePlan(
  { node, shapes }: ExecutablePlan,
  types: SupergraphTypes,
  services: Services,
  variables: Variables,
  context: LinkContext,
): Promise<ExecutionResult> {
  const run: Run = { types, services, variables, context, data: {}, errors: [] }
  if (node) await runNode(run, node, { path: [], values: [run.data] })
  try {
    const data = shapes.answerOf(run.data, variables)
    return run.errors.length === 0 ? { data } : { errors: run.errors as GraphQLError[], data }
  } catch (error) {
    const cause = error instanceof Error ? error : new Error(String(error))
    return { errors: [error instanceof GraphQLError ? error : new GraphQLError(cause.message, { originalError: cause })] }
  }
}

async function runNode(run: Run, node: PlanNode, cursor: Cursor): Promise<void> {
  switch (node.kind) {
    case 'Sequence':
      for (const each of node.nodes) await runNode(run, each, cursor)
      return
    case 'Parallel':
      await Promise.all(node.nodes.map((each) => runNode(run, each, cursor)))
      return
    case 'Flatten': {
      const values = cursor.values.flatMap((value) => valuesAt(value, node.path, 0))
      if (values.length > 0) await runNode(run, node.node, { path: [...cursor.path, ...node.path], values })
      return
    }
    case 'Fetch':
      try {
        await (node.requires ? fetchEntities(run, node, node.requires, cursor) : fetchRoot(run, node, cursor))
      } catch (error) {
        run.errors.push(error)
      }
      return
    case 'Condition': {
      const condition = Object.hasOwn(run.variables, node.condition) ? run.variables[node.condition] : undefined
      if (typeof condition !== 'boolean') throw new Error(`the variable $${node.condition} of a condition is not a boolean`)
      const branch = condition ? node.ifClause : node.elseClause
      if (branch) await runNode(run, branch, cursor)
      return
    }
    case 'Defer':
      throw new Error('a plan has @defer, which nothing here asks for')
  }
}

/** The objects at a path. */
function valuesAt(value: unknown, path: Path, depth: number): readonly Values[] {
  if (value === undefined || value === null) return []
  if (depth === path.length) return Array.isArray(value) ? value.filter(isValues) : [value as Values]
  const part = path[depth]!
  if (part === EACH) return (value as unknown[]).flatMap((item) => valuesAt(item, path, depth + 1))
  return valuesAt(Object.hasOwn(value, part) ? (value as Values)[part] : undefined, path, depth + 1)
}

async function fetchRoot(run: Run, fetch: FetchNode, cursor: Cursor): Promise<void> {
  const { data, errors } = await send(run, fetch, variablesOf(run, fetch))
  for (const error of errors ?? []) run.errors.push(errorOf(error, fetch, error.path && [...cursor.path, ...error.path]))
  if (!data) return
  applyRewrites(run.types, fetch.outputRewrites, data)
  for (const value of cursor.values) mergeValues(value, data)
}

/** An entity that is asked for once, and the places where its values belong. */
interface Wanted {
  readonly representation: Values
  readonly places: number[]
}

async function fetchEntities(run: Run, fetch: FetchNode, requires: readonly QueryPlanSelectionNode[], cursor: Cursor): Promise<void> {
  const wanted = findWanted(run, fetch, requires, cursor.values)
  if (wanted.length === 0) return
  const representations = wanted.map(({ representation }) => representation)
  const { data, errors } = await send(run, fetch, { ...variablesOf(run, fetch), representations })
  if (errors) run.errors.push(...placedErrors(run, fetch, cursor, wanted, errors))
  if (!data) return
  const entities = data._entities
  if (!Array.isArray(entities)) throw new Error('Expected "data._entities" in response to be an array')
  if (entities.length !== wanted.length) throw new Error(`Expected "data._entities" to contain ${wanted.length} elements`)
  for (let i = 0; i < wanted.length; i++) {
    if (!isValues(entities[i])) continue
    const { places } = wanted[i]!
    for (let copy = places.length - 1; copy >= 0; copy--) {
      // Later fetches write into what they find, so two places must not share an object.
      const entity: Values = copy === 0 ? entities[i] : copyOf(entities[i])
      const value = cursor.values[places[copy]!]!
      if (!entity.__typename) entity.__typename = value.__typename
      applyRewrites(run.types, fetch.outputRewrites, entity)
      mergeValues(value, entity)
    }
  }
}

/** Each distinct entity of the values, in order. */
function findWanted(
  { types }: Run,
  { inputRewrites }: FetchNode,
  requires: readonly QueryPlanSelectionNode[],
  values: readonly Values[],
): readonly Wanted[] {
  const found = new Map<string, Wanted>()
  for (const [place, value] of values.entries()) {
    const representation = selectRequired(types, value, requires)
    if (!representation?.__typename) continue
    applyRewrites(types, inputRewrites, representation)
    const key = JSON.stringify(representation)
    const known = found.get(key)
    if (known) known.places.push(place)
    else found.set(key, { representation, places: [place] })
  }
  return [...found.values()]
}

/** What a subgraph needs to know of a value; null: the value does not have it. */
function selectRequired(types: SupergraphTypes, value: Values, selections: readonly QueryPlanSelectionNode[]): Values | null {
  const selected: Values = {}
  for (const selection of selections) {
    if (selection.kind === 'InlineFragment') {
      if (!selection.typeCondition || !isOfType(types, value, selection.typeCondition)) continue
      const inside = selectRequired(types, value, selection.selections)
      if (inside) mergeValues(selected, inside)
      continue
    }
    const name = selection.alias ?? selection.name
    const found = Object.hasOwn(value, name) ? value[name] : undefined
    if (found === undefined) return null
    const below = selection.selections
    const selectBelow = (item: unknown) => (below && isValues(item) ? selectRequired(types, item, below) : below ? null : item)
    setValue(selected, name, Array.isArray(found) ? found.map(selectBelow) : selectBelow(found))
  }
  return selected
}

function variablesOf({ variables }: Run, { variableUsages = [] }: FetchNode): Values {
  const used: Values = {}
  for (const name of variableUsages)
    if (Object.hasOwn(variables, name) && variables[name] !== undefined) setValue(used, name, variables[name])
  return used
}

function send({ services, context }: Run, { serviceName, operation, operationName }: FetchNode, variables: Values): Promise<Fetched> {
  return services[serviceName]!({ query: operation, operationName, variables }, context)
}

/** The errors about entities, at each place that an entity has in the answer. */
function placedErrors(
  run: Run,
  fetch: FetchNode,
  { path }: Cursor,
  wanted: readonly Wanted[],
  errors: readonly FetchedError[],
): readonly GraphQLError[] {
  const found = pathsAt(run.data, path, 0, [])
  return errors.flatMap((error) => {
    const [root, index, ...below] = error.path ?? []
    if (root !== '_entities' || typeof index !== 'number') return [errorOf(error, fetch, error.path && [...path, ...error.path])]
    return (wanted[index]?.places ?? []).map((place) => errorOf(error, fetch, [...(found[place] ?? []), ...below]))
  })
}

/** The path of each object at a path with `@`, in the order of `valuesAt`. */
function pathsAt(value: unknown, path: Path, depth: number, parent: Path): readonly Path[] {
  if (value === undefined || value === null) return []
  if (depth === path.length) return Array.isArray(value) ? value.flatMap((item, i) => (isValues(item) ? [[...parent, i]] : [])) : [parent]
  const part = path[depth]!
  if (part === EACH) return (value as unknown[]).flatMap((item, i) => pathsAt(item, path, depth + 1, [...parent, i]))
  return pathsAt(Object.hasOwn(value, part) ? (value as Values)[part] : undefined, path, depth + 1, [...parent, part])
}

function errorOf(error: FetchedError, { serviceName }: FetchNode, path: Path | undefined): GraphQLError {
  const { message, extensions } = error
  return new GraphQLError(message || `Error while fetching subquery from service "${serviceName}"`, {
    originalError: error as Error,
    path: path ?? null,
    extensions: { code: WITHOUT_CODE, ...extensions, serviceName },
  })
}
