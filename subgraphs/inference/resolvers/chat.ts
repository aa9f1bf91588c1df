import { refuse } from '../../common/check.ts'
import { requireScope } from '../../common/identity/principal.ts'
import type { ResolverContext } from '../../common/link/subgraph.ts'
import { isAgentModel } from '../domain/agents/chat-of-agent.ts'
import { choicesOf, finishReasonOf, firstChoiceDelta, refusalOf, textOf, toolCallsOf } from '../domain/chat/chat-answer.ts'
import type { Quantities } from '../ports/billing.ts'
import { completeByAgent, streamByAgent } from '../use-cases/agents/agent-chat.ts'
import { type ChatCompletion, createChatCompletion } from '../use-cases/calls/create-chat-completion.ts'
import { type QuotedModel, quoteChatCompletion } from '../use-cases/calls/quote-chat-completion.ts'
import { type ChatEvent, streamChatCompletion } from '../use-cases/calls/stream-chat-completion.ts'
import type { ServedDeps } from '../use-cases/deps.ts'
import { isReplayed, onceForKey } from '../use-cases/idempotency/once-for-key.ts'
import { streamOnceForKey } from '../use-cases/idempotency/stream-once-for-key.ts'

type Context = ResolverContext<ServedDeps>
interface Input {
  readonly input: { readonly request: unknown; readonly idempotencyKey?: string | null }
}
type Quote = readonly QuotedModel[]
type Choice = ReturnType<typeof choicesOf>[number]

export const chatQueries = {
  quoteChatCompletion(_parent: unknown, { request }: { readonly request: unknown }, { deps, ...ask }: Context) {
    requireScope(ask.caller, 'inference')
    if (isAgentModel(request))
      refuse('unsupported_value', 'model', 'The run of an agent holds the most that the agent may cost; there is no quote of it.')
    return quoteChatCompletion(deps, ask, request)
  },
}

export const chatMutations = {
  createChatCompletion: (_parent: unknown, { input }: Input, { deps, ...ask }: Context) =>
    isAgentModel(input.request)
      ? completeByAgent(deps, ask, input)
      : onceForKey(deps, ask, { operation: 'chat_completion', ...input }, (asking) => createChatCompletion(deps, asking, input.request)),
}

export const chatSubscriptions = {
  chatCompletion: {
    subscribe: (_parent: unknown, { input }: Input, { deps, ...ask }: Context) =>
      isAgentModel(input.request)
        ? streamByAgent(deps, ask, input)
        : streamOnceForKey(deps, ask, { operation: 'chat_completion_stream', ...input }, (asking) =>
            streamChatCompletion(deps, asking, input.request),
          ),
    resolve: (event: ChatEvent) => event,
  },
}

export const FinishReasonValues = {
  STOP: 'stop',
  LENGTH: 'length',
  TOOL_CALLS: 'tool_calls',
  CONTENT_FILTER: 'content_filter',
  FUNCTION_CALL: 'function_call',
}

export const ChatCompletionFields = {
  id: ({ response }: ChatCompletion) => String(response.id ?? ''),
  model: ({ modelId }: ChatCompletion, _args: unknown, { deps }: Context) => deps.catalog.find(modelId) ?? null,
  text: ({ response }: ChatCompletion) => textOf(firstChoice(response) ?? {}),
  finishReason: ({ response }: ChatCompletion) => finishReasonOf(firstChoice(response) ?? {}),
  choices: ({ response }: ChatCompletion) => choicesOf(response),
  usage: ({ usage }: ChatCompletion) => chatUsage(usage.quantities),
  replayed: isReplayed,
}

export const ChatChoiceFields = {
  index: ({ index }: Choice) => (typeof index === 'number' ? index : 0),
  text: textOf,
  refusal: refusalOf,
  toolCalls: toolCallsOf,
  finishReason: finishReasonOf,
}

export const ChatCompletionEventFields = {
  textDelta: ({ chunks }: ChatEvent) => firstChoiceDelta(chunks).text,
  finishReason: ({ chunks }: ChatEvent) => firstChoiceDelta(chunks).finishReason,
  usage: ({ usage }: ChatEvent) => usage && chatUsage(usage.quantities),
  replayed: isReplayed,
}

export const ChatCompletionQuoteFields = {
  inputTokens: ([asked]: Quote) => asked?.inputTokens,
  maxOutputTokens: ([asked]: Quote) => asked?.maxOutputTokens,
  amount: (models: Quote) => models.map(({ amount }) => amount).reduce((a, b) => (a > b ? a : b)),
  isCovered: ([asked]: Quote) => asked?.isCovered,
  models: (models: Quote) => models,
}

export const QuotedModelFields = {
  rateCardVersion: ({ model }: QuotedModel) => model.rateCard.version,
}

function firstChoice(response: ChatCompletion['response']): Choice | undefined {
  const choices = choicesOf(response)
  return choices.find(({ index }) => index === 0) ?? choices[0]
}

/** In the protocol's words, where tokens of the cache are among the prompt's. */
export function chatUsage({ inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens }: Quantities) {
  const promptTokens = inputTokens + cachedInputTokens + cacheWriteTokens
  return {
    promptTokens,
    cachedPromptTokens: cachedInputTokens,
    cacheWritePromptTokens: cacheWriteTokens,
    completionTokens: outputTokens,
    totalTokens: promptTokens + outputTokens,
  }
}
