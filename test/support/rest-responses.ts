import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { readOpenApi, type Schema } from '../../rest-adapter/http/openapi.ts'

type Json = Readonly<Record<string, unknown>>

/** An answer of the service, as it came. */
interface RecordedResponse {
  readonly method: string
  /** With its query, if it has one. */
  readonly path: string
  readonly status: number
  readonly contentType: string | null | undefined
  readonly text: string
}

const ERROR: Schema = { $ref: '#/components/schemas/ErrorBody' }
const OPEN = '#/components/open/'

const { document, operations } = readOpenApi()
const routes = operations
  .map((each) => ({ ...each, pattern: toPattern(each.path) }))
  // Addresses without parameters come first: `attach` is no document.
  .toSorted((a, b) => a.path.split('{').length - b.path.split('{').length)

let ajv: Ajv2020 | undefined
const checks = new Map<Schema, ValidateFunction>()

/** Ids of models may contain slashes. */
function toPattern(path: string): RegExp {
  const parameter = path.startsWith('/v1/models') ? '.+' : '[^/]+'
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{[^}]+\}/g, parameter)}$`)
}

/**
 * Holds an answer against the contract: its status, its media type and its body, which has the required fields, and none
 * that the contract does not name. Null if it keeps to it, or if no route was met.
 */
export function faultOfResponse({ method, path, status, contentType, text }: RecordedResponse): string | null {
  const [address = ''] = path.split('?')
  const route = routes.find((each) => each.method === method && each.pattern.test(address))
  if (!route) return null
  const at = `${route.method} ${route.path} ${status}`
  const response = route.operation.responses[status] ?? route.operation.responses[`${Math.floor(status / 100)}XX`]
  if (!response) return `${at}: the contract has no such status`
  if (!response.content) return text === '' ? null : `${at}: the contract has no body`
  const type = contentType?.split(';')[0]?.trim() ?? ''
  const schema = response.content[type]?.schema ?? response.content['*/*']?.schema
  if (!schema) return `${at}: the contract has no body of the type '${type}'`
  if (type === 'text/event-stream') return faultOfEvents(at, schema, text)
  return type === 'application/json' ? faultOfValue(at, status >= 400 ? [schema, ERROR] : [schema], JSON.parse(text)) : null
}

function faultOfEvents(at: string, schema: Schema, text: string): string | null {
  const data = text.split('\n').flatMap((line) => (line.startsWith('data: ') && line !== 'data: [DONE]' ? [line.slice(6)] : []))
  const of = (schema.contentSchema as Schema | undefined) ?? schema
  for (const each of data) {
    const fault = faultOfValue(`${at} event`, [of, ERROR], JSON.parse(each))
    if (fault) return fault
  }
  return null
}

/** The fault of the first schema, unless another takes the value. */
function faultOfValue(at: string, schemas: readonly Schema[], value: unknown): string | null {
  const faults = schemas.map((schema) => {
    const check = checkOf(schema)
    if (check(value)) return null
    const { instancePath, message, params } = check.errors![0]!
    return `${at}: '${instancePath}' ${message} ${JSON.stringify(params)} in ${JSON.stringify(value).slice(0, 500)}`
  })
  return faults.includes(null) ? null : faults[0]!
}

function checkOf(schema: Schema): ValidateFunction {
  const known = checks.get(schema)
  if (known) return known
  ajv ??= new Ajv2020({ strict: false, validateFormats: false, schemas: { openapi: { components: closedComponents() } } })
  const closedSchema = closed(schema)
  const check = ajv.compile(closedSchema.$ref ? { $ref: `openapi${closedSchema.$ref}` } : { ...absolute(closedSchema) })
  checks.set(schema, check)
  return check
}

const absolute = (schema: Schema): Schema => JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"openapi#'))

/** Every schema twice: closed, and open for those that extend it. */
function closedComponents() {
  const schemas = Object.entries((document.components as { readonly schemas: Readonly<Record<string, Schema>> }).schemas)
  return {
    schemas: Object.fromEntries(schemas.map(([name, schema]) => [name, closed(schema)])),
    open: Object.fromEntries(schemas.map(([name, schema]) => [name, closed(schema, true)])),
  }
}

/** The same schema, which takes no fields that it does not name, unless it says that it does. */
function closed(schema: Schema, isExtended = false): Schema {
  const each = (schemas: readonly Schema[] | undefined, extended = isExtended) => schemas?.map((inner) => closed(inner, extended))
  const isObject = schema.properties !== undefined && schema.additionalProperties === undefined
  const result: Record<string, unknown> = {
    ...schema,
    ...(schema.$ref && isExtended && { $ref: schema.$ref.replace('#/components/schemas/', OPEN) }),
    ...(schema.properties && {
      properties: Object.fromEntries(Object.entries(schema.properties).map(([name, inner]) => [name, closed(inner)])),
    }),
    ...(schema.items && { items: closed(schema.items) }),
    ...(schema.allOf && { allOf: each(schema.allOf, true) }),
    ...(schema.anyOf && { anyOf: each(schema.anyOf) }),
    ...((schema.oneOf as Schema[] | undefined) && { oneOf: each(schema.oneOf as Schema[]) }),
    ...((isObject || schema.allOf) && !isExtended && { unevaluatedProperties: false }),
  }
  return result as Json as Schema
}
