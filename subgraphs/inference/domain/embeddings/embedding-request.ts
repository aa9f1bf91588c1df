import { checkInteger, checkLength, isAbsent, listAt, refuse, textAt } from '../../../common/check.ts'
import type { Model } from '../catalog.ts'

export interface EmbeddingRequest {
  readonly model: string
  readonly input: readonly string[] | readonly (readonly number[])[]
  readonly dimensions: number | null
}

/** The protocol's limit for one request. */
export const MAX_TEXTS = 2_048
/** Far above the vocabulary of any tokenizer. */
const MAX_TOKEN_ID = 2 ** 31 - 1
/** The protocol's limit for all inputs of one request together. No model accepts a longer single input. */
const MAX_TOKENS = 300_000
/** Longer than any model's id. The error for an unknown model repeats it. */
const MAX_MODEL_LENGTH = 300

/** @throws {KisError} a field is wrong; has the path of the first one */
export function checkEmbeddingRequest({
  model,
  input,
  dimensions,
}: {
  readonly model: unknown
  readonly input: unknown
  readonly dimensions?: unknown
}): EmbeddingRequest {
  if (textAt(model, 'model') === '') refuse('missing_required_parameter', 'model', 'You must provide a model.')
  checkLength(model as string, 'model', MAX_MODEL_LENGTH)
  checkInteger(dimensions, 'dimensions', 1, Number.MAX_SAFE_INTEGER)
  return { model: model as string, input: readInput(input), dimensions: isAbsent(dimensions) ? null : (dimensions as number) }
}

/**
 * Checks what depends on the model.
 * @throws {KisError} the model does not support the request
 */
export function checkEmbeddingAgainstModel({ dimensions }: EmbeddingRequest, model: Model): void {
  checkInteger(dimensions, 'dimensions', 1, model.dimensions)
}

/**
 * Inexact counts are upper estimates. A text is refused only if its count exceeds the limit by more than this factor.
 */
const COUNT_ERROR = 1.5

/**
 * Checks each input against the model's limit. `toParam` returns the path of an input.
 * @throws {KisError} `context_length_exceeded`: an input is longer than the model accepts
 */
export function checkTokensOfEach(counts: readonly number[], areExact: boolean, model: Model, toParam: (index: number) => string): void {
  const most = model.maxTextTokens * (areExact ? 1 : COUNT_ERROR)
  const tooLong = counts.findIndex((count) => count > most)
  if (tooLong < 0) return
  const has = `${areExact ? '' : 'about '}${counts[tooLong]}`
  refuse(
    'context_length_exceeded',
    toParam(tooLong),
    `The model \`${model.id}\` takes ${model.maxTextTokens} tokens for each text; this one has ${has}.`,
  )
}

/** @throws {KisError} `context_length_exceeded`: all inputs together are longer than the protocol allows */
export function checkTokensOfAll(total: number, areExact: boolean): void {
  if (total <= MAX_TOKENS * (areExact ? 1 : COUNT_ERROR)) return
  const has = `${areExact ? '' : 'about '}${total}`
  refuse('context_length_exceeded', 'input', `A request takes ${MAX_TOKENS} tokens in all its inputs; this one has ${has}.`)
}

/** Whether the inputs are tokens of another vocabulary than the model's, and must be decoded to texts first. */
export function isOfOtherTokens(input: EmbeddingRequest['input'], model: Model): input is readonly (readonly number[])[] {
  return typeof input[0] !== 'string' && !model.supports.has('token_input')
}

/** The text with the model's prefix for queries, unless it already has one of the model's prefixes. */
export function withQueryPrefix(text: string, { queryPrefix, passagePrefix }: Model): string {
  const hasPrefix = (queryPrefix && text.startsWith(queryPrefix)) || (passagePrefix && text.startsWith(passagePrefix))
  return hasPrefix ? text : queryPrefix + text
}

function readInput(input: unknown): EmbeddingRequest['input'] {
  if (typeof input === 'string') return [nonEmptyText(input, 'input')]
  if (!isAbsent(input) && !Array.isArray(input))
    refuse('invalid_type', 'input', "'input' must be a string, an array of strings or arrays of tokens.")
  const [first] = listAt(input, 'input', 1, MAX_TOKENS)
  if (typeof first === 'number') return [readTokens(input, 'input')]
  const items = listAt(input, 'input', 1, MAX_TEXTS)
  return typeof first === 'string'
    ? items.map((item, index) => nonEmptyText(item, `input[${index}]`))
    : items.map((item, index) => readTokens(item, `input[${index}]`))
}

function nonEmptyText(value: unknown, param: string): string {
  const text = textAt(value, param)
  return text === '' ? refuse('invalid_request', param, `'${param}' must not be empty.`) : text
}

function readTokens(value: unknown, param: string): readonly number[] {
  const tokens = listAt(value, param, 1, MAX_TOKENS)
  const bad = tokens.findIndex((token) => !Number.isInteger(token) || (token as number) < 0 || (token as number) > MAX_TOKEN_ID)
  if (bad >= 0) refuse('invalid_type', `${param}[${bad}]`, `'${param}[${bad}]' must be a token.`)
  return tokens as readonly number[]
}
