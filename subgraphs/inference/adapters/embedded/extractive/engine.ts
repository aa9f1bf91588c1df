import type { Clock } from '../../../../common/process/clock.ts'
import { endableIterator } from '../../../../common/process/endable-iterator.ts'
import type { IdSource } from '../../../../common/process/ids.ts'
import type { ChatEngine, EmbeddingEngine, EngineCall, ProtocolObject } from '../../../ports/engines.ts'
import { type Answer, splitWords, toChunks, toCompletion, upToStop, upToTokens } from './answer.ts'
import { readConversation } from './conversation.ts'
import { detectLanguage } from './language.ts'
import { isGreeting, PHRASES, quote } from './phrases.ts'
import { SupportFinder } from './support.ts'

/** Choices of one request: the protocol's bound of `n`. */
const MAX_CHOICES = 128

/**
 * A chat model that answers with sentences of the given context: those that best support the question, quoted, with
 * their sources. It writes nothing of its own.
 */
export function extractiveEngine(deps: { readonly embedding: EmbeddingEngine; readonly clock: Clock; readonly ids: IdSource }): ChatEngine {
  const { embedding, clock, ids } = deps
  const embedCall = { engineModel: 'e5-small-ar-en', requestId: '', dimensions: null, purpose: 'query' } as const
  const finder = new SupportFinder(async (texts, signal, organizationId) => {
    const { vectors } = await embedding.embed({ ...embedCall, ...(organizationId !== undefined && { organizationId }) }, texts, signal)
    return vectors
  })

  async function answer({ engineModel, organizationId }: EngineCall, request: ProtocolObject, signal: AbortSignal): Promise<Answer> {
    signal.throwIfAborted()
    const { question, context, texts } = readConversation(request)
    const phrases = PHRASES[detectLanguage(question || texts.join(' '))]
    let text = phrases.greeting
    if (!isGreeting(question)) {
      const { support, hasText } = await finder.find(question, context, signal, organizationId)
      if (support.length > 0) text = support.map(({ sentence, source, language }) => quote(sentence, source, language)).join('\n')
      else text = hasText ? phrases.nothingFound : phrases.noContext
    }
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
      const chunks = toChunks(await answer(call, request, signal))
      return endableIterator(
        async () => {
          const { done, value } = chunks.next()
          return done ? { done, value: undefined } : { done: false, value }
        },
        () => undefined,
        signal,
      )
    },
  }
}
