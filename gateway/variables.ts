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
  type OperationDefinitionNode,
  typeFromAST,
  valueFromAST,
} from 'graphql'
import { checkDepth, refuse } from '../subgraphs/common/check.ts'
import type { Variables } from './federation/request-context.ts'

/** After this many complaints about the variables of one operation the rest is not looked for. */
const MAX_COMPLAINTS = 10
/** Items of one list; the contract's longest have 2,048. What is inside a scalar of JSON is judged by the subgraph. */
const MAX_ITEMS = 2_048
/** Characters of one text: four times the longest that the contract takes outside of JSON and files. */
const MAX_CHARACTERS = 1_048_576
/** Characters of the name of a field or of an enum's value; the schema's have 40 at most. graphql-js looks for similar ones, letter by letter. */
const MAX_NAME_CHARACTERS = 200
/** The content of files, which the largest body and the plan bound. */
const CONTENT = 'contentBase64'
/** Scalars that take any JSON value. */
const ANY_JSON: ReadonlySet<string> = new Set(['JSON', 'ChatProtocolRequest'])

type Path = readonly (string | number)[]

/** What is wrong with the variables of an operation. */
export class InvalidVariables extends Error {
  readonly complaints: readonly GraphQLError[]

  constructor(complaints: readonly GraphQLError[]) {
    super('The variables are not what the operation takes.')
    this.complaints = complaints
  }
}

/**
 * The operation's variables as its types take them, with defaults. graphql-js does the same, but without a bound, and prints the whole value in
 * each complaint. `suggestions`: whether complaints may name what the schema has.
 * @throws {InvalidVariables} @throws {KisError} a list, a text or the nesting is above its bound.
 */
export function coerceVariables(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  inputs: Variables,
  suggestions: boolean,
): Variables {
  const complaints: GraphQLError[] = []
  const coerced: Record<string, unknown> = {}
  const complain = (message: string) => {
    complaints.push(new GraphQLError(message))
    // From within graphql-js, which goes on otherwise.
    if (complaints.length === MAX_COMPLAINTS) throw new InvalidVariables(complaints)
  }
  for (const { variable, type: typeNode, defaultValue } of variableDefinitions) {
    const name = variable.name.value
    // Validation has let through nothing but variables of input types.
    const type = typeFromAST(schema, typeNode as never) as GraphQLInputType
    if (!Object.hasOwn(inputs, name)) {
      if (defaultValue) coerced[name] = valueFromAST(defaultValue, type)
      else if (isNonNullType(type)) complain(`Variable "$${name}" of required type "${type}" was not provided.`)
      continue
    }
    const value = inputs[name]
    if (value === null && isNonNullType(type)) {
      complain(`Variable "$${name}" of non-null type "${type}" must not be null.`)
      continue
    }
    checkSize(value, type, [name])
    coerced[name] = coerceInputValue(
      value,
      type,
      (path, _value, { message }) => complain(`Variable "$${name}" got an invalid value at "${textOf([name, ...path])}"; ${message}`),
      !suggestions,
    )
  }
  if (complaints.length > 0) throw new InvalidVariables(complaints)
  return coerced
}

/** Everything that is judged before coercion, whose cost grows with it. Fields that the type has not are left to coercion, which names them. */
function checkSize(value: unknown, givenType: GraphQLInputType, path: Path): void {
  const type = getNullableType(givenType)
  if (isListType(type) && Array.isArray(value)) {
    if (value.length > MAX_ITEMS)
      refuse('array_above_max_length', textOf(path), `'${textOf(path)}' must have at most ${MAX_ITEMS} items; it has ${value.length}.`)
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
    checkDepth(value, textOf(path))
  } else if (typeof value === 'object' && value !== null) {
    refuse(
      'invalid_type',
      textOf(path),
      `'${textOf(path)}' must be of type ${type.name}; it is ${Array.isArray(value) ? 'a list' : 'an object'}.`,
    )
  } else if (typeof value === 'string' && isEnumType(type)) {
    checkName(value, path, `A value of ${type.name}`)
  } else if (typeof value === 'string' && value.length > MAX_CHARACTERS && !isContent(path)) {
    refuse(
      'string_above_max_length',
      textOf(path),
      `'${textOf(path)}' must have at most ${MAX_CHARACTERS} characters; it has ${value.length}.`,
    )
  }
}

function checkName(name: string, path: Path, what: string): void {
  if (name.length <= MAX_NAME_CHARACTERS) return
  const text = `${what} in '${textOf(path)}' must have at most ${MAX_NAME_CHARACTERS} characters; one has ${name.length}.`
  refuse('invalid_request', textOf(path), text)
}

/** The content of a file, a field of an input; a variable may have its name. */
const isContent = (path: Path) => path.length > 1 && path.at(-1) === CONTENT

/** `input.tags[0]` */
function textOf(path: Path): string {
  return path.map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index > 0 ? '.' : ''}${part}`)).join('')
}
