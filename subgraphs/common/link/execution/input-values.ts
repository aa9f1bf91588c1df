import {
  type FieldNode,
  type GraphQLArgument,
  type GraphQLError,
  type GraphQLField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLLeafType,
  type GraphQLSchema,
  getArgumentValues,
  getVariableValues,
  isInputObjectType,
  isListType,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  typeFromAST,
  type ValueNode,
  valueFromAST,
} from 'graphql'

type Values = Readonly<Record<string, unknown>>
/** Throws `UNFIT`, or what a scalar throws, for a value that does not fit the type. */
type Coerce = (value: unknown) => unknown

/** More errors are not told. */
const MAX_ERRORS = 50
const UNFIT = new Error('The value does not fit its type.')
/** By type: each belongs to one schema. */
const coercers = new WeakMap<GraphQLInputType, Coerce>()

/**
 * Coerces JSON to an input type, as `coerceInputValue` of graphql-js does, which keeps the path of each value for its
 * errors. @throws {Error} the value does not fit; `coerceInputValue` says where
 */
export function coerceInput(type: GraphQLInputType, value: unknown): unknown {
  return coercerOf(type)(value)
}

function coercerOf(type: GraphQLInputType): Coerce {
  const known = coercers.get(type)
  if (known) return known
  // A type may contain itself, so its coercer is known before it is made.
  let made: Coerce | undefined
  const coerce: Coerce = (value) => {
    made ??= makeCoercer(type)
    return made(value)
  }
  coercers.set(type, coerce)
  return coerce
}

function makeCoercer(type: GraphQLInputType): Coerce {
  if (isNonNullType(type)) {
    const coerce = coercerOf(type.ofType)
    return (value) => (value === undefined || value === null ? unfit() : coerce(value))
  }
  const coerce = isListType(type) ? listCoercer(type.ofType) : isInputObjectType(type) ? objectCoercer(type) : leafCoercer(type)
  return (value) => (value === undefined || value === null ? null : coerce(value))
}

function listCoercer(item: GraphQLInputType): Coerce {
  const coerce = coercerOf(item)
  // One value stands for a list of it.
  return (value) => (Array.isArray(value) ? value.map(coerce) : [coerce(value)])
}

function objectCoercer(type: GraphQLInputObjectType): Coerce {
  const definitions = type.getFields()
  const fields = Object.values(definitions).map(({ name, type: fieldType, defaultValue }) => ({
    name,
    defaultValue,
    isRequired: isNonNullType(fieldType) && defaultValue === undefined,
    coerce: coercerOf(fieldType),
  }))
  return (value) => {
    if (typeof value !== 'object' || Array.isArray(value) || type.isOneOf) return unfit()
    const given = value as Values
    for (const name of Object.keys(given)) if (!Object.hasOwn(definitions, name)) return unfit()
    const coerced: Record<string, unknown> = {}
    for (const { name, defaultValue, isRequired, coerce } of fields) {
      const field = Object.hasOwn(given, name) ? given[name] : undefined
      if (field !== undefined) coerced[name] = coerce(field)
      else if (isRequired) return unfit()
      else if (defaultValue !== undefined) coerced[name] = defaultValue
    }
    return coerced
  }
}

function leafCoercer(type: GraphQLLeafType): Coerce {
  return (value) => {
    const parsed = type.parseValue(value)
    return parsed === undefined ? unfit() : parsed
  }
}

function unfit(): never {
  throw UNFIT
}

export type CoercedVariables = { readonly coerced: Values } | { readonly errors: readonly GraphQLError[] }

/** Gives the function that coerces the variables of a valid operation, once for all its runs. */
export function compileVariables(schema: GraphQLSchema, operation: OperationDefinitionNode): (inputs: Values) => CoercedVariables {
  const nodes = operation.variableDefinitions ?? []
  const definitions = nodes.map(({ variable, type: node, defaultValue }) => {
    const type = typeFromAST(schema, node) as GraphQLInputType
    return {
      name: variable.name.value,
      isRequired: isNonNullType(type) && !defaultValue,
      // Anew for each run, whose resolvers may change it.
      defaultOf: defaultValue && (() => valueFromAST(defaultValue, type)),
      coerce: coercerOf(type),
    }
  })
  return (inputs) => {
    const coerced: Record<string, unknown> = {}
    try {
      for (const { name, isRequired, defaultOf, coerce } of definitions) {
        if (Object.hasOwn(inputs, name)) coerced[name] = coerce(inputs[name])
        else if (isRequired) return unfit()
        else if (defaultOf) coerced[name] = defaultOf()
      }
      return { coerced }
    } catch {
      return getVariableValues(schema, nodes, inputs, { maxErrors: MAX_ERRORS }) as CoercedVariables
    }
  }
}

/** Gives the value of an argument for the coerced variables. Undefined: it has none. Throws if it does not fit its type. */
type ArgumentOf = (variables: Values) => unknown

/** Gives the function that gives the arguments of a field of a valid operation, once for all its runs. */
export function compileArguments(definition: GraphQLField<unknown, unknown>, node: FieldNode): (variables: Values) => Values {
  const nodes = new Map(node.arguments?.map(({ name, value }) => [name.value, value]))
  const all = definition.args.map((argument) => ({ name: argument.name, read: argumentOf(argument, nodes.get(argument.name)) }))
  return (variables) => {
    const values: Record<string, unknown> = {}
    try {
      for (const { name, read } of all) {
        const value = read(variables)
        if (value !== undefined) values[name] = value
      }
      return values
    } catch {
      return getArgumentValues(definition, node, variables)
    }
  }
}

function argumentOf({ type, defaultValue }: GraphQLArgument, node: ValueNode | undefined): ArgumentOf {
  const orDefault = (value: unknown) => value ?? (isNonNullType(type) ? unfit() : value)
  if (!node) return () => (defaultValue === undefined ? orDefault(undefined) : defaultValue)
  if (node.kind === Kind.VARIABLE) {
    const name = node.name.value
    return (variables) => orDefault(Object.hasOwn(variables, name) ? variables[name] : defaultValue)
  }
  const read: ArgumentOf = (variables) => {
    const value = valueFromAST(node, type, variables)
    return value === undefined ? unfit() : value
  }
  if (node.kind === Kind.LIST || node.kind === Kind.OBJECT) return read
  const constant = valueFromAST(node, type)
  // A resolver may change an object, and one that does not fit is told anew.
  return constant === undefined || (typeof constant === 'object' && constant !== null) ? read : () => constant
}
