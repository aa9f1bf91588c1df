import { KisError } from '../../../../common/errors.ts'
import { isOverview, readSmallTalk } from '../../../domain/chat/question.ts'
import type { ChatEngine, EmbeddingEngine, EngineCall, ProtocolObject } from '../../../ports/engines.ts'
import { findCandidates } from './candidates.ts'
import { composeOverview, composeQuotes } from './compose.ts'
import { type Conversation, readConversation } from './conversation.ts'
import { detectLanguage } from './language.ts'
import { PHRASES } from './phrases.ts'
import { findSupport } from './support.ts'

/** Words in one chunk of a stream. */
const WORDS_PER_CHUNK = 4

interface Reply {
  /** With the white space before them. Joined, they are the text. */
  readonly words: readonly string[]
  readonly finishReason: 'stop' | 'length'
  readonly usage: ProtocolObject
  /** Choices are all the same: this model does not sample. */
  readonly indices: readonly number[]
}

/**
 * A chat model that answers with sentences of the given context: those that best support the question, quoted, with
 * their sources, or says that it found none.
 */
export function extractiveEngine({ embedding }: { readonly embedding: EmbeddingEngine }): ChatEngine {
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
    const call = { engineModel: 'e5-small-ar-en', requestId: '', dimensions: null, purpose: 'query' } as const
    const ofTenant = { ...call, ...(organizationId !== undefined && { organizationId }) }
    const support = await findSupport(
      conversation,
      candidates,
      embedding.calibration,
      async (input) => (await embedding.embed(ofTenant, input, signal)).vectors,
    )
    return support.length === 0 ? phrases.nothingFound : composeQuotes(support, candidates, `${earlier} ${question}`)
  }

  async function reply({ organizationId }: EngineCall, request: ProtocolObject, signal: AbortSignal): Promise<Reply> {
    signal.throwIfAborted()
    const conversation = readConversation(request)
    const { texts } = conversation
    const words = splitWords(upToStop(await respond(conversation, signal, organizationId), request.stop))
    const counts = await embedding.countTokens([...texts, ...words], signal, organizationId)
    const promptTokens = counts.slice(0, texts.length).reduce((sum, count) => sum + count, 0)
    const limit = Number(request.max_completion_tokens ?? request.max_tokens ?? Number.POSITIVE_INFINITY)
    let [length, tokens] = [0, 0]
    for (const count of counts.slice(texts.length)) {
      if (tokens + count > limit) break
      length += 1
      tokens += count
    }
    const indices = [...Array(request.n ?? 1).keys()]
    const outputTokens = tokens * indices.length
    const usage = { prompt_tokens: promptTokens, completion_tokens: outputTokens, total_tokens: promptTokens + outputTokens }
    return { words: words.slice(0, length), finishReason: length < words.length ? 'length' : 'stop', usage, indices }
  }

  return {
    fetchesImages: false,
    hasLogprobs: false,

    async complete(call, request, signal) {
      const { words, finishReason, usage, indices } = await reply(call, request, signal)
      return { choices: indices.map((index) => ({ index, message: { content: words.join('') }, finish_reason: finishReason })), usage }
    },

    async stream(call, request, signal) {
      return toChunks(await reply(call, request, signal), signal)
    },
  }
}

/** The chunks of a stream. Those of the choices are sent together. */
async function* toChunks(
  { words, finishReason, usage, indices }: Reply,
  signal: AbortSignal,
): AsyncGenerator<readonly ProtocolObject[], undefined> {
  for (let from = 0; from <= words.length && !signal.aborted; from += WORDS_PER_CHUNK) {
    const content = words.slice(from, from + WORDS_PER_CHUNK).join('')
    const finish_reason = from + WORDS_PER_CHUNK > words.length ? finishReason : null
    yield indices.map((index) => ({ choices: [{ index, delta: { content }, logprobs: null, finish_reason }] }))
  }
  if (!signal.aborted) yield [{ choices: [], usage }]
}

/** Words with the white space before them. */
export function splitWords(text: string): readonly string[] {
  const trimmed = text.trimEnd()
  return trimmed === '' ? [] : trimmed.split(/(?<=\S)(?=\s)/)
}

/** The text up to the first of the request's stop texts. */
function upToStop(text: string, stop: unknown): string {
  const stops = [stop].flat().filter((one): one is string => typeof one === 'string' && one !== '')
  return text.slice(0, Math.min(text.length, ...stops.map((one) => text.indexOf(one)).filter((end) => end >= 0)))
}
