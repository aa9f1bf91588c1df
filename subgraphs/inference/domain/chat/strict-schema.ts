import { objectAt, refuse } from '../../../common/check.ts'

/** OpenAI's limits for one strict schema ("Structured Outputs", section "Supported schemas"). */
const MAX_LEVELS = 10
const MAX_PROPERTIES = 5_000
const MAX_ENUM_VALUES = 1_000
const MAX_TEXT_LENGTH = 120_000
/** If an enum has more values than this, their total length is limited too. */
const LARGE_ENUM = { values: 250, textLength: 15_000 } as const
/** Keywords outside the subset: engines cannot enforce them while a model writes. */
const UNSUPPORTED = [
  ...['allOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas', 'dependencies'],
  ...['patternProperties', 'propertyNames', 'minProperties', 'maxProperties', 'unevaluatedProperties'],
  ...['unevaluatedItems', 'prefixItems', 'contains', 'minContains', 'maxContains', 'uniqueItems'],
]
/**
 * Most levels of schemas that are not objects, such as lists of lists. Far more than any schema has, and safe for the
 * stack.
 */
const MAX_DEPTH = 64
/** Longest property name in the path of an error. The caller chooses these names. */
const MAX_NAME_LENGTH = 64

type Schema = Readonly<Record<string, unknown>>

/**
 * Checks that a schema with `strict` is in the subset that engines can enforce: objects that require all their
 * properties and allow no others, within the protocol's limits.
 * @throws {KisError} the schema is outside the subset; has the path of the first fault
 */
export function checkStrictSchema(value: unknown, param: string): void {
  const root = objectAt(value, param)
  if ('anyOf' in root) refuse('unsupported_value', `${param}.anyOf`, "A strict schema must not have 'anyOf' at its root.")
  if (root.type !== 'object') refuse('unsupported_value', `${param}.type`, "A strict schema must be of type 'object' at its root.")
  new StrictSchema(param).check(root, param, 0, 0)
}

class StrictSchema {
  readonly #root: string
  #properties = 0
  #enumValues = 0
  #textLength = 0

  constructor(root: string) {
    this.#root = root
  }

  /** `levels`: the number of objects around this schema. `depth`: the number of schemas of any kind around it. */
  check(value: unknown, param: string, levels: number, depth: number): void {
    const schema = objectAt(value, param)
    if (depth > MAX_DEPTH) refuse('unsupported_value', param, `A strict schema must not nest deeper than ${MAX_DEPTH} schemas.`)
    const unsupported = UNSUPPORTED.find((keyword) => keyword in schema)
    if (unsupported) refuse('unsupported_value', `${param}.${unsupported}`, `A strict schema must not have '${unsupported}'.`)
    if ('$ref' in schema && !String(schema.$ref).startsWith('#'))
      refuse('unsupported_value', `${param}.$ref`, 'A strict schema may refer to itself only.')
    this.#checkValues(schema, param)
    const isObject = schema.type === 'object' || (Array.isArray(schema.type) && schema.type.includes('object')) || 'properties' in schema
    if (isObject) this.#checkObject(schema, param, levels + 1, depth)
    if ('items' in schema) this.check(schema.items, `${param}.items`, levels, depth + 1)
    if ('anyOf' in schema) {
      const { anyOf } = schema
      if (!Array.isArray(anyOf) || anyOf.length === 0)
        refuse('invalid_type', `${param}.anyOf`, `'${param}.anyOf' must be a list of schemas.`)
      for (const [index, each] of anyOf.entries()) this.check(each, `${param}.anyOf[${index}]`, levels, depth + 1)
    }
    for (const definitions of ['$defs', 'definitions']) {
      if (!(definitions in schema)) continue
      for (const [name, each] of Object.entries(objectAt(schema[definitions], `${param}.${definitions}`))) {
        this.#addText(name)
        this.check(each, `${param}.${definitions}.${shortened(name)}`, 0, depth + 1)
      }
    }
  }

  #checkObject(schema: Schema, param: string, levels: number, depth: number): void {
    if (levels > MAX_LEVELS) refuse('unsupported_value', param, `A strict schema must not nest deeper than ${MAX_LEVELS} objects.`)
    if (schema.additionalProperties !== false)
      refuse('invalid_request', `${param}.additionalProperties`, `In a strict schema '${param}.additionalProperties' must be false.`)
    const properties = Object.entries('properties' in schema ? objectAt(schema.properties, `${param}.properties`) : {})
    this.#properties += properties.length
    if (this.#properties > MAX_PROPERTIES)
      refuse('array_above_max_length', this.#root, `A strict schema must have at most ${MAX_PROPERTIES} properties.`)
    const { required = [] } = schema
    if (!Array.isArray(required)) refuse('invalid_type', `${param}.required`, `'${param}.required' must be an array.`)
    const names = new Set(required)
    for (const [name, each] of properties) {
      if (!names.delete(name))
        refuse(
          'invalid_request',
          `${param}.required`,
          `In a strict schema '${param}.required' must name every property; '${shortened(name)}' is missing.`,
        )
      this.#addText(name)
      this.check(each, `${param}.properties.${shortened(name)}`, levels, depth + 1)
    }
    for (const name of names)
      refuse('invalid_request', `${param}.required`, `'${param}.required' names '${shortened(String(name))}', which is not a property.`)
  }

  #checkValues({ enum: values, const: constant }: Schema, param: string): void {
    if (typeof constant === 'string') this.#addText(constant)
    if (values === undefined) return
    if (!Array.isArray(values) || values.length === 0) refuse('invalid_type', `${param}.enum`, `'${param}.enum' must be a list of values.`)
    this.#enumValues += values.length
    if (this.#enumValues > MAX_ENUM_VALUES)
      refuse('array_above_max_length', `${param}.enum`, `A strict schema must have at most ${MAX_ENUM_VALUES} values in all its enums.`)
    let textLength = 0
    for (const value of values) {
      if (typeof value !== 'string') continue
      textLength += value.length
      this.#addText(value)
    }
    if (values.length > LARGE_ENUM.values && textLength > LARGE_ENUM.textLength)
      refuse(
        'string_above_max_length',
        `${param}.enum`,
        `An enum of more than ${LARGE_ENUM.values} values must have at most ${LARGE_ENUM.textLength} characters.`,
      )
  }

  #addText(text: string): void {
    this.#textLength += text.length
    if (this.#textLength > MAX_TEXT_LENGTH)
      refuse(
        'string_above_max_length',
        this.#root,
        `Names and values of a strict schema must have at most ${MAX_TEXT_LENGTH} characters together.`,
      )
  }
}

function shortened(name: string): string {
  return name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name
}
