import { KisError } from '../../../../common/errors.ts'
import type { Clock } from '../../../../common/process/clock.ts'
import type { IdSource } from '../../../../common/process/ids.ts'
import { isOverview, readSmallTalk } from '../../../domain/chat/question.ts'
import type { ChatEngine, EmbeddingEngine, EngineCall, ProtocolObject } from '../../../ports/engines.ts'
import { type Answer, splitWords, toChunks, toCompletion, upToStop, upToTokens } from './answer.ts'
import { findCandidates } from './candidates.ts'
import { composeOverview, composeQuotes } from './compose.ts'
import { type Conversation, readConversation } from './conversation.ts'
import { detectLanguage } from './language.ts'
import { PHRASES } from './phrases.ts'
import { findSupport } from './support.ts'

/** Choices of one request: the protocol's bound of `n`. */
const MAX_CHOICES = 128

/**
 * A chat model that answers with sentences of the given context: those that best support the question, quoted, with
 * their sources, or says that it found none.
 */
export function extractiveEngine(deps: { readonly embedding: EmbeddingEngine; readonly clock: Clock; readonly ids: IdSource }): ChatEngine {
  const { embedding, clock, ids } = deps
  const embedCall = { engineModel: 'e5-small-ar-en', requestId: '', dimensions: null, purpose: 'query' } as const

  async function respond(conversation: Conversation, signal: AbortSignal, organizationId?: string): Promise<string> {
    const { question, earlier, context, texts } = conversation
    const language = detectLanguage(question || texts.join(' '))
    const phrases = PHRASES[language]
    const smallTalk = readSmallTalk(question)
    if (smallTalk || !/[\p{L}\p{N}]/u.test(question)) return phrases[smallTalk ?? 'greeting']
    const candidates = findCandidates(context)
    if (candidates.length === 0) return phrases.noContext
    if (isOverview(question)) return composeOverview(candidates, language)
    if (!embedding.calibration) throw new KisError('engine_error', 'The folder of the embedded model has no calibration.json.')
    const support = await findSupport(conversation, candidates, embedding.calibration, async (input) => {
      const { vectors } = await embedding.embed({ ...embedCall, ...(organizationId !== undefined && { organizationId }) }, input, signal)
      return vectors
    })
    return support.length === 0 ? phrases.nothingFound : composeQuotes(support, candidates, `${earlier} ${question}`)
  }

  async function answer({ engineModel, organizationId }: EngineCall, request: ProtocolObject, signal: AbortSignal): Promise<Answer> {
    signal.throwIfAborted()
    const conversation = readConversation(request)
    const { texts } = conversation
    const text = await respond(conversation, signal, organizationId)
    const words = splitWords(upToStop(text, request.stop))
    const counts = await embedding.countTokens([...texts, ...words], signal, organizationId)
    const promptTokens = counts.slice(0, texts.length).reduce((sum, count) => sum + count, 0)
    const limit = request.max_completion_tokens ?? request.max_tokens
    return {
      id: ids('chatcmpl').replace('_', '-'),
      created: Math.floor(clock.now().getTime() / 1_000),
      model: engineModel,
      choices: typeof request.n === 'number' ? Math.min(Math.max(Math.trunc(request.n), 1), MAX_CHOICES) : 1,
      promptTokens,
      ...upToTokens(words, counts.slice(texts.length), typeof limit === 'number' ? limit : Number.POSITIVE_INFINITY),
    }
  }

  return {
    fetchesImages: false,
    hasLogprobs: false,

    async complete(call, request, signal) {
      return toCompletion(await answer(call, request, signal))
    },

    async stream(call, request, signal) {
      return untilLeft(toChunks(await answer(call, request, signal)), signal)
    },
  }
}

/** Everything is there already, so nothing has to be ended. */
async function* untilLeft<T>(items: Iterable<T>, signal: AbortSignal): AsyncGenerator<T, undefined> {
  for (const item of items) {
    if (signal.aborted) return
    yield item
  }
}
