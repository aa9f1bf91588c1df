import { KisError } from '../../../../common/errors.ts'
import { findEarlierQuestion, isFollowUp, readSmallTalk } from '../../../domain/chat/question.ts'
import type { ProtocolObject } from '../../../ports/engines.ts'
import { type Excerpt, readExcerpts } from './sources.ts'

/**
 * Most text of a request, in UTF-16 units: more than the catalog's 32,000 tokens in any language, and 50 ms of the
 * event loop to read.
 */
const MAX_LENGTH = 256_000

/** The text that the service puts before the question of an agent's user. */
const SEARCH_RESULTS = /^\[#\d{1,6}\] /
const QUESTION_LABEL = /^(?:question|q|السؤال|سؤال)\s*[:：]\s*/i
const FULL_STOP = /[.!؛]["”»)]?$/
/** Instructions to the model are not text to quote from. */
const INSTRUCTION =
  /^(?:you (?:are|must|should|will)\b|answer\b|use (?:only )?the\b|do not\b|don't\b|be (?:brief|concise|polite)\b|always\b|never\b|reply\b|respond\b|if you\b|أنت\b|أجب|استخدم|استعمل|لا ت|كن |إذا لم)/i

/** The question of a chat and the texts that may answer it. */
export interface Conversation {
  /** Empty if there is no question. */
  readonly question: string
  /** The question that a follow-up refers to. Empty for a question that can be understood alone. */
  readonly earlier: string
  readonly context: readonly Excerpt[]
  /** The text of each message, for counting. */
  readonly texts: readonly string[]
}

/**
 * Splits a request into question and context. The question is the last paragraph of the last user message. The context
 * is all other text except the assistant's, which is no evidence, and the user's earlier questions. If search results
 * stand before the question, they are the context.
 * @throws {KisError} `context_length_exceeded`: the text is too long
 */
export function readConversation(request: ProtocolObject): Conversation {
  const messages = [request.messages].flat().map((message) => {
    const { role, content } = (message ?? {}) as { role?: unknown; content?: unknown }
    const text = readText(content)
    return { role, text, ...(role === 'user' ? splitQuestion(text) : { before: text, question: '' }) }
  })
  const texts = messages.map(({ text }) => text)
  if (texts.reduce((sum, text) => sum + text.length, 0) > MAX_LENGTH)
    throw new KisError('context_length_exceeded', `This model reads at most ${MAX_LENGTH} characters.`, { param: 'messages' })

  const last = messages.findLastIndex(({ role }) => role === 'user')
  const question = messages[last]?.question ?? ''
  const results = messages[last - 1]
  const isFound = results?.role === 'user' && SEARCH_RESULTS.test(results.text)
  const userMessages = messages.slice(0, Math.max(isFound ? last - 1 : last, 0)).filter(({ role }) => role === 'user')
  const earlier = isFollowUp(question) ? findEarlierQuestion(userMessages.map((message) => message.question)) : ''
  const context = isFound
    ? readExcerpts(results.text)
    : messages.flatMap(({ role, before, question: own }, index) => {
        if (role === 'assistant') return []
        const isStatement = index !== last && FULL_STOP.test(own) && readSmallTalk(own) === null
        const excerpts = readExcerpts(isStatement ? `${before}\n\n${own}` : before)
        return role === 'system' || role === 'developer' ? excerpts.map(withoutInstructions) : excerpts
      })
  return { question, earlier, context, texts }
}

/** Returns the text parts of a message, each a paragraph. This model ignores images and audio. */
function readText(content: unknown): string {
  const parts = [content].flat().map((part) => (typeof part === 'string' ? part : (part as { text?: unknown } | null)?.text))
  return parts.filter((text) => typeof text === 'string').join('\n\n')
}

/** If context and question are one paragraph, the question is the line that has the form of a question. */
function splitQuestion(text: string): { readonly before: string; readonly question: string } {
  const paragraphs = text.trim().split(/\n\s*\n/)
  const lines = paragraphs.pop()!.trim().split('\n')
  const isLine = /[?؟]$/.test(lines.at(-1)!.trim()) || QUESTION_LABEL.test(lines.at(-1)!.trim())
  const question = lines.splice(isLine ? -1 : 0).join('\n')
  return { before: [...paragraphs, lines.join('\n')].join('\n\n'), question: question.trim().replace(QUESTION_LABEL, '').trim() }
}

function withoutInstructions({ text, ...rest }: Excerpt): Excerpt {
  const lines = text.split(/(?<=[.!؟?])\s+|\n/).filter((line) => !INSTRUCTION.test(line.trim()))
  return { ...rest, text: lines.join('\n') }
}
