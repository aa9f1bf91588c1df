import { readFileSync } from 'node:fs'
import { Supergraph } from '@apollo/federation-internals'
import {
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isObjectType,
} from 'graphql'
import { readOpenApi, type Schema } from '../../rest-adapter/http/openapi.ts'

/** The contract of the REST API. Suites derive their cases from it, so that they cover all of it. */
export const openapi = readOpenApi()

/** The supergraph's public schema. */
export const apiSchema: GraphQLSchema = Supergraph.build(
  readFileSync(new URL('../../schema/supergraph.graphql', import.meta.url), 'utf8'),
  { supportedFeatures: null },
)
  .apiSchema()
  .toGraphQLJSSchema()

export type RestOperation = (typeof openapi.operations)[number]

/** Formats an operation as `POST /v1/agents`. */
export const routeName = ({ method, path }: RestOperation) => `${method} ${path}`

/** Returns a schema with its reference resolved and its combined schemas merged. */
export function plainSchema(input: Schema): Schema {
  const schema = openapi.resolve(input)
  if (!schema.allOf) return schema
  const parts = schema.allOf.map(plainSchema)
  const properties = Object.assign({}, ...parts.map((part) => part.properties), schema.properties)
  return { ...Object.assign({}, ...parts), ...schema, properties }
}

export function findBodySchema({ operation }: RestOperation): { readonly contentType: string; readonly schema: Schema } | undefined {
  const content = operation.requestBody && openapi.resolve(operation.requestBody).content
  if (!content) return undefined
  const [contentType, { schema }] = Object.entries(content)[0]!
  return { contentType, schema: plainSchema(schema) }
}

/** A part of a request that accepts any text or any JSON from callers. */
export interface RequestPosition {
  /** The position, such as `path.id`, `query.after`, `header.idempotency-key` or `body.messages[].content`. */
  readonly at: string
}

/**
 * Returns the places of an operation. Numbers, booleans and enumerations are not places, because they cannot name
 * anything.
 */
export function restPositions(operation: RestOperation): RequestPosition[] {
  const parameters = operation.operation.parameters
    .filter(({ schema }) => isFree(plainSchema(schema)))
    .map((parameter) => ({ at: `${parameter.in}.${parameter.in === 'header' ? parameter.name.toLowerCase() : parameter.name}` }))
  const streams = operation.path.endsWith('/events') ? [{ at: 'header.last-event-id' }] : []
  const body = findBodySchema(operation)
  return [...parameters, ...streams, ...(body ? [...positionsIn(body.schema, 'body')] : [])]
}

function* positionsIn(input: Schema, at: string): Generator<RequestPosition> {
  const schema = plainSchema(input)
  const choices = [...(schema.anyOf ?? []), ...((schema.oneOf as Schema[] | undefined) ?? [])]
  for (const choice of choices) yield* positionsIn(choice, at)
  // Callers may add fields: the object is a place as a whole.
  if (schema.additionalProperties) yield { at }
  else if (schema.properties)
    for (const [name, property] of Object.entries(schema.properties)) yield* positionsIn(property, `${at}.${name}`)
  else if (schema.items) yield* positionsIn(schema.items, `${at}[]`)
  else if (isFree(schema) && choices.length === 0) yield { at }
}

const listTypes = ({ type }: Schema) => (Array.isArray(type) ? type : type === undefined ? [] : [type]) as readonly string[]

/** Matches the patterns of amounts of money. */
const MONEY = /^\^-\?\\d|^\^\\d/

function isFree(schema: Schema): boolean {
  if (schema.enum || schema.const !== undefined) return false
  if (typeof schema.pattern === 'string' && MONEY.test(schema.pattern)) return false
  const types = listTypes(schema).filter((type) => type !== 'null')
  return types.length === 0 || types.some((type) => type === 'string' || type === 'object' || type === 'array')
}

/** A field of a root type. */
export interface RootField {
  readonly operation: 'query' | 'mutation' | 'subscription'
  readonly name: string
  readonly field: ReturnType<GraphQLObjectType['getFields']>[string]
}

export const rootFields: readonly RootField[] = (
  [
    ['query', apiSchema.getQueryType()],
    ['mutation', apiSchema.getMutationType()],
    ['subscription', apiSchema.getSubscriptionType()],
  ] as const
).flatMap(([operation, type]) => Object.entries(type!.getFields()).map(([name, field]) => ({ operation, name, field })))

/** The fields with arguments below the root types, such as `Agent.runs`. */
export const innerFields = Object.values(apiSchema.getTypeMap())
  .filter(isObjectType)
  .filter((type) => !type.name.startsWith('__') && !rootTypes().includes(type))
  .flatMap((type) => Object.values(type.getFields()).flatMap((field) => (field.args.length > 0 ? [{ type, field }] : [])))

function rootTypes(): readonly unknown[] {
  return [apiSchema.getQueryType(), apiSchema.getMutationType(), apiSchema.getSubscriptionType()]
}

/** The scalars that hold a value and cannot name anything. */
const VALUES = new Set(['Int', 'Float', 'Boolean', 'DateTime', 'USD', 'NanoUSD'])

export interface GraphQLPosition extends RequestPosition {
  /** Where the place is declared: `SearchInput.collectionId` or `Query.collection.id`. */
  readonly coordinate: string
}

/** Returns the places of a field's arguments, such as `input.collectionId`. */
export function graphqlPositions(owner: string, field: RootField['field']): GraphQLPosition[] {
  return field.args.flatMap((argument) => [...findPositions(argument, argument.name, `${owner}.${field.name}.${argument.name}`)])
}

function* findPositions({ type }: GraphQLArgument | GraphQLInputField, at: string, coordinate: string): Generator<GraphQLPosition> {
  const named = getNamedType(type as GraphQLInputType)
  if (isInputObjectType(named))
    for (const field of Object.values(named.getFields())) yield* findPositions(field, `${at}.${field.name}`, `${named.name}.${field.name}`)
  else if (!isEnumType(named) && !VALUES.has(named.name)) yield { at, coordinate }
}

/** Returns a selection of all fields without arguments, to this depth. */
export function createSelection(type: GraphQLOutputType, depth: number): string {
  const named = getNamedType(type)
  if (isLeafType(named)) return ''
  if (!isObjectType(named)) return '{ __typename }'
  const fields = Object.values(named.getFields()).flatMap((field) => {
    if (field.args.some(({ type, defaultValue }) => String(type).endsWith('!') && defaultValue === undefined)) return []
    if (isLeafType(getNamedType(field.type))) return [field.name]
    return depth > 0 ? [`${field.name} ${createSelection(field.type, depth - 1)}`] : []
  })
  return `{ ${['__typename', ...fields].join(' ')} }`
}
