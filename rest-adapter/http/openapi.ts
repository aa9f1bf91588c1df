import { readFileSync } from 'node:fs'
import type { Method } from '../contract/build.ts'
import { assembleDocument } from '../contract/document.ts'

/** The part of JSON Schema that the adapter and the reference page read. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
  readonly [keyword: string]: unknown
}

interface Parameter {
  readonly name: string
  readonly in: 'query' | 'path' | 'header'
  readonly required?: boolean
  readonly description: string
  readonly schema: Schema
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>

export interface DocumentedOperation {
  readonly tags: readonly string[]
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly parameters: readonly Parameter[]
  /** Not required: a body without any fields may be left out. */
  readonly requestBody?: { readonly required?: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>
  /** Empty: no key is needed. */
  readonly security?: readonly unknown[]
}

/** An event type of `schema/events.yaml`. */
interface DocumentedEvent {
  readonly when: string
  readonly subject: string
  readonly subscription: string | null
  readonly cursor: string
  readonly data: Schema
}

/** The description of the REST API. */
export interface OpenApi {
  /** The document as served. */
  readonly document: Readonly<Record<string, unknown>> & {
    readonly info: { readonly title: string; readonly description: string }
    readonly tags: readonly { readonly name: string; readonly description: string }[]
  }
  /** The events of webhooks, by type. */
  readonly events: Readonly<Record<string, DocumentedEvent>>
  readonly operations: readonly { readonly method: Method; readonly path: string; readonly operation: DocumentedOperation }[]
  /** Returns the target of `$ref: '#/…'`; anything else unchanged. */
  resolve<T extends object>(value: T): T
}

let known: OpenApi | undefined

/** Returns the description of the REST API, which the modules of `contract` declare. It is shared: nobody may change it. */
export function readOpenApi(): OpenApi {
  known ??= read()
  return known
}

function read(): OpenApi {
  const events = JSON.parse(readFileSync(new URL('../../schema/generated/events.json', import.meta.url), 'utf8')) as OpenApi['events']
  const assembled = assembleDocument()
  const document = { ...assembled, webhooks: describeWebhooks(events) }
  const resolve = <T extends object>(value: T): T => {
    const ref = '$ref' in value && typeof value.$ref === 'string' ? value.$ref : undefined
    if (!ref) return value
    return ref
      .slice('#/'.length)
      .split('/')
      .reduce<unknown>((node, key) => (node as Readonly<Record<string, unknown>>)[key], document) as T
  }
  const operations = Object.entries(assembled.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const responses = Object.entries(operation.responses).map(([status, response]) => [status, resolve(response as object)])
      return {
        method: method.toUpperCase() as Method,
        path,
        operation: { parameters: [], ...operation, responses: Object.fromEntries(responses) } as DocumentedOperation,
      }
    }),
  )
  return { document, events, operations, resolve }
}

/** Converts the events to the form that OpenAPI has for webhooks. */
function describeWebhooks(events: OpenApi['events']) {
  const webhooks = Object.entries(events).map(([type, { when, subject, data }]) => {
    const properties = { type: { const: type }, timestamp: { type: 'string', format: 'date-time' }, data }
    const schema = { type: 'object', required: ['type', 'timestamp', 'data'], properties }
    const post = {
      tags: ['Webhooks'],
      operationId: type,
      summary: when,
      description: `Subject: ${subject}`,
      requestBody: { content: { 'application/json': { schema } } },
      responses: { '2XX': { description: 'You accepted the event. After any other response the service sends it again.' } },
    }
    return [type, { post }]
  })
  return Object.fromEntries(webhooks)
}
