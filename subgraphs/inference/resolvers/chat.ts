import { refuse, toInt } from '../../common/check.ts'
import { requireScope } from '../../common/identity/principal.ts'
import { isAgentModel } from '../domain/agents/chat-of-agent.ts'
import { firstChoiceDelta, readChoices, readFinishReason, readRefusal, readText, readToolCalls } from '../domain/chat/chat-response.ts'
import type { Quantities } from '../ports/billing.ts'
import { completeByAgent, streamByAgent } from '../use-cases/agents/agent-chat.ts'
import { type ChatCompletion, createChatCompletion } from '../use-cases/calls/create-chat-completion.ts'
import { readRateLimits } from '../use-cases/calls/limited-call.ts'
import { type QuotedModel, quoteChatCompletion } from '../use-cases/calls/quote-chat-completion.ts'
import { streamChatCompletion } from '../use-cases/calls/stream-chat-completion.ts'
import { findResponseDownload, isReplayed, onceForKey } from '../use-cases/idempotency/once-for-key.ts'
import { rewriteQuery } from '../use-cases/rewrite/rewrite-query.ts'
import type { FollowedChatEvent } from '../use-cases/streams/live-stream.ts'
import { suggestQuestions } from '../use-cases/suggest/suggest-questions.ts'
import type {
  ChatChoiceResolvers,
  ChatCompletionEventResolvers,
  ChatCompletionQuoteResolvers,
  ChatCompletionResolvers,
  MutationResolvers,
  QueryResolvers,
  QuotedModelResolvers,
  SubscriptionResolvers,
} from './generated.ts'

/** The models that would be called, in order, each with the most that its call can cost. */
export type Quote = readonly QuotedModel[]
/** One choice of a response of the chat protocol. */
export type Choice = ReturnType<typeof readChoices>[number]

export const chatQueries: QueryResolvers = {
  quoteChatCompletion(_parent, { request }, { deps, ...requestContext }) {
    requireScope(requestContext.caller, 'inference')
    if (isAgentModel(request))
      refuse('unsupported_value', 'model', 'A run of an agent holds the most that the agent may cost, so there is no quote for it.')
    return quoteChatCompletion(deps, requestContext, request)
  },
}

export const chatMutations: MutationResolvers = {
  rewriteQuery: (_parent, { input }, { deps, ...requestContext }) => rewriteQuery(deps, requestContext, input),
  suggestQuestions: (_parent, { input }, { deps, ...requestContext }) => suggestQuestions(deps, requestContext, input),
  createChatCompletion: (_parent, { input }, { deps, ...requestContext }) =>
    isAgentModel(input.request)
      ? completeByAgent(deps, requestContext, input)
      : onceForKey(deps, requestContext, { operation: 'chat_completion', ...input }, (effectiveContext) =>
          createChatCompletion(deps, effectiveContext, input.request),
        ),
}

export const chatSubscriptions: SubscriptionResolvers = {
  chatCompletion: {
    subscribe: (_parent, { input }, { deps, ...requestContext }) =>
      isAgentModel(input.request)
        ? deps.chatStreams.openRun(requestContext, input, (effectiveContext) => streamByAgent(deps, effectiveContext, input))
        : deps.chatStreams.open(requestContext, { operation: 'chat_completion_stream', ...input }, (effectiveContext) =>
            streamChatCompletion(deps, effectiveContext, input.request),
          ),
    resolve: (event: FollowedChatEvent) => event,
  },
  chatCompletionEvents: {
    subscribe: (_parent, { id, after }, { deps, ...requestContext }) => deps.chatStreams.follow(requestContext, id, after ?? null),
    resolve: (event: FollowedChatEvent) => event,
  },
}

export const ChatCompletionFields: ChatCompletionResolvers = {
  id: ({ response }) => String(response.id ?? ''),
  model: ({ modelId }, _args, { deps }) => deps.catalog.find(modelId) ?? null,
  text: ({ response }) => readText(firstChoice(response) ?? {}),
  finishReason: ({ response }) => readFinishReason(firstChoice(response) ?? {}),
  choices: ({ response }) => readChoices(response),
  usage: ({ usage }) => chatUsage(usage.quantities),
  replayed: isReplayed,
  responseDownload: findResponseDownload,
}

export const ChatChoiceFields: ChatChoiceResolvers = {
  index: ({ index }) => (typeof index === 'number' ? index : 0),
  text: readText,
  refusal: readRefusal,
  toolCalls: readToolCalls,
  finishReason: readFinishReason,
}

export const ChatCompletionEventFields: ChatCompletionEventResolvers = {
  textDelta: ({ chunks }) => firstChoiceDelta(chunks).text,
  finishReason: ({ chunks }) => firstChoiceDelta(chunks).finishReason,
  usage: ({ usage }) => usage && chatUsage(usage.quantities),
  replayed: isReplayed,
}

export const ChatCompletionQuoteFields: ChatCompletionQuoteResolvers = {
  inputTokens: ([requested]) => requested!.inputTokens,
  maxOutputTokens: ([requested]) => requested!.maxOutputTokens,
  amount: (models) => models.map(({ amount }) => amount).reduce((a, b) => (a > b ? a : b)),
  isCovered: ([requested]) => requested!.isCovered,
  models: (models) => models,
  rateLimits: (_models, _args, { deps, caller }) => readRateLimits(deps, { caller }),
}

export const QuotedModelFields: QuotedModelResolvers = {
  rateCardVersion: ({ model }) => model.rateCard.version,
}

function firstChoice(response: ChatCompletion['response']): Choice | undefined {
  const choices = readChoices(response)
  return choices.find(({ index }) => index === 0) ?? choices[0]
}

/** Returns usage in the protocol's form, which counts cached tokens in the prompt tokens. */
export function chatUsage({ inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens }: Quantities) {
  const promptTokens = inputTokens + cachedInputTokens + cacheWriteTokens
  return {
    promptTokens,
    cachedPromptTokens: cachedInputTokens,
    cacheWritePromptTokens: cacheWriteTokens,
    completionTokens: outputTokens,
    // The engine may have reported only one of them.
    totalTokens: toInt(promptTokens + outputTokens),
  }
}
