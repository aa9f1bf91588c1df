import { GraphQLScalarType, Kind, type ValueNode } from 'graphql'
import { KisError } from '../errors.ts'
import { formatUsd, parseUsd } from '../usd.ts'

/** Token states on their way to another service: themselves within a process, base64 elsewhere. */
export class WireTokenEmbeddings {
  readonly embeddings: Int8Array

  constructor(embeddings: Int8Array) {
    this.embeddings = embeddings
  }

  toJSON(): string {
    const { buffer, byteOffset, byteLength } = this.embeddings
    return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
  }
}

/** Reads what a link gives for token states. */
export function readTokenEmbeddings(value: string | WireTokenEmbeddings): Int8Array {
  return typeof value === 'string' ? Int8Array.from(Buffer.from(value, 'base64')) : value.embeddings
}

/** A vector on its way to another service: itself within a process, base64 of little-endian 32-bit floats elsewhere. */
export class WireVector {
  readonly floats: Float32Array

  constructor(floats: Float32Array) {
    this.floats = floats
  }

  toJSON(): string {
    const { buffer, byteOffset, byteLength } = this.floats
    return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
  }
}

/** Reads what a link gives for a vector. Every platform that Node runs on is little-endian. */
export function readVector(value: string | WireVector): Float32Array {
  if (typeof value !== 'string') return value.floats
  // Copied, because a Float32Array must begin at a multiple of four bytes.
  return new Float32Array(Uint8Array.from(Buffer.from(value, 'base64')).buffer)
}

function literalToJson(node: ValueNode, variables?: Readonly<Record<string, unknown>> | null): unknown {
  switch (node.kind) {
    case Kind.NULL:
      return null
    case Kind.INT:
    case Kind.FLOAT:
      return Number(node.value)
    case Kind.LIST:
      return node.values.map((value) => literalToJson(value, variables))
    case Kind.OBJECT:
      return Object.fromEntries(node.fields.map((field) => [field.name.value, literalToJson(field.value, variables)]))
    case Kind.VARIABLE:
      return variables?.[node.name.value]
    default:
      return node.value
  }
}

/** Any JSON value, unchanged. */
const json = (name: string) => new GraphQLScalarType({ name, parseValue: (value) => value, parseLiteral: literalToJson })

const DateTime = new GraphQLScalarType<Date, string>({
  name: 'DateTime',
  serialize: (value) => (value as Date).toISOString(),
  parseValue(value) {
    const date = typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(value) ? new Date(value) : undefined
    if (!date || Number.isNaN(date.getTime()))
      throw new KisError('invalid_type', 'Expected an instant in ISO 8601, such as 2026-01-31T12:00:00Z.')
    return date
  },
})

/** A `bigint` of nano-USD inside, a decimal string outside. */
const USD = new GraphQLScalarType<bigint, string>({
  name: 'USD',
  serialize: (value) => formatUsd(value as bigint),
  parseValue: (value) => parseUsd(value),
})

/** Only given, never taken. */
const Vector = new GraphQLScalarType<never, WireVector>({
  name: 'Vector',
  serialize: (value) => new WireVector(value as Float32Array),
})

/** Only given, never taken. */
const TokenStates = new GraphQLScalarType<never, WireTokenEmbeddings>({
  name: 'TokenStates',
  serialize: (value) => new WireTokenEmbeddings(value as Int8Array),
})

/** Resolvers of every scalar of the contract. */
export const scalars = {
  DateTime,
  USD,
  Vector,
  TokenStates,
  JSON: json('JSON'),
  ChatProtocolRequest: json('ChatProtocolRequest'),
  ChatProtocolResponse: json('ChatProtocolResponse'),
  ChatProtocolChunk: json('ChatProtocolChunk'),
}
