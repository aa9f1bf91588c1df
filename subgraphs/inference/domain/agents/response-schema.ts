import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { objectAt, refuse } from '../../../common/check.ts'
import type { ProtocolObject } from '../../ports/engines.ts'

/** Of the schema as JSON; compiling takes time that grows with it. */
const MAX_SCHEMA_CHARACTERS = 32_768
/** Faults that are told to the model, which can mend no more at once. */
const MAX_FAULTS = 10

/** @throws {KisError} it is no JSON Schema (2020-12) that can be judged here. */
export function checkSchema(value: unknown, param: string): ProtocolObject {
  const schema = objectAt(value, param)
  if (JSON.stringify(schema).length > MAX_SCHEMA_CHARACTERS)
    refuse('string_above_max_length', param, `A schema has at most ${MAX_SCHEMA_CHARACTERS} characters as JSON.`)
  try {
    compile(schema)
  } catch (error) {
    refuse('invalid_request', param, `This is no JSON Schema (2020-12): ${(error as Error).message}`)
  }
  return schema
}

export type Judgement = { readonly value: unknown } | { readonly faults: readonly string[] }

/** Judges texts by one schema; a text may stand in a Markdown fence, as many models write it. */
export class ResponseSchema {
  readonly schema: ProtocolObject
  readonly #isValid: ValidateFunction

  constructor(schema: ProtocolObject) {
    this.schema = schema
    this.#isValid = compile(schema)
  }

  judge(text: string): Judgement {
    let value: unknown
    try {
      value = JSON.parse(/^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(text)?.[1] ?? text)
    } catch (error) {
      return { faults: [`it is not JSON: ${(error as Error).message}`] }
    }
    if (this.#isValid(value)) return { value }
    const faults = (this.#isValid.errors ?? []).map(({ instancePath, message }) => `${instancePath || 'the value'} ${message}`)
    return { faults: faults.slice(0, MAX_FAULTS) }
  }
}

/** An instance for each schema: they may have the same `$id`. References to other documents cannot be resolved, and throw. */
function compile(schema: ProtocolObject): ValidateFunction {
  return new Ajv2020({ strict: false, allErrors: true, validateFormats: false, addUsedSchema: false }).compile(schema)
}
