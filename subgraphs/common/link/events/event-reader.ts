import {
  type DocumentNode,
  type GraphQLFieldResolver,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type SelectionSetNode,
} from 'graphql'

/** Gives the data of one event; undefined: graphql-js must execute this event. */
export type EventReader = (event: unknown, context: unknown) => Readonly<Record<string, unknown>> | undefined

/** Completes the value of a field. Throws `UNUSUAL` for a value that graphql-js must look at. */
type Complete = (value: unknown, context: unknown) => unknown

const UNUSUAL = Symbol('an error, a promise, or null where none may be')
const NO_ARGUMENTS = {}

/**
 * Compiles an operation whose events are read without variables, fragments, directives and arguments: each field is a
 * property or the answer of its resolver, all at once. A stream of tokens has thousands of such events, and graphql-js
 * would plan each of them anew. Null: the operation is another one.
 */
export function eventReader(schema: GraphQLSchema, { definitions }: DocumentNode): EventReader | null {
  const [operation] = definitions
  const root = schema.getSubscriptionType()
  if (definitions.length !== 1 || operation?.kind !== Kind.OPERATION_DEFINITION || !root) return null
  const [field] = operation.selectionSet.selections
  if (operation.selectionSet.selections.length !== 1 || field?.kind !== Kind.FIELD || field.directives?.length) return null
  const definition = root.getFields()[field.name.value]
  // The arguments of the root field only start the stream. A resolver that reads them is not compiled.
  if (!definition || (definition.resolve && definition.resolve.length > 1)) return null
  const complete = completer(definition.type, field.selectionSet)
  const name = (field.alias ?? field.name).value
  if (!complete || name === '__proto__') return null
  const resolve = definition.resolve ?? ((event: unknown) => (event as Readonly<Record<string, unknown>>)[definition.name])
  return (event, context) => {
    try {
      return { [name]: complete((resolve as (event: unknown) => unknown)(event), context) }
    } catch {
      return undefined
    }
  }
}

function completer(type: GraphQLOutputType, selections: SelectionSetNode | undefined): Complete | null {
  if (isNonNullType(type)) {
    const complete = completer(type.ofType, selections)
    return complete && ((value, context) => require(complete(value, context)))
  }
  const complete = isListType(type) ? listCompleter(type.ofType, selections) : valueCompleter(type, selections)
  return complete && ((value, context) => (value === undefined || value === null ? null : complete(value, context)))
}

function listCompleter(item: GraphQLOutputType, selections: SelectionSetNode | undefined): Complete | null {
  const complete = completer(item, selections)
  if (!complete) return null
  return (value, context) => {
    if (!Array.isArray(value)) throw UNUSUAL
    return value.map((each) => complete(settled(each), context))
  }
}

function valueCompleter(type: GraphQLOutputType, selections: SelectionSetNode | undefined): Complete | null {
  if (isLeafType(type)) return (value) => require(type.serialize(value))
  return isObjectType(type) && !type.isTypeOf && selections ? objectCompleter(type, selections) : null
}

function objectCompleter(type: GraphQLObjectType, { selections }: SelectionSetNode): Complete | null {
  const readers: { readonly name: string; readonly read: Complete }[] = []
  for (const field of selections) {
    if (field.kind !== Kind.FIELD || field.directives?.length || field.arguments?.length) return null
    const name = (field.alias ?? field.name).value
    // The same field twice is merged by graphql-js.
    if (name === '__proto__' || readers.some((reader) => reader.name === name)) return null
    const read = field.name.value === '__typename' ? () => type.name : fieldReader(type, field.name.value, field.selectionSet)
    if (!read) return null
    readers.push({ name, read })
  }
  return (value, context) => {
    const object: Record<string, unknown> = {}
    for (const { name, read } of readers) object[name] = read(value, context)
    return object
  }
}

function fieldReader(type: GraphQLObjectType, name: string, selections: SelectionSetNode | undefined): Complete | null {
  const definition = type.getFields()[name]
  if (!definition || definition.args.length > 0) return null
  const complete = completer(definition.type, selections)
  const resolve = definition.resolve as GraphQLFieldResolver<unknown, unknown> | undefined
  // The fourth argument tells of the execution by graphql-js.
  if (!complete || (resolve && resolve.length > 3)) return null
  if (resolve) return (source, context) => complete(settled(resolve(source, NO_ARGUMENTS, context, undefined as never)), context)
  return (source, context) => {
    const value = settled((source as Readonly<Record<string, unknown>>)[name])
    if (typeof value === 'function') throw UNUSUAL
    return complete(value, context)
  }
}

function require(value: unknown): unknown {
  if (value === undefined || value === null) throw UNUSUAL
  return value
}

function settled(value: unknown): unknown {
  if (value instanceof Error || (typeof value === 'object' && value !== null && 'then' in value)) throw UNUSUAL
  return value
}
