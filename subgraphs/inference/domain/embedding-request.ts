import { checkInteger, isAbsent, listAt, refuse, textAt } from '../../common/check.ts'
import type { Model } from './catalog.ts'

export interface EmbeddingRequest {
  readonly model: string
  readonly input: readonly string[] | readonly (readonly number[])[]
  readonly dimensions: number | null
}

/** The protocol's bound of one request. */
export const MAX_TEXTS = 2_048
/** Far above the vocabulary of any tokenizer. */
const MAX_TOKEN_ID = 2 ** 31 - 1
const MAX_TOKENS_OF_ONE_INPUT = 1_000_000

/** @throws {KisError} with the path of the first thing that is wrong. */
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
  checkInteger(dimensions, 'dimensions', 1, Number.MAX_SAFE_INTEGER)
  return { model: model as string, input: inputOf(input), dimensions: isAbsent(dimensions) ? null : (dimensions as number) }
}

/** What depends on the model. @throws {KisError} */
export function checkEmbeddingAgainstModel({ input, dimensions }: EmbeddingRequest, model: Model): void {
  if (typeof input[0] !== 'string' && !model.supports.has('token_input')) {
    refuse('unsupported_value', 'input', `The model \`${model.id}\` takes texts, not tokens.`)
  }
  checkInteger(dimensions, 'dimensions', 1, model.dimensions)
}

/** The text with the model's prefix for queries, unless it has one of the model's prefixes already. */
export function withQueryPrefix(text: string, { queryPrefix, passagePrefix }: Model): string {
  const hasPrefix = (queryPrefix && text.startsWith(queryPrefix)) || (passagePrefix && text.startsWith(passagePrefix))
  return hasPrefix ? text : queryPrefix + text
}

function inputOf(input: unknown): EmbeddingRequest['input'] {
  if (typeof input === 'string') return [nonEmptyText(input, 'input')]
  if (!isAbsent(input) && !Array.isArray(input))
    refuse('invalid_type', 'input', "'input' must be a string, an array of strings or arrays of tokens.")
  const [first] = listAt(input, 'input', 1, MAX_TOKENS_OF_ONE_INPUT)
  if (typeof first === 'number') return [tokensOf(input, 'input')]
  const items = listAt(input, 'input', 1, MAX_TEXTS)
  return typeof first === 'string'
    ? items.map((item, index) => nonEmptyText(item, `input[${index}]`))
    : items.map((item, index) => tokensOf(item, `input[${index}]`))
}

function nonEmptyText(value: unknown, param: string): string {
  const text = textAt(value, param)
  return text === '' ? refuse('invalid_request', param, `'${param}' must not be empty.`) : text
}

function tokensOf(value: unknown, param: string): readonly number[] {
  const tokens = listAt(value, param, 1, MAX_TOKENS_OF_ONE_INPUT)
  const bad = tokens.findIndex((token) => !Number.isInteger(token) || (token as number) < 0 || (token as number) > MAX_TOKEN_ID)
  if (bad >= 0) refuse('invalid_type', `${param}[${bad}]`, `'${param}[${bad}]' must be a token.`)
  return tokens as readonly number[]
}
