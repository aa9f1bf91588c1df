import type { initGraphQLTada, ResultOf, VariablesOf } from 'gql.tada'
import type { introspection as Billing } from './generated/billing.ts'
import type { introspection as Gateway } from './generated/gateway.ts'
import type { introspection as Inference } from './generated/inference.ts'
import type { introspection as Knowledge } from './generated/knowledge.ts'

declare const types: unique symbol

/** The text of an operation. The compiler reads what it gives and takes from the text and the schema. */
export type OperationText<Data, Variables> = string & { readonly [types]: (variables: Variables) => Data }

/** Scalars as they cross the wire. */
interface Scalars {
  readonly DateTime: string
  readonly USD: string
  readonly Cursor: string
  /** Base64, or within a process something that becomes it in JSON. */
  readonly Vector: string | { readonly floats: Float32Array; toJSON(): string }
  /** The same. */
  readonly TokenStates: string | { readonly embeddings: Int8Array; toJSON(): string }
  readonly JSON: unknown
  readonly ChatProtocolRequest: unknown
  readonly ChatProtocolResponse: Readonly<Record<string, unknown>>
  readonly ChatProtocolChunk: Readonly<Record<string, unknown>>
}

type Reader<Schema extends Gateway | Billing | Inference | Knowledge> = initGraphQLTada<{
  introspection: Schema
  scalars: Scalars
  disableMasking: true
}>
declare const gateway: Reader<Gateway>
declare const billing: Reader<Billing>
declare const inference: Reader<Inference>
declare const knowledge: Reader<Knowledge>

/** Variables as they may be given: nothing changes them, and what is undefined is left out. */
type Provided<T> = T extends readonly (infer Item)[]
  ? readonly Provided<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Provided<T[Key]> | (object extends Pick<T, Key> ? undefined : never) }
    : T

/** `read` is never called: the compiler takes the types from what it would return. */
function typed<Document>(text: string, _read: () => Document) {
  return text as OperationText<ResultOf<Document>, Provided<VariablesOf<Document>>>
}

type Letter =
  | 'A'
  | 'B'
  | 'C'
  | 'D'
  | 'E'
  | 'F'
  | 'G'
  | 'H'
  | 'I'
  | 'J'
  | 'K'
  | 'L'
  | 'M'
  | 'N'
  | 'O'
  | 'P'
  | 'Q'
  | 'R'
  | 'S'
  | 'T'
  | 'U'
  | 'V'
  | 'W'
  | 'X'
  | 'Y'
  | 'Z'
/** The log tells by its name what blocked the event loop. */
type Named = `${'query' | 'mutation' | 'subscription' | 'fragment'} ${Letter}${string}`

/** An operation of clients. */
export const gatewayOperation = <const Text extends Named>(text: Text) => typed(text, () => gateway(text))
/** Operations that one part asks of a subgraph, the fields for services included. */
export const billingOperation = <const Text extends Named>(text: Text) => typed(text, () => billing(text))
export const inferenceOperation = <const Text extends Named>(text: Text) => typed(text, () => inference(text))
export const knowledgeOperation = <const Text extends Named>(text: Text) => typed(text, () => knowledge(text))

/** What an operation gives. */
export type DataOf<Text> = Text extends OperationText<infer Data, never> ? Data : never

/** What a selection of the fields of a type gives, at the gateway. */
export type Selected<Type extends string, Fields extends string> = DataOf<
  ReturnType<typeof gatewayOperation<`fragment Selected on ${Type} { ${Fields} }`>>
>
/** The same in billing. */
export type SelectedOfBilling<Type extends string, Fields extends string> = DataOf<
  ReturnType<typeof billingOperation<`fragment Selected on ${Type} { ${Fields} }`>>
>
