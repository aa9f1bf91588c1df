import type { ErrorCode } from '../../../schema/errors.ts'
import { KisError } from '../errors.ts'

/** Error codes by JSON Schema keyword. All other keywords map to `invalid_request`. */
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

/** An error of Ajv (with `verbose`): a value that does not fit its JSON Schema. */
interface Fault {
  readonly keyword: string
  readonly params: Readonly<Record<string, unknown>>
  readonly instancePath: string
  readonly message?: string | undefined
  readonly parentSchema?: object | undefined
  /** The value of the keyword. */
  readonly schema?: unknown
  /** The wrong value. */
  readonly data?: unknown
}

/**
 * Converts a fault to the error for the caller. Its `param` is a path such as `messages[0].content`, below `within`, the
 * path of the checked value. If the checked value itself is wrong, `whole` is its name in the message: `The body`. One
 * error names all missing fields of an object; `param` is the first of them.
 */
export function errorOfFault(fault: Fault, whole: string, within: string | null = null): KisError {
  const { keyword, params, instancePath, message, parentSchema } = fault
  const toParam = (own: string | undefined) => {
    const path = toPath(instancePath, own)
    return within && path ? `${within}${path.startsWith('[') ? '' : '.'}${path}` : (path ?? within)
  }
  const own = (params.missingProperty ?? params.additionalProperty) as string | undefined
  const param = toParam(own)
  const code = CODES[keyword] ?? 'invalid_request'
  if (param === null) return new KisError(code, `${whole} ${message}.`)
  if (keyword === 'required') {
    const missing = listMissing(fault).map((name) => `\`${toParam(name)}\``)
    if (missing.length < 2) return new KisError(code, `Missing required parameter: \`${param}\`.`, { param })
    return new KisError(code, `Missing required parameters: ${missing.join(', ')}.`, { param })
  }
  if (keyword === 'additionalProperties') return new KisError('unknown_parameter', `Unknown parameter: \`${param}\`.`, { param })
  if (keyword === 'enum')
    return new KisError(
      code,
      `\`${param}\` must be one of ${(params.allowedValues as readonly unknown[]).filter((value) => value !== null).join(', ')}.`,
      { param },
    )
  const description = (parentSchema as { readonly description?: unknown } | undefined)?.description
  const meaning = typeof description === 'string' ? ` (${description.trim().replace(/\.$/, '')})` : ''
  return new KisError(code, `\`${param}\` ${message}${meaning}.`, { param })
}

/** Returns the required fields that the value lacks, in the order of the schema. */
function listMissing({ schema, data }: Fault): readonly string[] {
  if (!Array.isArray(schema) || typeof data !== 'object' || data === null) return []
  return (schema as readonly string[]).filter((name) => !Object.hasOwn(data, name))
}

/** `/messages/0/content` and a field name → `messages[0].content.name`; null for the whole value. */
function toPath(pointer: string, own: string | undefined): string | null {
  const keys = pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (own !== undefined) keys.push(own)
  return keys.map((key, at) => (/^\d+$/.test(key) && at > 0 ? `[${key}]` : at > 0 ? `.${key}` : key)).join('') || null
}
