import { type Schema, Validator } from '@cfworker/json-schema'
import { isObject } from '../../../data/is-object.ts'
import type { Path } from './source.ts'

/** What is wrong with a value, by the keyword of its schema. */
export interface Problem {
  readonly path: Path
  readonly keyword: Keyword
  /** What the schema asks for: a number, a name, or a list of them. */
  readonly wanted: string
}

const KEYWORDS = [
  'required',
  'unknown',
  'type',
  'enum',
  'const',
  'pattern',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minimum',
  'maximum',
  'other',
] as const
type Keyword = (typeof KEYWORDS)[number]

/** These only hold others, which say what is wrong. */
const HOLDERS = new Set([
  '$ref',
  'allOf',
  'anyOf',
  'oneOf',
  'if',
  'properties',
  'patternProperties',
  'items',
  'prefixItems',
  'additionalProperties',
])
const MAX_PROBLEMS = 20

/**
 * Checks a value by a JSON Schema. The Content-Security-Policy allows no compiled code, so this validator reads the
 * schema. Empty: nothing is wrong, or only the service can tell.
 */
export function findProblems(schema: object, value: unknown): readonly Problem[] {
  let errors: ReturnType<Validator['validate']>['errors']
  try {
    ;({ errors } = new Validator(schema as Schema, '2020-12', false).validate(value))
  } catch {
    return []
  }
  const leaves = errors.filter(({ keyword }) => !HOLDERS.has(keyword))
  // A schema of `anyOf` may fail without a leaf.
  const reported = leaves.length > 0 ? leaves : errors.slice(0, 1)
  const problems = reported.map(({ keyword, keywordLocation, instanceLocation, error }): Problem => {
    const path = readPointer(instanceLocation, value)
    if (keyword === 'false') return { path, keyword: 'unknown', wanted: String(path.at(-1) ?? '') }
    if (keyword === 'required') return { path, keyword, wanted: /"(.*)"/.exec(error)?.[1] ?? '' }
    const known = KEYWORDS.find((each) => each === keyword) ?? 'other'
    return { path, keyword: known, wanted: wantedAt(schema, keywordLocation) }
  })
  const unique = new Map(problems.map((problem) => [JSON.stringify(problem), problem]))
  return [...unique.values()].slice(0, MAX_PROBLEMS)
}

function stepsOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** Steps into lists are numbers. */
function readPointer(pointer: string, value: unknown): Path {
  let at = value
  return stepsOf(pointer).map((step) => {
    const isIndex = Array.isArray(at)
    at = isIndex ? (at as unknown[])[Number(step)] : isObject(at) ? at[step] : undefined
    return isIndex ? Number(step) : step
  })
}

/** The value of a keyword, found through the references on the way to it. */
function wantedAt(schema: object, location: string): string {
  let at: unknown = schema
  for (const step of stepsOf(location)) {
    if (isObject(at) && typeof at.$ref === 'string' && step === '$ref') {
      at = stepsOf(at.$ref).reduce<unknown>((now, each) => (isObject(now) ? now[each] : undefined), schema)
    } else {
      at = isObject(at) || Array.isArray(at) ? (at as Record<string, unknown>)[step] : undefined
    }
  }
  return Array.isArray(at) ? at.map(String).join(', ') : at === undefined || typeof at === 'object' ? '' : String(at)
}
