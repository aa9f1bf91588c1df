import {
  type ExecutionResult,
  type GraphQLAbstractType,
  GraphQLError,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  locatedError,
  OperationTypeNode,
} from 'graphql'
import { compileArguments } from './input-values.ts'
import { collectFields, type FieldNodes, type PlainOperation } from './plain-operation.ts'

type Arguments = Readonly<Record<string, unknown>>
/** An object or a list of the answer. */
type Holder = Record<string | number, unknown>

/** Where an object or a list is: at `holder[key]`, unless an error has made that or something above it null. */
interface Place {
  readonly above: Place | null
  readonly holder: Holder
  readonly key: string | number
  readonly isNullable: boolean
  readonly value: Holder
}

/** What the runs of an operation have in common if they differ in the root value alone. */
interface Given {
  /** Has the schema alone. `subgraphSchema` refuses resolvers that take more. */
  readonly info: GraphQLResolveInfo
  readonly context: unknown
  readonly variables: Arguments
  /** By the number of the field: it has the same arguments in all objects. */
  readonly args: (Arguments | undefined)[]
}

interface Run extends Given {
  readonly errors: GraphQLError[]
  data: Holder | null
  /** Values that resolvers give later and have not given yet. */
  missing: number
  /** Called when none is missing any more. */
  whenComplete: () => void
}

/** Gives the value that belongs at `holder[key]` for one that is not a promise. Throws what is wrong with it. */
type Complete = (run: Run, value: unknown, holder: Holder, key: string | number, above: Place | null) => unknown

/** A field of the objects of one type, or the items of a list. */
interface Slot {
  readonly nodes: FieldNodes
  readonly isNullable: boolean
  readonly complete: Complete
}

interface Field extends Slot {
  readonly key: string
  readonly read: (run: Run, source: unknown) => unknown
}

/** The fields of an object. */
type Fields = readonly Field[]
type FieldsOf = (type: GraphQLObjectType, nodes: FieldNodes) => Fields

/** A field of one type, while its functions are made. */
interface Site {
  readonly schema: GraphQLSchema
  readonly nodes: FieldNodes
  /** Names the field in errors, such as `Document.file`. */
  readonly what: string
  /** Gives the fields of its objects. */
  readonly below: FieldsOf
}

const NO_ARGUMENTS: Arguments = Object.freeze({})

/** Runs of one operation with the same context and variables. */
export interface BoundOperation {
  /** Never rejects. Waits for every resolver that began, also where an error has made null what it answers for. */
  execute(rootValue?: unknown): ExecutionResult | Promise<ExecutionResult>
  /**
   * Opens the events of a subscription, each of which is the root value of an execution. Throws what its resolver
   * throws, with the path.
   */
  subscribe(): Promise<AsyncIterable<unknown>>
}

/** The variables must be coerced. */
export type CompiledOperation = (context: unknown, variables: Arguments) => BoundOperation

/**
 * Makes the functions that answer an operation, once for all its runs; those of an object when it first occurs. They
 * answer as graphql-js does, which looks up the fields and the arguments anew for each object, and makes several
 * promises for each value that comes later.
 */
export function compileOperation(schema: GraphQLSchema, { operation, fragments }: PlainOperation): CompiledOperation {
  const info = { schema } as GraphQLResolveInfo
  let numbered = 0
  const next = () => numbered++
  const fieldsOf = (type: GraphQLObjectType, selectionSets: Parameters<typeof collectFields>[3]): Fields =>
    [...collectFields(schema, fragments, type, selectionSets)].map(([key, nodes]) => fieldOf(type, key, nodes))
  const below: FieldsOf = (type, nodes) =>
    fieldsOf(
      type,
      nodes.flatMap(({ selectionSet }) => selectionSet ?? []),
    )
  const fieldOf = (type: GraphQLObjectType, key: string, nodes: FieldNodes): Field => {
    const name = nodes[0].name.value
    if (name === '__typename') return { key, nodes, isNullable: false, read: () => type.name, complete: (_run, value) => value }
    const definition = type.getFields()[name]!
    const slot = slotOf(definition.type, { schema, nodes, what: `${type.name}.${name}`, below })
    return { key, ...slot, read: reader(definition, nodes, next) }
  }
  // Validation has passed, so the schema has such a root.
  const root = schema.getRootType(operation.operation)!
  const fields = fieldsOf(root, [operation.selectionSet])
  const isSerial = operation.operation === OperationTypeNode.MUTATION
  return (context, variables) => {
    const given: Given = { info, context, variables, args: [] }
    return {
      execute(rootValue) {
        const run: Run = { ...given, errors: [], data: {}, missing: 0, whenComplete: () => {} }
        return isSerial ? runSerially(run, fields, rootValue) : runAtOnce(run, fields, rootValue)
      },
      async subscribe() {
        const [{ key, nodes }] = fields as readonly [Field]
        const definition = root.getFields()[nodes[0].name.value]!
        try {
          const args = compileArguments(definition, nodes[0])(variables)
          const events: unknown = await definition.subscribe?.(undefined, args, context, info)
          if (events instanceof Error) throw events
          return events as AsyncIterable<unknown>
        } catch (error) {
          throw locatedError(error, nodes, [key])
        }
      },
    }
  }
}

function runAtOnce(run: Run, fields: Fields, rootValue: unknown): ExecutionResult | Promise<ExecutionResult> {
  for (const field of fields) readRootField(run, field, rootValue)
  return run.missing === 0 ? resultOf(run) : complete(run).then(() => resultOf(run))
}

async function runSerially(run: Run, fields: Fields, rootValue: unknown): Promise<ExecutionResult> {
  for (const field of fields) {
    readRootField(run, field, rootValue)
    if (run.missing > 0) await complete(run)
  }
  return resultOf(run)
}

/** Does nothing if an error has already made the whole answer null. */
function readRootField(run: Run, field: Field, rootValue: unknown): void {
  if (!run.data) return
  try {
    readField(run, field, rootValue, run.data, null)
  } catch (error) {
    run.errors.push(error as GraphQLError)
    run.data = null
  }
}

function complete(run: Run): Promise<void> {
  return new Promise((resolve) => {
    run.whenComplete = resolve
  })
}

function resultOf({ errors, data }: Run): ExecutionResult {
  return errors.length === 0 ? { data } : { errors, data }
}

/** Throws an error of a field that must not be null, with its path. */
function readField(run: Run, field: Field, source: unknown, holder: Holder, above: Place | null): void {
  try {
    const value = field.read(run, source)
    if (isPromise(value)) fillLater(run, field, value, holder, field.key, above)
    else holder[field.key] = field.complete(run, value, holder, field.key, above)
  } catch (error) {
    fail(run, field, error, holder, field.key, above)
  }
}

/** As `readField`, for an item of a list. */
function fillItem(run: Run, slot: Slot, value: unknown, holder: Holder, key: number, above: Place): void {
  try {
    if (isPromise(value)) fillLater(run, slot, value, holder, key, above)
    else holder[key] = slot.complete(run, value, holder, key, above)
  } catch (error) {
    fail(run, slot, error, holder, key, above)
  }
}

function fail(run: Run, { nodes, isNullable }: Slot, error: unknown, holder: Holder, key: string | number, above: Place | null): void {
  const located = locatedError(error, nodes, pathOf(key, above))
  if (!isNullable) throw located
  run.errors.push(located)
  holder[key] = null
}

function fillLater(run: Run, slot: Slot, later: PromiseLike<unknown>, holder: Holder, key: string | number, above: Place | null): void {
  // Keeps the order of the keys.
  holder[key] = null
  const isOver = () => {
    if (--run.missing === 0) run.whenComplete()
  }
  const failed = (error: unknown) => {
    if (!isInAnswer(run, above)) return
    run.errors.push(locatedError(error, slot.nodes, pathOf(key, above)))
    if (!slot.isNullable) makeNull(run, above)
  }
  // Another kind of promise could answer at once.
  const promise = later instanceof Promise && later.constructor === Promise ? later : Promise.resolve(later)
  promise.then(
    (value) => {
      try {
        if (isInAnswer(run, above)) holder[key] = slot.complete(run, value, holder, key, above)
      } catch (error) {
        failed(error)
      }
      isOver()
    },
    (error) => {
      failed(error)
      isOver()
    },
  )
  run.missing++
}

/** Whether the place is still part of the answer: no error has made it or a place above it null. */
function isInAnswer({ data }: Run, place: Place | null): boolean {
  for (let at = place; at; at = at.above) if (at.holder[at.key] !== at.value) return false
  return data !== null
}

/** Makes the place null. If it must not be null, the nearest place above that may be. */
function makeNull(run: Run, place: Place | null): void {
  let at = place
  while (at && !at.isNullable) at = at.above
  if (at) at.holder[at.key] = null
  else run.data = null
}

function pathOf(key: string | number, above: Place | null): (string | number)[] {
  const path = [key]
  for (let at = above; at; at = at.above) path.push(at.key)
  return path.reverse()
}

/** `next` gives the next number of a field with arguments. */
function reader(definition: GraphQLField<unknown, unknown>, nodes: FieldNodes, next: () => number): Field['read'] {
  const { name, resolve } = definition
  if (definition.args.length === 0) {
    if (resolve) return ({ context, info }, source) => resolve(source, NO_ARGUMENTS, context, info)
    return (run, source) => propertyOf(source, name, NO_ARGUMENTS, run)
  }
  const number = next()
  const argumentsFor = compileArguments(definition, nodes[0])
  const argsOf = ({ args, variables }: Run) => {
    args[number] ??= argumentsFor(variables)
    return args[number]
  }
  if (resolve) return (run, source) => resolve(source, argsOf(run), run.context, run.info)
  return (run, source) => propertyOf(source, name, argsOf(run), run)
}

function propertyOf(source: unknown, name: string, args: Arguments, { context, info }: Run): unknown {
  if ((typeof source !== 'object' && typeof source !== 'function') || source === null) return undefined
  const value = (source as Holder)[name]
  return typeof value === 'function' ? value.call(source, args, context, info) : value
}

function slotOf(type: GraphQLOutputType, site: Site): Slot {
  const { nodes, what } = site
  if (!isNonNullType(type)) return { nodes, isNullable: true, complete: completer(type, site, true) }
  const nullable = completer(type.ofType, site, false)
  return {
    nodes,
    isNullable: false,
    complete(run, value, holder, key, above) {
      const completed = nullable(run, value, holder, key, above)
      if (completed === null) throw new Error(`Cannot return null for non-nullable field ${what}.`)
      return completed
    },
  }
}

function completer(type: GraphQLOutputType, site: Site, isNullable: boolean): Complete {
  const present = completerOfPresent(type, site, isNullable)
  return (run, value, holder, key, above) => {
    if (value === undefined || value === null) return null
    if (value instanceof Error) throw value
    return present(run, value, holder, key, above)
  }
}

function completerOfPresent(type: GraphQLOutputType, site: Site, isNullable: boolean): Complete {
  const { schema, nodes, what, below } = site
  if (isLeafType(type))
    return (_run, value) => {
      const serialized = type.serialize(value)
      if (serialized === undefined || serialized === null) throw new Error(`${type.name} gives nothing for a value of ${what}.`)
      return serialized
    }
  if (isListType(type)) {
    const items = slotOf(type.ofType, site)
    return (run, value, holder, key, above) => {
      if (!isIterable(value)) throw new GraphQLError(`Expected Iterable, but did not find one for field "${what}".`)
      const list: unknown[] = []
      const place: Place = { above, holder, key, isNullable, value: list as unknown as Holder }
      let index = 0
      for (const item of value) fillItem(run, items, item, place.value, index++, place)
      return list
    }
  }
  if (isObjectType(type)) {
    let fields: Fields | undefined
    return (run, value, holder, key, above) => {
      fields ??= below(type, nodes)
      return readObject(run, fields, value, { above, holder, key, isNullable, value: {} })
    }
  }
  const abstract = type as GraphQLAbstractType
  const fieldsOf = new Map<GraphQLObjectType, Fields>()
  return (run, value, holder, key, above) => {
    const actual = actualType(schema, abstract, value, run, what)
    const fields = fieldsOf.get(actual) ?? below(actual, nodes)
    fieldsOf.set(actual, fields)
    return readObject(run, fields, value, { above, holder, key, isNullable, value: {} })
  }
}

function readObject(run: Run, fields: Fields, source: unknown, place: Place): Holder {
  for (const field of fields) readField(run, field, source, place.value, place)
  return place.value
}

function actualType(
  schema: GraphQLSchema,
  abstract: GraphQLAbstractType,
  value: unknown,
  { context, info }: Run,
  what: string,
): GraphQLObjectType {
  const name = abstract.resolveType?.(value, context, info, abstract) ?? (value as { readonly __typename?: unknown }).__typename
  const type = typeof name === 'string' ? schema.getType(name) : undefined
  if (!isObjectType(type) || !schema.isSubType(abstract, type))
    throw new GraphQLError(`A value of ${what} has the type ${String(name)}, which is not one of ${abstract.name}.`)
  return type
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { readonly then?: unknown }).then === 'function'
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Iterable<unknown>>)[Symbol.iterator] === 'function'
}
