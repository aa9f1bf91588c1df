import { isObject } from '../../../data/is-object.ts'

const MAX_CHARACTERS = 32_768
const MAX_DEPTH = 100
const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']
/** Keywords whose value is one schema, a list of schemas, or schemas by name. */
const ONE = ['items', 'additionalProperties', 'contains', 'not', 'if', 'then', 'else', 'propertyNames', 'unevaluatedItems']
const LIST = ['anyOf', 'allOf', 'oneOf', 'prefixItems']
const NAMED = ['properties', 'patternProperties', '$defs', 'dependentSchemas']

type SchemaProblem =
  | { readonly kind: 'empty' | 'notJson' | 'notObject' | 'long' | 'deep' }
  | { readonly kind: 'notJsonAt'; readonly line: number }
  | { readonly kind: 'type' | 'required' | 'enum' | 'reference' | 'part'; readonly path: string }

/** Reads a typed schema of the answer: returns the object, or its first problem. The service checks the rest. */
export function readSchema(typed: string): { readonly schema: object } | { readonly problem: SchemaProblem } {
  if (typed.trim() === '') return { problem: { kind: 'empty' } }
  let schema: unknown
  try {
    schema = JSON.parse(typed)
  } catch (error) {
    const line = lineOf(typed, (error as Error).message)
    return { problem: line === null ? { kind: 'notJson' } : { kind: 'notJsonAt', line } }
  }
  if (!isObject(schema)) return { problem: { kind: 'notObject' } }
  if (JSON.stringify(schema).length > MAX_CHARACTERS) return { problem: { kind: 'long' } }
  const problem = problemIn(schema, '', 0)
  return problem ? { problem } : { schema }
}

function problemIn(schema: unknown, path: string, depth: number): SchemaProblem | null {
  if (depth > MAX_DEPTH) return { kind: 'deep' }
  if (typeof schema === 'boolean') return null
  const at = (keyword: string) => `${path}/${keyword}`
  if (!isObject(schema)) return { kind: 'part', path }
  const { type, required, $ref } = schema
  if (type !== undefined && ![type].flat().every((each) => TYPES.includes(each as string))) return { kind: 'type', path: at('type') }
  if (required !== undefined && !(Array.isArray(required) && required.every((each) => typeof each === 'string')))
    return { kind: 'required', path: at('required') }
  if (schema.enum !== undefined && !Array.isArray(schema.enum)) return { kind: 'enum', path: at('enum') }
  if ($ref !== undefined && !(typeof $ref === 'string' && $ref.startsWith('#'))) return { kind: 'reference', path: at('$ref') }
  const parts: (readonly [string, unknown])[] = []
  for (const keyword of ONE) if (keyword in schema) parts.push([at(keyword), schema[keyword]])
  for (const keyword of LIST) {
    const list = schema[keyword]
    if (list === undefined) continue
    if (!Array.isArray(list)) return { kind: 'part', path: at(keyword) }
    parts.push(...list.map((part, index) => [`${at(keyword)}/${index}`, part] as const))
  }
  for (const keyword of NAMED) {
    const named = schema[keyword]
    if (named === undefined) continue
    if (!isObject(named)) return { kind: 'part', path: at(keyword) }
    parts.push(...Object.entries(named).map(([name, part]) => [`${at(keyword)}/${name}`, part] as const))
  }
  for (const [partPath, part] of parts) {
    const problem = problemIn(part, partPath, depth + 1)
    if (problem) return problem
  }
  return null
}

/** Returns the line that a browser's message names, by line or by position. Not every message names one. */
function lineOf(typed: string, message: string): number | null {
  const line = /line (\d+)/.exec(message)?.[1]
  if (line) return Number(line)
  const position = /position (\d+)/.exec(message)?.[1]
  return position ? typed.slice(0, Number(position)).split('\n').length : null
}

export const EXAMPLE_SCHEMA = JSON.stringify(
  {
    type: 'object',
    properties: { answer: { type: 'string' }, isCertain: { type: 'boolean' } },
    required: ['answer', 'isCertain'],
    additionalProperties: false,
  },
  null,
  2,
)
