import { checkBoolean, checkInteger, checkNumber, isAbsent, listAt, objectAt, refuse, textAt } from '../../../common/check.ts'
import type { ProtocolObject } from '../../ports/engines.ts'

/** Limits of the protocol (OpenAI's API reference, "Create chat completion"). */
export const MAX_CHOICES = 128
const MAX_TOP_LOGPROBS = 20
const MAX_STOPS = 4
/** Signed 64-bit integers, as far as a JSON number is exact: the next number above is out of range. */
const SEED = { least: -(2 ** 63), most: 2 ** 63 - 1_024 } as const
/** Several times what OpenAI accepts. Some engines accept any number. */
const MAX_BIASES = 1_024
/** Ids of tokens as text. No vocabulary has more than millions. */
const TOKEN_ID = /^\d{1,10}$/

/**
 * Checks the fields that limit and control a response.
 * @throws {KisError} a field is wrong
 */
export function checkSampling(request: ProtocolObject): void {
  checkInteger(request.n, 'n', 1, MAX_CHOICES)
  checkInteger(request.max_tokens, 'max_tokens', 1, Number.MAX_SAFE_INTEGER)
  checkInteger(request.max_completion_tokens, 'max_completion_tokens', 1, Number.MAX_SAFE_INTEGER)
  checkNumber(request.temperature, 'temperature', 0, 2)
  checkNumber(request.top_p, 'top_p', 0, 1)
  checkNumber(request.frequency_penalty, 'frequency_penalty', -2, 2)
  checkNumber(request.presence_penalty, 'presence_penalty', -2, 2)
  checkInteger(request.seed, 'seed', SEED.least, SEED.most)
  checkBoolean(request.logprobs, 'logprobs')
  checkInteger(request.top_logprobs, 'top_logprobs', 0, MAX_TOP_LOGPROBS)
  if (!isAbsent(request.top_logprobs) && request.logprobs !== true) {
    refuse('invalid_request', 'top_logprobs', "'top_logprobs' needs 'logprobs' to be true.")
  }
  checkStop(request.stop)
  checkBias(request.logit_bias)
}

function checkStop(stop: unknown): void {
  if (isAbsent(stop) || typeof stop === 'string') return
  if (!Array.isArray(stop)) refuse('invalid_type', 'stop', "'stop' must be a string or an array of strings.")
  for (const [index, text] of listAt(stop, 'stop', 1, MAX_STOPS).entries()) textAt(text, `stop[${index}]`)
}

function checkBias(value: unknown): void {
  if (isAbsent(value)) return
  const biases = Object.entries(objectAt(value, 'logit_bias'))
  if (biases.length > MAX_BIASES) {
    refuse('array_above_max_length', 'logit_bias', `'logit_bias' must have at most ${MAX_BIASES} tokens; it has ${biases.length}.`)
  }
  for (const [token, bias] of biases) {
    if (!TOKEN_ID.test(token)) refuse('invalid_request', 'logit_bias', "The keys of 'logit_bias' must be ids of tokens.")
    if (isAbsent(bias)) refuse('invalid_type', `logit_bias.${token}`, `'logit_bias.${token}' must be a number.`)
    checkNumber(bias, `logit_bias.${token}`, -100, 100)
  }
}
