import type { RateLimits } from '../../../../schema/errors.ts'
import { requestFor } from '../../domain/chat/chat-request.ts'
import { completedResponse } from '../../domain/chat/complete-response.ts'
import { countCompletionTokens } from '../../domain/chat/count-chat-tokens.ts'
import { ResponseTooLarge } from '../../domain/engines/engine-failure.ts'
import { believedUsage, countedUsage, isZeroReported, reportedUsage, type Usage } from '../../domain/tokens/usage.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { type CallDeps, getEnginePart, type RequestContext } from '../deps.ts'
import { billedCall, MAX_CALL_MS } from '../money/billed-call.ts'
import { admitChat, namesFor, toChatCall } from './admit-chat.ts'
import { type LimitedCall, limited } from './limited-call.ts'
import { withFallbacks } from './with-fallbacks.ts'

export interface ChatCompletion {
  /** The whole object of the engine, with the fields that the protocol requires. */
  readonly response: ProtocolObject
  /** The fields of the request that could not be honoured, for example `seed_not_honored`. */
  readonly warnings: readonly string[]
  /** The model that answered. */
  readonly modelId: string
  readonly usage: Usage
  readonly cost: bigint
  readonly rateLimits: RateLimits | null
}

/**
 * Answers one chat request and charges it. A caller who disconnects before the answer pays for the input, as does a call
 * that a deadline of ours ends. Each engine has at most `maxMs`.
 * @throws {KisError} as `admitChat` and `firstToAnswer`.
 */
export function createChatCompletion(
  deps: CallDeps,
  requestContext: RequestContext,
  value: unknown,
  maxMs: number = MAX_CALL_MS,
): Promise<ChatCompletion> {
  return limited(deps, requestContext, 'chat', (limits, currentContext) => complete(deps, currentContext, limits, value, maxMs))
}

async function complete(
  deps: CallDeps,
  requestContext: RequestContext,
  limits: LimitedCall,
  value: unknown,
  maxMs: number,
): Promise<Omit<ChatCompletion, 'rateLimits'>> {
  const { context, requestWithImages, models, inputTokensFor, termsFor, warningsFor } = await admitChat(
    deps,
    requestContext,
    limits,
    value,
    false,
  )
  return withFallbacks(deps, context, models, async (model, endsAt, chargedBefore) => {
    const inputTokens = inputTokensFor(model)
    const warnings = warningsFor(model)
    const call = toChatCall(model, context, warnings)
    const terms = termsFor(model)
    let used = countedUsage(inputTokens, 0)
    const completed = await billedCall(
      deps,
      context,
      terms,
      (error) => (error instanceof ResponseTooLarge ? countedUsage(inputTokens, terms.ceiling.outputTokens) : used),
      async (signal, authorize) => {
        const request = await requestWithImages(model, authorize)
        const completion = await getEnginePart(deps, model, 'chat').complete(call, requestFor(model, request, call.warn), signal)
        const reported = reportedUsage(completion)
        used = believedUsage(reported, inputTokens, () => countCompletionTokens(completion))
        if (isZeroReported(reported, used)) deps.zeroUsage.note(model)
        const response = completedResponse(completion, namesFor(deps, model), used)
        return { value: { response, warnings: [...warnings], modelId: model.id, usage: used }, usage: used }
      },
      // Models that were asked before may have used up some of the time.
      Math.min(maxMs, endsAt - deps.clock.now().getTime()),
    )
    return { ...completed, cost: chargedBefore + completed.cost }
  })
}
