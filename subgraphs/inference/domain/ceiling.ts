import type { Quantities } from '../ports/billing.ts'
import type { Model } from './catalog.ts'
import { type ChatRequest, outputTokensAsked } from './chat-request.ts'
import { quantitiesOf } from './usage.ts'

/** The worst case of a chat call, which is what its hold reserves. */
export function chatCeiling(model: Model, request: ChatRequest, countedInputTokens: number): Quantities {
  const longest = Math.min(model.maxOutputTokens ?? Number.POSITIVE_INFINITY, model.contextWindow ?? Number.POSITIVE_INFINITY)
  const perChoice = Math.min(outputTokensAsked(request) ?? longest, longest)
  return quantitiesOf(withMargin(countedInputTokens), perChoice * (request.n ?? 1))
}

export function embeddingCeiling(model: Model, countedTokens: number): Quantities {
  return quantitiesOf(model.countsExactly ? countedTokens : withMargin(countedTokens), 0)
}

/** Counts are estimates: a fifth more, and 64 tokens for what engines add around messages. */
function withMargin(tokens: number): number {
  return Math.ceil((tokens * 6) / 5) + 64
}
