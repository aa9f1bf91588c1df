import { refuse } from '../../../common/check.ts'
import type { Model } from '../../domain/catalog.ts'
import { type ChatRequest, checkAgainstModel, checkChatRequest } from '../../domain/chat/chat-request.ts'
import type { ResponseNames } from '../../domain/chat/complete-response.ts'
import { countInputTokens, fewestInputTokens, measureInput } from '../../domain/chat/count-chat-tokens.ts'
import { chatCeiling, chatTokensConsumed } from '../../domain/money/ceiling.ts'
import { checkResponseFits } from '../../domain/money/response-size.ts'
import { toQuantities } from '../../domain/tokens/usage.ts'
import type { ChatCall } from '../../ports/engines.ts'
import { type CallContext, getEnginePart, type Ports, type RequestContext } from '../deps.ts'
import type { HoldTerms } from '../money/hold.ts'
import { admit } from './admit.ts'
import { leastTokensPerMinute } from './call-limits.ts'
import type { LimitedCall } from './limited-call.ts'
import { type RequestWithImages, requestImages } from './request-images.ts'
import { listCandidates } from './with-fallbacks.ts'

/** A chat call that passed the checks, with what it needs for each model that may reply. */
export interface AdmittedChat {
  readonly context: CallContext
  readonly request: ChatRequest
  readonly requestWithImages: RequestWithImages
  /** The model and its fallbacks, in order. */
  readonly models: readonly Model[]
  /** Counts the tokens of the input for this model. */
  inputTokensFor(model: Model): number
  termsFor(model: Model): HoldTerms
  /**
   * Returns the set that collects warnings. It starts with `answered_by:…` when this model is not the one that was
   * requested.
   */
  warningsFor(model: Model): Set<string>
}

/** Most warnings of one response, so that their header stays below 4 KiB. */
const MAX_WARNINGS = 24
const FIELD_NAME = /^\w{1,64}$/

/**
 * Token counts are estimates that err upwards. A request is refused before the engine sees it only if it exceeds the
 * context window by more than this factor.
 */
const COUNT_ERROR = 1.5

/**
 * Checks a chat request and consumes it from the limits of its key. `call` is null for a quote, which consumes nothing.
 * @throws {KisError} as `admit`.
 * @throws {KisError} `context_length_exceeded`: the messages do not fit the model's context window.
 * @throws {KisError} `invalid_request`: the longest output does not fit into a response.
 * @throws {KisError} `rate_limit_exceeded`: the key or the organization has reached a limit.
 */
export async function admitChat(
  deps: Ports,
  requestContext: RequestContext,
  call: LimitedCall | null,
  value: unknown,
  isStream: boolean,
): Promise<AdmittedChat> {
  const { principal, request, model } = admit(deps.catalog, requestContext.caller, {
    scope: 'inference',
    kind: 'chat',
    modelParam: 'model',
    check: () => checkChatRequest(value, isStream),
  })
  checkWindow(fewestInputTokens(request), model, 'at least')
  const size = measureInput(request)
  const check = (each: Model) => {
    checkAgainstModel(request, each)
    checkResponseFits(request, each, getEnginePart(deps, each, 'chat').hasLogprobs, isStream)
    checkWindow(size.textTokens, each, 'about')
  }
  check(model)
  const requestWithImages = requestImages(deps, { ...requestContext, caller: principal }, request)
  const inputTokensFor = (each: Model) => countInputTokens(size, each)
  const tokens = chatTokensConsumed(model, request, inputTokensFor(model), leastTokensPerMinute(principal))
  const context = (await call?.admit(principal, tokens)) ?? { ...requestContext, caller: principal }
  return {
    context,
    request,
    requestWithImages,
    models: listCandidates(deps, principal, model, (fallback) => suits(() => check(fallback))),
    inputTokensFor,
    termsFor: (each) => ({
      operation: 'chat_completion',
      model: each,
      ceiling: chatCeiling(each, request, inputTokensFor(each)),
      atLeast: toQuantities(inputTokensFor(each), 0),
    }),
    // A model id may contain characters that a header may not.
    warningsFor: ({ id }) => new Set(id === model.id ? [] : [`answered_by:${encodeURI(id)}`]),
  }
}

function checkWindow(textTokens: number, { id, contextWindow }: Model, sign: 'about' | 'at least'): void {
  if (contextWindow === null || textTokens <= contextWindow * COUNT_ERROR) return
  const message = `The model \`${id}\` takes ${contextWindow} tokens; the messages have ${sign} ${textTokens}.`
  refuse('context_length_exceeded', 'messages', message)
}

/**
 * Returns the engine call. `warnings` collects the fields that the engine cannot honor, for example `seed_not_honored`.
 */
export function toChatCall(model: Model, { requestId, caller }: CallContext, warnings: Set<string>): ChatCall {
  const { engineModel, maxOutputTokens } = model
  return {
    engineModel,
    requestId,
    organizationId: caller.organizationId,
    maxOutputTokens,
    warn: (field) => noteUnhonored(warnings, field),
  }
}

/** Adds the warning about a field that the engine left out, up to `MAX_WARNINGS`. */
export function noteUnhonored(warnings: Set<string>, field: string): void {
  // Callers choose the names of unknown fields, and the warnings travel in a header.
  if (warnings.size < MAX_WARNINGS) warnings.add(`${FIELD_NAME.test(field) ? field : 'unknown_field'}_not_honored`)
}

/** Returns the names for fields that the engine leaves out. The caller knows the model by the catalog's name. */
export function namesFor({ ids, clock }: Ports, { id }: Model): ResponseNames {
  return {
    // Completion ids of the protocol have a hyphen.
    newId: (kind) => (kind === 'chatcmpl' ? ids(kind).replace('_', '-') : ids(kind)),
    model: id,
    created: Math.floor(clock.now().getTime() / 1_000),
  }
}

function suits(check: () => void): boolean {
  try {
    check()
    return true
  } catch {
    return false
  }
}
