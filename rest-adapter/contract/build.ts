import { OptionalKind, type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from '@sinclair/typebox'
import type { JsonObject } from '../http/route.ts'

export type Method = 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'DELETE'

/** Keywords of JSON Schema, such as `description` and `maxLength`. */
type Keywords = Readonly<Record<string, unknown>>

/** The named schemas of the contract, by name. Modules of this folder fill it as they load. */
export const definitions: Record<string, TSchema> = {}

/** Names a schema: the document describes it once under `components`. Returns the reference that others use. */
export function define(name: string) {
  const as = <S extends TSchema>(schema: S): TUnsafe<Static<S>> => {
    definitions[name] = schema
    return reference<Static<S>>(name)
  }
  const defineObject = (build: BuildObject) => ((...args: [TProperties]) => as(build(...args))) as DefineObject
  return {
    as,
    object: defineObject(object),
    closed: defineObject(closed),
    open: defineObject(open),
    extend: ((...args: [[], TProperties]) => as(extend(...args))) as typeof extend,
  }
}

/** Refers to a schema by its name. Only a schema that contains itself needs this. */
export const reference = <T>(name: string): TUnsafe<T> => Type.Unsafe<T>({ $ref: `#/components/schemas/${name}` })

const keywordsOf = (description: string | undefined, keywords: Keywords = {}) => ({
  ...(description !== undefined && { description }),
  ...keywords,
})

export const optional = Type.Optional
export const string = (description?: string, keywords?: Keywords) => Type.String(keywordsOf(description, keywords))
export const integer = (description?: string, keywords?: Keywords) => Type.Integer(keywordsOf(description, keywords))
export const number = (description?: string, keywords?: Keywords) => Type.Number(keywordsOf(description, keywords))
export const boolean = (description?: string, keywords?: Keywords) => Type.Boolean(keywordsOf(description, keywords))
export const anything = (description?: string, keywords?: Keywords) => Type.Unknown(keywordsOf(description, keywords))

export const array = <S extends TSchema>(items: S, description?: string, keywords?: Keywords): TUnsafe<readonly Static<S>[]> =>
  Type.Unsafe(Type.Array(items, keywordsOf(description, keywords)))

type ObjectArguments = [description: string | undefined, properties: TProperties, keywords?: Keywords]

/** Builds an object from its fields, perhaps with its description before them. */
interface BuildObject {
  <P extends TProperties>(properties: P, keywords?: Keywords): TObject<P>
  <P extends TProperties>(description: string, properties: P, keywords?: Keywords): TObject<P>
}

interface DefineObject {
  <P extends TProperties>(properties: P, keywords?: Keywords): TUnsafe<Static<TObject<P>>>
  <P extends TProperties>(description: string, properties: P, keywords?: Keywords): TUnsafe<Static<TObject<P>>>
}

function objectWith(extra?: Keywords): BuildObject {
  return (...args: unknown[]) => {
    const [description, properties, keywords] = (typeof args[0] === 'string' ? args : [undefined, ...args]) as ObjectArguments
    return Type.Object(properties, { ...keywordsOf(description, keywords), ...extra }) as never
  }
}

export const object = objectWith()
/** An object that may have no other fields: requests with a field that the service does not know are refused. */
export const closed = objectWith({ additionalProperties: false })
/** An object that may have other fields, which the service passes on. */
export const open = objectWith({ additionalProperties: true })

/** Any JSON object. */
export const anyObject = (description?: string, keywords?: Keywords) =>
  Type.Unsafe<JsonObject>({ type: 'object', additionalProperties: true, ...keywordsOf(description, keywords) })

/** An object whose keys callers choose. */
export const mapOf = <S extends TSchema>(
  values: S,
  description?: string,
  keywords?: Keywords,
): TUnsafe<Readonly<Record<string, Static<S>>>> =>
  Type.Unsafe({ type: 'object', additionalProperties: values, ...keywordsOf(description, keywords) })

export const constant = <const V extends string | boolean>(value: V, description = `Always \`${value}\`.`) =>
  Type.Unsafe<V>({ const: value, ...(description && { description }) })

export const oneOf = <const V extends string>(values: readonly V[], description?: string, keywords?: Keywords): TUnsafe<V> =>
  Type.Unsafe<V>({ enum: values, ...keywordsOf(description, keywords) })

export const anyOf = <S extends TSchema[]>(schemas: [...S], description?: string, keywords?: Keywords): TUnsafe<Static<S[number]>> =>
  Type.Unsafe({ anyOf: schemas, ...keywordsOf(description, keywords) })

/** Accepts null too. */
export function nullable<S extends TSchema>(schema: S): TUnsafe<Static<S> | null> {
  if (schema.enum) return Type.Unsafe({ ...schema, enum: [...schema.enum, null] })
  if (typeof schema.type === 'string') return Type.Unsafe({ ...schema, type: [schema.type, 'null'] })
  return Type.Unsafe({ anyOf: [schema, { type: 'null' }] })
}

/** An object with the fields of all bases, and its own. */
export function extend<Bases extends readonly TSchema[], P extends TProperties>(
  bases: readonly [...Bases],
  properties: P,
  keywords?: Keywords,
): TUnsafe<Combined<Bases> & Static<TObject<P>>>
export function extend<Bases extends readonly TSchema[], P extends TProperties>(
  bases: readonly [...Bases],
  description: string,
  properties: P,
  keywords?: Keywords,
): TUnsafe<Combined<Bases> & Static<TObject<P>>>
export function extend(bases: readonly TSchema[], ...args: unknown[]): TUnsafe<never> {
  const { properties, ...rest } = object(...(args as [TProperties]))
  return Type.Unsafe({ ...rest, ...(Object.keys(properties).length > 0 && { properties }), allOf: bases })
}

type Combined<Bases> = Bases extends readonly [infer First extends TSchema, ...infer Rest] ? Static<First> & Combined<Rest> : unknown

/** Returns the schema with the description of this use. */
export const described = <S extends TSchema>(schema: S, description?: string, keywords?: Keywords): S => ({
  ...schema,
  ...keywordsOf(description, keywords),
})

interface ResponseDescription {
  readonly description: string
  /** The body as JSON. */
  readonly json?: TSchema
  /** Other bodies, by media type. */
  readonly content?: Readonly<Record<string, TSchema>>
  readonly headers?: TProperties
}

/** How a route describes its request and its responses. */
interface Description {
  readonly tag: string
  readonly summary: string
  readonly description?: string
  /** Of the path. */
  readonly params?: TProperties
  /** `valueDescription` of a schema says in errors what the value must be; `description` is the parameter's. */
  readonly query?: TProperties
  readonly headers?: TProperties
  /** A body of JSON. */
  readonly body?: TSchema
  /** A body that is a form. */
  readonly form?: TSchema
  /** Other bodies, by media type. */
  readonly bytes?: Readonly<Record<string, TSchema>>
  /** Default: true. */
  readonly isBodyRequired?: boolean
  /** By status. */
  readonly responses: Readonly<Record<number, ResponseDescription>>
  /** By `4XX` and `5XX`. Default: those of the chat protocol. */
  readonly errors?: Readonly<Record<string, { readonly $ref: string } | ResponseDescription>>
  /** Needs no key. */
  readonly isPublic?: boolean
}

/** One operation of the REST API: a method of an address, with all that the service accepts and returns there. */
export type RestOperation<D extends Description = Description> = D & { readonly id: string; readonly method: Method; readonly path: string }

/** The parameters of the path. */
export type ParamsOf<O extends RestOperation> = { readonly [Name in keyof O['params']]: string }

export type QueryOf<O extends RestOperation> = O extends { readonly query: infer Q extends TProperties } ? Static<TObject<Q>> : JsonObject

/** The body, as JSON or as the fields of a form. */
export type BodyOf<O extends RestOperation> =
  | (O extends { readonly body: infer B extends TSchema } ? Static<B> : never)
  | (O extends { readonly form: infer F extends TSchema } ? Static<F> : never)

/** The body of a success. Unknown if it is not always JSON. */
export type ResponseOf<O extends RestOperation> = RestOperation extends O ? unknown : BodyOfStatus<O['responses']>[keyof O['responses']]

type BodyOfStatus<Responses> = {
  [Status in keyof Responses]: Responses[Status] extends { readonly content: object }
    ? unknown
    : Responses[Status] extends { readonly json: infer J extends TSchema }
      ? Static<J>
      : undefined
}

/** An item of a list. */
export type ItemOf<O extends RestOperation> = ResponseOf<O> extends { readonly data: readonly (infer Item)[] } ? Item : never

/** The operations, in the order in which modules of this folder load. */
export const operations: RestOperation[] = []

export function operation<const D extends Description>(id: string, method: Method, path: string, description: D): RestOperation<D> {
  const declared = { id, method, path, ...description }
  operations.push(declared)
  return declared
}

export const isOptional = (schema: TSchema) => OptionalKind in schema

/** Returns the schema of a parameter's value: what describes the parameter stays out. */
export const valueSchema = ({ description: _, example: _example, valueDescription, ...schema }: TSchema) => ({
  ...schema,
  ...(valueDescription !== undefined && { description: valueDescription }),
})

const toParameters = (place: string, properties: TProperties = {}) =>
  Object.entries(properties).map(([name, schema]) => ({
    name,
    in: place,
    ...(!isOptional(schema) && { required: true }),
    description: schema.description,
    ...(schema.example !== undefined && { example: schema.example }),
    schema: valueSchema(schema),
  }))

const toContent = (schemas: Readonly<Record<string, TSchema | undefined>>) =>
  Object.fromEntries(Object.entries(schemas).flatMap(([type, schema]) => (schema ? [[type, { schema }]] : [])))

export function toResponse({ description, json, content, headers }: ResponseDescription) {
  const bodies = toContent({ 'application/json': json, ...content })
  const described = Object.entries(headers ?? {}).map(([name, { description, ...schema }]) => [name, { description, schema }])
  return {
    description,
    ...(headers && { headers: Object.fromEntries(described) }),
    ...(Object.keys(bodies).length > 0 && { content: bodies }),
  }
}

export const ERROR = { $ref: '#/components/responses/Error' }

/** Converts an operation to the form that OpenAPI has for it. */
export function toOpenApi({ id, tag, summary, description, isPublic, ...declared }: RestOperation) {
  const { params, query, headers, body, form, bytes, isBodyRequired = true, responses, errors = { '4XX': ERROR, '5XX': ERROR } } = declared
  const parameters = [...toParameters('path', params), ...toParameters('query', query), ...toParameters('header', headers)]
  const content = toContent({ 'application/json': body, 'multipart/form-data': form, ...bytes })
  const each = { ...responses, ...errors } as Readonly<Record<string, ResponseDescription | { readonly $ref: string }>>
  const bodies = Object.entries(each).map(([status, response]) => [status, '$ref' in response ? response : toResponse(response)])
  return {
    tags: [tag],
    operationId: id,
    summary,
    ...(description !== undefined && { description }),
    ...(isPublic && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(Object.keys(content).length > 0 && { requestBody: { ...(isBodyRequired && { required: true }), content } }),
    responses: Object.fromEntries(bodies),
  }
}
