import type { ProtocolObject } from '../../../ports/engines.ts'

/** Words in one chunk of a stream. */
const WORDS_PER_CHUNK = 4

type FinishReason = 'stop' | 'length'

/** A finished answer, before it is put into the protocol's form. */
export interface Answer {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  readonly model: string
  /** Number of choices, all the same: this model does not sample. */
  readonly choices: number
  /** Joined, they are the text. */
  readonly words: readonly string[]
  readonly finishReason: FinishReason
  readonly promptTokens: number
  readonly completionTokens: number
}

/** Words with the white space before them. */
export function splitWords(text: string): readonly string[] {
  return text
    .trimEnd()
    .split(/(?<=\S)(?=\s)/)
    .filter((word) => word !== '')
}

/** The text up to the first of the request's stop texts. */
export function upToStop(text: string, stop: unknown): string {
  const stops = (Array.isArray(stop) ? stop : [stop]).filter((one): one is string => typeof one === 'string' && one !== '')
  const ends = stops.map((one) => text.indexOf(one)).filter((end) => end >= 0)
  return text.slice(0, Math.min(text.length, ...ends))
}

/** The words that fit into `limit` tokens, given the tokens of each. */
export function upToTokens(
  words: readonly string[],
  tokens: readonly number[],
  limit: number,
): Pick<Answer, 'words' | 'finishReason' | 'completionTokens'> {
  let completionTokens = 0
  for (const [index, count] of tokens.entries()) {
    if (completionTokens + count > limit) return { words: words.slice(0, index), finishReason: 'length', completionTokens }
    completionTokens += count
  }
  return { words, finishReason: 'stop', completionTokens }
}

export function toCompletion(answer: Answer): ProtocolObject {
  const message = { role: 'assistant', content: answer.words.join(''), refusal: null }
  const choices = forEachChoice(answer, { message, finish_reason: answer.finishReason })
  return { ...headOf(answer, 'chat.completion'), choices, usage: toUsage(answer) }
}

/** The chunks of the stream, in groups that are sent together: one for each choice. */
export function* toChunks(answer: Answer): Generator<readonly ProtocolObject[]> {
  const head = headOf(answer, 'chat.completion.chunk')
  const chunks = (delta: ProtocolObject, finish_reason: FinishReason | null) =>
    forEachChoice(answer, { delta, finish_reason }).map((choice) => ({ ...head, choices: [choice], usage: null }))
  yield chunks({ role: 'assistant', content: '', refusal: null }, null)
  for (let from = 0; from < answer.words.length; from += WORDS_PER_CHUNK)
    yield chunks({ content: answer.words.slice(from, from + WORDS_PER_CHUNK).join('') }, null)
  yield chunks({}, answer.finishReason)
  yield [{ ...head, choices: [], usage: toUsage(answer) }]
}

function headOf({ id, created, model }: Answer, object: string): ProtocolObject {
  return { id, object, created, model }
}

function forEachChoice({ choices }: Answer, choice: ProtocolObject): readonly ProtocolObject[] {
  return Array.from({ length: choices }, (_, index) => ({ index, logprobs: null, ...choice }))
}

function toUsage({ promptTokens, completionTokens, choices }: Answer): ProtocolObject {
  const outputTokens = completionTokens * choices
  return {
    prompt_tokens: promptTokens,
    completion_tokens: outputTokens,
    total_tokens: promptTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
  }
}
