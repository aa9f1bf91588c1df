import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { LRUCache } from 'lru-cache'
import type { SchemaFault } from '../../ports/schema-judge.ts'
import { LinearPattern } from './linear-pattern.ts'

/** A question to a thread: is the schema valid, and if there is a value, what is wrong with it? */
export interface Question {
  /** JSON. */
  readonly schema: string
  /** JSON; null: only the schema is checked. */
  readonly value: string | null
}

export type Verdict = { readonly faults: readonly SchemaFault[] } | { readonly failure: string }

/** Most faults in an answer: nobody fixes more at once. */
const MAX_FAULTS = 10
/**
 * Compiled schemas kept. A map asks up to a hundred times with the same schema, and a compiled one may take a few
 * megabytes.
 */
const MAX_CACHED = 4

const metaSchemas = new Ajv2020({ strict: false, validateFormats: false })
const compiled = new LRUCache<string, ValidateFunction>({ max: MAX_CACHED })

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
    // A schema that refers to itself without end, or a value nested a hundred thousand levels deep. Both overflow the
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
 * A new instance for each schema, because two may have the same `$id`. References to other documents cannot be
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
    // Compile each definition once, however often it is referred to.
    inlineRefs: false,
    addUsedSchema: false,
    code: { regExp: Object.assign((source: string) => new LinearPattern(source), { code: 'linear' }) },
  } as const
  const isValid = new Ajv2020(options).compile(schema)
  // Ajv's own keyword: the function would give a promise, which holds for every value, and whose rejection ends the
  // thread.
  if ('$async' in isValid) throw new Error('there is no keyword "$async"')
  return isValid
}
