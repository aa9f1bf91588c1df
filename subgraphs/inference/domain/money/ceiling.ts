import type { Quantities } from '../../ports/billing.ts'
import type { Model } from '../catalog.ts'
import { type ChatRequest, outputTokensAsked } from '../chat/chat-request.ts'
import { quantitiesOf } from '../tokens/usage.ts'

/** The worst case of a chat call, which is what its hold reserves. */
export function chatCeiling(model: Model, request: ChatRequest, countedInputTokens: number): Quantities {
  return quantitiesOf(withMargin(countedInputTokens), longestOutput(model, request))
}

/** What a request that does not bound its output is taken to write, a choice: most answers are shorter, and the end corrects it. */
const USUAL_OUTPUT_TOKENS = 1_024

/**
 * What a chat call takes of a limit of `perMinute` tokens when it begins: its input, and the output that it asks for. One that asks for no bound takes the
 * usual length, or what else the limit has room for; with the model's longest answer, as its hold has it, a small limit would admit nothing.
 */
export function chatTokensTaken(model: Model, request: ChatRequest, countedInputTokens: number, perMinute: number | null): number {
  const output = longestOutput(model, request)
  if (outputTokensAsked(request) !== null) return countedInputTokens + output
  const usual = Math.min(output, USUAL_OUTPUT_TOKENS * (request.n ?? 1))
  return Math.max(countedInputTokens, Math.min(countedInputTokens + usual, perMinute ?? Number.POSITIVE_INFINITY))
}

function longestOutput(model: Model, request: ChatRequest): number {
  const longest = Math.min(model.maxOutputTokens ?? Number.POSITIVE_INFINITY, model.contextWindow ?? Number.POSITIVE_INFINITY)
  return Math.min(outputTokensAsked(request) ?? longest, longest) * (request.n ?? 1)
}

export function embeddingCeiling(model: Model, countedTokens: number): Quantities {
  return quantitiesOf(model.countsExactly ? countedTokens : withMargin(countedTokens), 0)
}

/** Counts are estimates: a fifth more, and 64 tokens for what engines add around messages. */
function withMargin(tokens: number): number {
  return Math.ceil((tokens * 6) / 5) + 64
}
