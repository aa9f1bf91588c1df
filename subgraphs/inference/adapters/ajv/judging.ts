import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { LRUCache } from 'lru-cache'
import type { SchemaFault } from '../../ports/schema-judge.ts'
import { LinearPattern } from './linear-pattern.ts'

/** A request to a thread: checks the schema and, if there is a value, the value. */
export interface Question {
  /** JSON. */
  readonly schema: string
  /** JSON. Null: only the schema is checked. */
  readonly value: string | null
}

/** The faults of the value, or why the schema cannot be used. */
export type Verdict = { readonly faults: readonly SchemaFault[] } | { readonly failure: string }

/** Most faults in a result: more help no caller to repair its value. */
const MAX_FAULTS = 10
/**
 * Most compiled schemas that are cached. A map requests up to a hundred checks with the same schema, and a compiled one
 * may take a few megabytes.
 */
const MAX_CACHED = 4

const metaSchemas = new Ajv2020({ strict: false, validateFormats: false })
const compiled = new LRUCache<string, ValidateFunction>({ max: MAX_CACHED })

/** Checks a value against its schema; without a value, only the schema. */
export function judge({ schema, value }: Question): Verdict {
  let isValid: ValidateFunction
  try {
    isValid = compiled.get(schema) ?? compile(JSON.parse(schema))
  } catch (error) {
    return { failure: `It is not a JSON Schema (2020-12) that this service supports: ${(error as Error).message}.` }
  }
  compiled.set(schema, isValid)
  try {
    if (value === null || isValid(JSON.parse(value))) return { faults: [] }
  } catch (error) {
    // The schema refers to itself without end, or the value is nested a hundred thousand levels deep. Both overflow the
    // stack.
    return { failure: `The value cannot be checked against it: ${(error as Error).message}.` }
  }
  return {
    faults: isValid.errors!.slice(0, MAX_FAULTS).map(({ keyword, params, instancePath, message, parentSchema }) => ({
      keyword,
      params,
      instancePath,
      ...(message !== undefined && { message }),
      parentSchema: { description: parentSchema?.description },
    })),
  }
}

/**
 * Creates an instance for each schema, because two may have the same `$id`. References to other documents cannot be
 * resolved, and throw.
 */
function compile(schema: object): ValidateFunction {
  if (!metaSchemas.validateSchema(schema)) throw new Error(metaSchemas.errorsText(metaSchemas.errors, { dataVar: 'it' }))
  const options = {
    strict: false,
    allErrors: true,
    verbose: true,
    validateFormats: false,
    validateSchema: false,
    // Compiles each definition once, however often it is referred to.
    inlineRefs: false,
    addUsedSchema: false,
    code: { regExp: Object.assign((source: string) => new LinearPattern(source), { code: 'linear' }) },
  } as const
  const isValid = new Ajv2020(options).compile(schema)
  // A keyword of Ajv: the function would return a promise, which passes for every value, and whose rejection ends the
  // thread.
  if ('$async' in isValid) throw new Error('there is no keyword "$async"')
  return isValid
}
