import { refuse } from '../../../common/check.ts'
import { sizeText } from '../../../common/sizes.ts'
import type { Model } from '../catalog.ts'
import { type ChatRequest, requestedOutputTokens } from '../chat/chat-request.ts'
import { MAX_RESPONSE_BYTES, MAX_STREAM_BYTES } from '../engines/response-limits.ts'
import { longestOutput } from './ceiling.ts'

/**
 * Text of long tokens has about as many. A stream has more for each token, but some vendors send many tokens in an
 * event.
 */
const BYTES_PER_TOKEN = 4
/** A token with its log probability and its bytes, in JSON. Most have 60 to 75 bytes. */
const BYTES_PER_LOGPROB = 64

/**
 * Checks that the longest output fits into a response. `hasLogprobs`: the engine sends log probabilities if requested.
 * @throws {KisError} `invalid_request`: the output does not fit
 */
export function checkResponseFits(request: ChatRequest, model: Model, hasLogprobs: boolean, isStream: boolean): void {
  const maxBytes = isStream ? MAX_STREAM_BYTES : MAX_RESPONSE_BYTES
  const alternatives = typeof request.top_logprobs === 'number' ? request.top_logprobs : 0
  const logprobs = hasLogprobs && request.logprobs === true ? 1 + alternatives : 0
  const maxTokens = Math.floor(maxBytes / (BYTES_PER_TOKEN + logprobs * BYTES_PER_LOGPROB))
  if (longestOutput(model, request) <= maxTokens) return
  const choices = request.n ?? 1
  const field = requestedOutputTokens(request) !== null && request.max_completion_tokens == null ? 'max_tokens' : 'max_completion_tokens'
  const kind = isStream ? 'stream' : 'response'
  refuse(
    'invalid_request',
    field,
    `The longest output of this request does not fit into a ${kind} of ${sizeText(maxBytes)}. ` +
      `Set '${field}' to at most ${Math.floor(maxTokens / choices)}${logprobs > 0 ? ", or request fewer 'top_logprobs'" : ''}.`,
  )
}
