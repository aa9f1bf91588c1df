import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import type { ErrorCode } from '../schema/errors.ts'
import { KisError } from '../subgraphs/common/errors.ts'
import type { DocumentedOperation, OpenApi } from './openapi.ts'

/** @throws {KisError} the first fault, with its path in the caller's own names. */
export type Check = (value: unknown) => void

/** Makes the checks of an operation's body and query from its description. */
export function checksOf({ document }: OpenApi): {
  readonly body: (operation: DocumentedOperation) => Check | undefined
  readonly query: (operation: DocumentedOperation) => Check | undefined
} {
  const options = { strict: false, validateFormats: false, verbose: true } as const
  const bodies = new Ajv2020({ ...options, schemas: { openapi: document } })
  // Queries and forms are text; their numbers are made numbers in place.
  const texts = new Ajv2020({ ...options, coerceTypes: true, schemas: { openapi: document } })

  return {
    body: ({ requestBody }) => {
      const form = requestBody?.content['multipart/form-data']?.schema
      if (form) return checkWith(texts.compile(absolute(form)), 'body')
      const schema = requestBody?.content['application/json']?.schema
      return schema && checkWith(bodies.compile(absolute(schema)), 'body')
    },
    query: ({ parameters }) => {
      const inQuery = parameters.filter((parameter) => parameter.in === 'query')
      if (inQuery.length === 0) return undefined
      const properties = Object.fromEntries(inQuery.map(({ name, schema }) => [name, absolute(schema)]))
      return checkWith(texts.compile({ type: 'object', properties, additionalProperties: false }), 'query')
    },
  }
}

/** The document's own references, seen from outside it. */
function absolute<T extends { readonly $ref?: string }>(schema: T): T {
  return schema.$ref ? { ...schema, $ref: `openapi${schema.$ref}` } : schema
}

function checkWith(isValid: ValidateFunction, where: 'body' | 'query'): Check {
  return (value) => {
    if (!isValid(value)) throw errorOf(isValid.errors![0]!, where)
  }
}

/** JSON Schema keyword → code; any other is `invalid_request`. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  required: 'missing_required_parameter',
  type: 'invalid_type',
  minimum: 'integer_below_min_value',
  maximum: 'integer_above_max_value',
  maxLength: 'string_above_max_length',
  maxItems: 'array_above_max_length',
  maxProperties: 'array_above_max_length',
  enum: 'unsupported_value',
  const: 'unsupported_value',
  pattern: 'unsupported_value',
}

function errorOf({ keyword, params, instancePath, message, parentSchema }: ErrorObject, where: 'body' | 'query'): KisError {
  const own: string | undefined = params.missingProperty ?? params.additionalProperty
  const param = pathOf(instancePath, own)
  const code = CODES[keyword] ?? 'invalid_request'
  if (param === null) return new KisError(code, `The ${where} ${message}.`)
  if (keyword === 'required') return new KisError(code, `Missing required parameter: \`${param}\`.`, { param })
  if (keyword === 'additionalProperties') return new KisError(code, `Unknown parameter: \`${param}\`.`, { param })
  if (keyword === 'enum')
    return new KisError(
      code,
      `\`${param}\` must be one of ${params.allowedValues.filter((value: unknown) => value !== null).join(', ')}.`,
      { param },
    )
  const meaning = typeof parentSchema?.description === 'string' ? ` (${parentSchema.description.trim().replace(/\.$/, '')})` : ''
  return new KisError(code, `\`${param}\` ${message}${meaning}.`, { param })
}

/** `/messages/0/content` and a name in it → `messages[0].content.name`; null for the whole. */
function pathOf(pointer: string, own: string | undefined): string | null {
  const keys = pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (own !== undefined) keys.push(own)
  return keys.map((key, at) => (/^\d+$/.test(key) && at > 0 ? `[${key}]` : at > 0 ? `.${key}` : key)).join('') || null
}
