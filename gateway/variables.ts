import {
  coerceInputValue,
  GraphQLError,
  type GraphQLInputType,
  type GraphQLSchema,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  typeFromAST,
  type VariableDefinitionNode,
  valueFromAST,
  visit,
} from 'graphql'
import { checkJson, MAX_DEPTH, refuse } from '../subgraphs/common/check.ts'
import { KisError } from '../subgraphs/common/errors.ts'

/** The check of one operation's variables stops after this many errors. */
const MAX_COMPLAINTS = 10
/** Items of one list. The contract's longest lists have 2,048. The subgraph checks the content of a JSON scalar. */
const MAX_ITEMS = 2_048
/** Characters of one text: four times the longest that the contract accepts outside of JSON and files. */
const MAX_CHARACTERS = 1_048_576
/**
 * Characters of a field's name or an enum's value. The schema's own have at most 40. graphql-js compares them letter by
 * letter to suggest similar ones.
 */
const MAX_NAME_CHARACTERS = 200
/** The field with a file's content. The body limit and the plan limit its size. */
const CONTENT = 'contentBase64'
/** Scalars that take any JSON value. */
const ANY_JSON: ReadonlySet<string> = new Set(['JSON', 'ChatProtocolRequest'])

/** Variables of an operation, by name. */
export type Variables = Readonly<Record<string, unknown>>

type Path = readonly (string | number)[]

/** The faults in the variables of an operation. */
export class InvalidVariables extends Error {
  readonly complaints: readonly GraphQLError[]

  constructor(complaints: readonly GraphQLError[]) {
    super('The variables do not match the operation.')
    this.complaints = complaints
  }
}

/**
 * Coerces the operation's variables to their types, with defaults. graphql-js does the same, but without limits, and
 * prints the whole value in each error. `suggestions`: whether errors may name what the schema has.
 * @throws {InvalidVariables} a variable does not fit its type, or a list, a text or the nesting exceeds its limit
 */
export function coerceVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  inputs: Variables,
  suggestions: boolean,
): Variables {
  const { variableDefinitions = [] } = operation
  const complaints: GraphQLError[] = []
  const coerced: Record<string, unknown> = {}
  const complain = (node: VariableDefinitionNode, error: KisError) => {
    complaints.push(new GraphQLError(error.message, { nodes: node, extensions: { ...error.extensions } }))
    // The throw stops graphql-js, which would continue.
    if (complaints.length === MAX_COMPLAINTS) throw new InvalidVariables(complaints)
  }
  for (const definition of variableDefinitions) {
    const { variable, defaultValue } = definition
    const name = variable.name.value
    const refuseVariable = (message: string) => complain(definition, new KisError('invalid_variables', message, { param: name }))
    const type = typeOf(schema, definition)
    if (!Object.hasOwn(inputs, name)) {
      if (defaultValue) coerced[name] = valueFromAST(defaultValue, type)
      else if (isNonNullType(type)) refuseVariable(`Variable "$${name}" of required type "${type}" was not provided.`)
      continue
    }
    const value = inputs[name]
    if (value === null && isNonNullType(type)) {
      refuseVariable(`Variable "$${name}" of non-null type "${type}" must not be null.`)
      continue
    }
    try {
      // The limit of texts does not apply to a file's content, whether it is a field of a variable or a variable
      // itself.
      if (typeof value !== 'string' || value.length <= MAX_CHARACTERS || !isContentAlone(operation, name)) checkSize(value, type, [name])
    } catch (error) {
      if (!(error instanceof KisError)) throw error
      complain(definition, error)
      continue
    }
    coerced[name] = coerceInputValue(
      value,
      type,
      (path, _value, { message }) =>
        refuseVariable(`Variable "$${name}" got an invalid value at "${formatPath([name, ...path])}"; ${message}`),
      !suggestions,
    )
  }
  if (complaints.length > 0) throw new InvalidVariables(complaints)
  return coerced
}

/** Input types by variable definition: a document belongs to one schema. */
const types = new WeakMap<VariableDefinitionNode, GraphQLInputType>()

function typeOf(schema: GraphQLSchema, definition: VariableDefinitionNode): GraphQLInputType {
  const known = types.get(definition)
  if (known) return known
  // Validation has passed, so each variable has an input type.
  const type = typeFromAST(schema, definition.type) as GraphQLInputType
  types.set(definition, type)
  return type
}

/** Checks sizes before coercion, whose cost grows with them. Coercion reports fields that the type does not have. */
function checkSize(value: unknown, inputType: GraphQLInputType, path: Path): void {
  if (path.length > MAX_DEPTH)
    refuse('invalid_request', formatPath(path.slice(0, 1)), `'${path[0]}' is nested deeper than ${MAX_DEPTH} levels.`)
  const type = getNullableType(inputType)
  if (isListType(type) && Array.isArray(value)) {
    if (value.length > MAX_ITEMS)
      refuse(
        'array_above_max_length',
        formatPath(path),
        `'${formatPath(path)}' must have at most ${MAX_ITEMS} items; it has ${value.length}.`,
      )
    for (const [index, item] of value.entries()) checkSize(item, type.ofType, [...path, index])
  } else if (isListType(type)) {
    checkSize(value, type.ofType, path)
  } else if (isInputObjectType(type)) {
    if (typeof value !== 'object' || value === null) return
    for (const name of Object.keys(value)) checkName(name, path, 'The name of a field')
    for (const { name, type: fieldType } of Object.values(type.getFields())) {
      const field = (value as Variables)[name]
      if (field !== undefined && field !== null) checkSize(field, fieldType, [...path, name])
    }
  } else if (ANY_JSON.has(type.name)) {
    checkJson(value, formatPath(path))
  } else if (typeof value === 'object' && value !== null) {
    refuse(
      'invalid_type',
      formatPath(path),
      `'${formatPath(path)}' must be of type ${type.name}; it is ${Array.isArray(value) ? 'a list' : 'an object'}.`,
    )
  } else if (typeof value === 'string' && isEnumType(type)) {
    checkName(value, path, `A value of ${type.name}`)
  } else if (typeof value === 'string' && value.length > MAX_CHARACTERS && !isContent(path)) {
    refuse(
      'string_above_max_length',
      formatPath(path),
      `'${formatPath(path)}' must have at most ${MAX_CHARACTERS} characters; it has ${value.length}.`,
    )
  }
}

function checkName(name: string, path: Path, what: string): void {
  if (name.length <= MAX_NAME_CHARACTERS) return
  const text = `${what} in '${formatPath(path)}' must have at most ${MAX_NAME_CHARACTERS} characters; one has ${name.length}.`
  refuse('invalid_request', formatPath(path), text)
}

/** Whether the path leads to the content of a file: a field of an input, not a variable of the same name. */
const isContent = (path: Path) => path.length > 1 && path.at(-1) === CONTENT

/** Whether every use of a variable is as the content of a file. */
function isContentAlone({ selectionSet }: OperationDefinitionNode, variable: string): boolean {
  let contents = 0
  let others = 0
  visit(selectionSet, {
    ObjectField({ name, value }) {
      if (name.value === CONTENT && value.kind === Kind.VARIABLE && value.name.value === variable) contents++
    },
    Variable({ name }) {
      if (name.value === variable) others++
    },
    // Uses of the variable in a fragment are not examined.
    FragmentSpread: () => {
      others = Number.POSITIVE_INFINITY
    },
  })
  return contents > 0 && contents === others
}

/** Returns a path such as `input.tags[0]`. */
function formatPath(path: Path): string {
  return path.map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index > 0 ? '.' : ''}${part}`)).join('')
}
