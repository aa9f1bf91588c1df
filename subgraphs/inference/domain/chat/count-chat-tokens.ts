import { KisError } from '../../../common/errors.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { Model } from '../catalog.ts'
import { estimateTokens, fewestTokens } from '../tokens/estimate-tokens.ts'
import type { ChatRequest } from './chat-request.ts'
import { readChoices } from './chat-response.ts'
import { isText } from './complete-response.ts'

/** Role and separators of one message (OpenAI's cookbook, "How to count tokens": 3, and 1 for a name). */
const TOKENS_PER_MESSAGE = 4
/** Braces, quotes and commas around one field of a schema. */
const TOKENS_PER_FIELD = 2
/** Far deeper than any schema. Keeps the walk from overflowing the stack. */
const MAX_DEPTH = 64
/** Vendors send about one token in each event. A longer piece is several tokens. */
const LONGEST_SINGLE_TOKEN = 16
/** Texts of long words have shorter tokens than this on average (English 4 to 5 units, all other languages fewer). */
const UNITS_OF_LONG_TOKEN = 8

/** What a request sends to a model: its images, and an upper estimate of the tokens of the rest. */
interface InputSize {
  readonly textTokens: number
  readonly images: number
  /** How many of the images have `detail: low`. */
  readonly lowImages: number
}

/** An upper estimate of a request's input tokens for a model. */
export function countInputTokens({ textTokens, images, lowImages }: InputSize, { imageTokens, lowImageTokens }: Model): number {
  return textTokens + (images - lowImages) * imageTokens + lowImages * lowImageTokens
}

/** At most what `measureInput` counts, without reading the texts: those of 18 MB take a tenth of a second to read. */
export function fewestInputTokens({ messages }: ChatRequest): number {
  let tokens = 0
  for (const { content } of messages) {
    if (typeof content === 'string') tokens += fewestTokens(content)
    else if (Array.isArray(content)) for (const { text } of content) if (typeof text === 'string') tokens += fewestTokens(text)
  }
  return tokens
}

/**
 * Counts messages, tools and schema.
 * @throws {KisError} `invalid_request`: they are nested too deep
 */
export function measureInput(request: ChatRequest): InputSize {
  let textTokens = 0
  let images = 0
  let lowImages = 0
  for (const message of request.messages) {
    textTokens += TOKENS_PER_MESSAGE
    for (const field in message) {
      const value = message[field]
      if (field === 'role') continue
      if (field !== 'content' || !Array.isArray(value)) textTokens += valueTokens(value, 0)
      else {
        for (const part of value) {
          if (part.type === 'image_url') {
            images += 1
            if (part.image_url.detail === 'low') lowImages += 1
          } else textTokens += valueTokens(part.text ?? part.refusal, 0)
        }
      }
    }
  }
  for (const field of ['tools', 'functions', 'response_format', 'tool_choice', 'prediction']) textTokens += valueTokens(request[field], 0)
  return { textTokens, images, lowImages }
}

function valueTokens(value: unknown, depth: number): number {
  if (typeof value === 'string') return estimateTokens(value)
  if (typeof value !== 'object' || value === null) return value === undefined ? 0 : estimateTokens(String(value))
  if (depth === MAX_DEPTH) throw new KisError('invalid_request', `The request is nested deeper than ${MAX_DEPTH} levels.`)
  let tokens = 0
  for (const field in value) {
    tokens += TOKENS_PER_FIELD + valueTokens((value as ProtocolObject)[field], depth + 1)
    if (!Array.isArray(value)) tokens += estimateTokens(field)
  }
  return tokens
}

/** What a stream has written so far. */
export interface OutputCount {
  /** An upper estimate of its tokens. */
  tokens: number
  /** Tokens that it has at least: one for each piece. */
  fewest: number
  /** UTF-16 units. */
  units: number
}

/** Adds one streamed chunk. */
export function countChunk(chunk: ProtocolObject, count: OutputCount): void {
  for (const { delta } of readChoices(chunk)) {
    for (const text of listTexts(delta)) {
      const isSingle = text.length <= LONGEST_SINGLE_TOKEN
      count.tokens += isSingle ? 1 : estimateTokens(text)
      count.fewest += isSingle ? 1 : text.length / UNITS_OF_LONG_TOKEN
      count.units += text.length
    }
  }
}

/** Tokens of a whole answer for which the engine reported none. */
export function countCompletionTokens(completion: ProtocolObject): number {
  let tokens = 0
  for (const { message } of readChoices(completion)) for (const text of listTexts(message)) tokens += estimateTokens(text)
  return tokens
}

/** What a model wrote in a message or a part of one: text, refusal, reasoning and tool calls. */
function listTexts(message: unknown): readonly string[] {
  const { content, refusal, tool_calls, function_call, ...rest } = (message ?? {}) as ProtocolObject
  const texts = [...contentTexts(content), refusal, reasoningText(rest), ...callTexts(function_call)]
  for (const call of listOf(tool_calls)) texts.push(...callTexts(call?.function), ...callTexts(call?.custom))
  return texts.filter((text): text is string => typeof text === 'string' && text !== '')
}

/** Mistral sends text and reasoning in parts of `content`. */
function contentTexts(content: unknown): readonly unknown[] {
  if (!Array.isArray(content)) return [content]
  return content.flatMap((part: ProtocolObject | null) => [
    part?.text,
    part?.thinking,
    ...listOf(part?.thinking).map((thought) => thought?.text),
  ])
}

/**
 * The reasoning of a message or a part of one. Engines send the same text in several fields at once, so the longest
 * counts: `reasoning_content` (vLLM, DeepSeek), `reasoning` (vLLM, OpenRouter, Ollama), `reasoning_text` (Copilot),
 * `reasoning_details` (OpenRouter) and `thinking_blocks` (LiteLLM). Signed pieces repeat what came before them.
 * Encrypted ones say nothing about the number of their tokens.
 */
function reasoningText({ reasoning_content, reasoning, reasoning_text, reasoning_details, thinking_blocks }: ProtocolObject): string {
  const texts = [reasoning_content, reasoning, reasoning_text, unsignedText(reasoning_details), unsignedText(thinking_blocks)]
  return texts.filter(isText).reduce((longest, text) => (text.length > longest.length ? text : longest), '')
}

function unsignedText(pieces: unknown): string {
  const unsigned = listOf(pieces).filter((piece) => !isText(piece?.signature))
  return unsigned.flatMap((piece) => [piece?.text, piece?.summary, piece?.thinking].filter(isText)).join('')
}

/** Calls of functions have `arguments`, those of custom tools `input`. */
function callTexts(call: unknown): readonly unknown[] {
  const { name, arguments: text, input } = (call ?? {}) as ProtocolObject
  return [name, text, input]
}

function listOf(value: unknown): readonly (ProtocolObject | null)[] {
  return Array.isArray(value) ? value : []
}
