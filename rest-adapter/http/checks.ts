import type { TSchema } from '@sinclair/typebox'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { refuse } from '../../subgraphs/common/check.ts'
import { errorOfFault } from '../../subgraphs/common/link/schema-fault.ts'
import { isOptional, type RestOperation, valueSchema } from '../contract/build.ts'
import type { OpenApi } from './openapi.ts'

/** @throws {KisError} `invalid_request`: the first fault, with its path in the caller's own names */
export type Check = (value: unknown) => void

/**
 * Builds the checks of an operation's body and query from its schemas. Each is compiled on first use: compiling all
 * of them takes longer than the rest of the start.
 */
export function compileChecks({ document }: OpenApi): {
  readonly body: (operation: RestOperation) => { readonly json: Check | undefined; readonly form: Check | undefined }
  readonly query: (operation: RestOperation) => Check | undefined
} {
  const options = { strict: false, validateFormats: false, verbose: true } as const
  const bodies = once(() => new Ajv2020({ ...options, schemas: { openapi: document } }))
  // Queries and forms are text. This check converts their numbers in place.
  const texts = once(() => new Ajv2020({ ...options, coerceTypes: true, schemas: { openapi: withFiles(document) } }))

  return {
    body: ({ body, form }) => ({
      form: form && checkWith(() => texts().compile(absolute(form)), 'body'),
      json: body && checkWith(() => bodies().compile(absolute(body)), 'body'),
    }),
    query: ({ query }) => {
      if (!query) return undefined
      const properties = Object.fromEntries(Object.entries(query).map(([name, schema]) => [name, absolute(valueSchema(schema))]))
      const required = Object.keys(query).filter((name) => !isOptional(query[name]!))
      const check = checkWith(() => texts().compile({ type: 'object', properties, required }), 'query')
      return (value) => {
        checkNames(value as object, Object.keys(properties))
        check(value)
      }
    },
  }
}

/** Refuses unknown query parameters and repeated ones: none of our parameters is a list. */
function checkNames(query: object, known: readonly string[]): void {
  for (const [name, value] of Object.entries(query)) {
    if (!known.includes(name)) {
      const all = known.map((each) => `\`${each}\``).join(', ')
      refuse('unknown_parameter', name, `Unknown parameter: \`${name}\`. The query parameters of this address are ${all}.`)
    }
    if (Array.isArray(value)) refuse('invalid_type', name, `\`${name}\` is sent more than once.`)
  }
}

/** Returns the document with files of forms as objects, which they are here; the document describes their bytes. */
function withFiles(document: OpenApi['document']): object {
  return JSON.parse(JSON.stringify(document, (_key, value) => (value?.format === 'binary' ? {} : value)))
}

/** Makes references inside the document absolute. */
function absolute(schema: TSchema): TSchema {
  return schema.$ref ? { ...schema, $ref: `openapi${schema.$ref}` } : schema
}

function checkWith(compile: () => ValidateFunction, where: 'body' | 'query'): Check {
  const compiled = once(compile)
  return (value) => {
    const isValid = compiled()
    if (!isValid(value)) throw errorOfFault(isValid.errors![0]!, `The ${where}`)
  }
}

/** Returns a function that calls `create` once and then returns its result. */
export function once<T>(create: () => T): () => T {
  let created: { readonly value: T } | undefined
  return () => {
    created ??= { value: create() }
    return created.value
  }
}
