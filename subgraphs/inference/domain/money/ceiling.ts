import type { Quantities } from '../../ports/billing.ts'
import type { Model } from '../catalog.ts'
import { type ChatRequest, requestedOutputTokens } from '../chat/chat-request.ts'
import { toQuantities } from '../tokens/usage.ts'

/** The worst case of a chat call, which its hold reserves. */
export function chatCeiling(model: Model, request: ChatRequest, countedInputTokens: number): Quantities {
  return toQuantities(withMargin(countedInputTokens), longestOutput(model, request))
}

/**
 * Assumed output of each choice when a request does not bound it: most answers are shorter, and the end corrects it.
 */
const USUAL_OUTPUT_TOKENS = 1_024

/**
 * Tokens of a limit of `perMinute` that a chat call takes when it begins: its input, and the output that it asks for.
 * Without a bound, the usual length counts, or the rest of the limit if that is less. With the model's longest answer,
 * as in its hold, a small limit would admit nothing.
 */
export function chatTokensConsumed(model: Model, request: ChatRequest, countedInputTokens: number, perMinute: number | null): number {
  const output = longestOutput(model, request)
  if (requestedOutputTokens(request) !== null) return countedInputTokens + output
  const usual = Math.min(output, USUAL_OUTPUT_TOKENS * (request.n ?? 1))
  return Math.max(countedInputTokens, Math.min(countedInputTokens + usual, perMinute ?? Number.POSITIVE_INFINITY))
}

/** Most output tokens of all choices. */
export function longestOutput(model: Model, request: ChatRequest): number {
  const longest = Math.min(model.maxOutputTokens ?? Number.POSITIVE_INFINITY, model.contextWindow ?? Number.POSITIVE_INFINITY)
  return Math.min(requestedOutputTokens(request) ?? longest, longest) * (request.n ?? 1)
}

export function embeddingCeiling(model: Model, countedTokens: number): Quantities {
  return toQuantities(model.countsExactly ? countedTokens : withMargin(countedTokens), 0)
}

/** Counts are estimates. Adds a fifth, and 64 tokens for what engines add around messages. */
function withMargin(tokens: number): number {
  return Math.ceil((tokens * 6) / 5) + 64
}
