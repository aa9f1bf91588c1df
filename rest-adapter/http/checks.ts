import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { refuse } from '../../subgraphs/common/check.ts'
import { errorOfFault } from '../../subgraphs/common/link/schema-fault.ts'
import type { DocumentedOperation, OpenApi } from './openapi.ts'

/** @throws {KisError} `invalid_request`: the first fault, with its path in the caller's own names */
export type Check = (value: unknown) => void

/**
 * Builds the checks of an operation's body and query from its description. Each is compiled when it is first used:
 * compiling all of them takes longer than the rest of the start.
 */
export function compileChecks({ document }: OpenApi): {
  readonly body: (operation: DocumentedOperation) => { readonly json: Check | undefined; readonly form: Check | undefined }
  readonly query: (operation: DocumentedOperation) => Check | undefined
} {
  const options = { strict: false, validateFormats: false, verbose: true } as const
  const bodies = once(() => new Ajv2020({ ...options, schemas: { openapi: document } }))
  // Queries and forms are text. This check turns their numbers into numbers, in place.
  const texts = once(() => new Ajv2020({ ...options, coerceTypes: true, schemas: { openapi: withFiles(document) } }))

  return {
    body: ({ requestBody }) => {
      const form = requestBody?.content['multipart/form-data']?.schema
      const json = requestBody?.content['application/json']?.schema
      return {
        form: form && checkWith(() => texts().compile(absolute(form)), 'body'),
        json: json && checkWith(() => bodies().compile(absolute(json)), 'body'),
      }
    },
    query: ({ parameters }) => {
      const inQuery = parameters.filter((parameter) => parameter.in === 'query')
      if (inQuery.length === 0) return undefined
      const properties = Object.fromEntries(inQuery.map(({ name, schema }) => [name, absolute(schema)]))
      const required = inQuery.filter((parameter) => parameter.required).map(({ name }) => name)
      const check = checkWith(() => texts().compile({ type: 'object', properties, required }), 'query')
      return (value) => {
        checkNames(value as object, Object.keys(properties))
        check(value)
      }
    },
  }
}

/** None of our query parameters is a list, so each is sent once. */
function checkNames(query: object, known: readonly string[]): void {
  for (const [name, value] of Object.entries(query)) {
    if (!known.includes(name)) {
      const all = known.map((each) => `\`${each}\``).join(', ')
      refuse('unknown_parameter', name, `Unknown parameter: \`${name}\`. The query parameters of this address are ${all}.`)
    }
    if (Array.isArray(value)) refuse('invalid_type', name, `\`${name}\` is sent more than once.`)
  }
}

/** Files of forms are objects here; the document describes their bytes. */
function withFiles(document: OpenApi['document']): object {
  return JSON.parse(JSON.stringify(document, (_key, value) => (value?.format === 'binary' ? {} : value)))
}

/** Makes references inside the document absolute. */
function absolute<T extends { readonly $ref?: string }>(schema: T): T {
  return schema.$ref ? { ...schema, $ref: `openapi${schema.$ref}` } : schema
}

function checkWith(compile: () => ValidateFunction, where: 'body' | 'query'): Check {
  const compiled = once(compile)
  return (value) => {
    const isValid = compiled()
    if (!isValid(value)) throw errorOfFault(isValid.errors![0]!, `The ${where}`)
  }
}

/** Gives what `make` made when it was first asked. */
export function once<T>(create: () => T): () => T {
  let created: { readonly value: T } | undefined
  return () => {
    created ??= { value: create() }
    return created.value
  }
}
