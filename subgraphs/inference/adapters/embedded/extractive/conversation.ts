import { KisError } from '../../../../common/errors.ts'
import { findEarlierQuestion, isFollowUp, readSmallTalk } from '../../../domain/chat/question.ts'
import type { ProtocolObject } from '../../../ports/engines.ts'
import { type Passage, readPassages } from './sources.ts'

/**
 * All text of a request, in UTF-16 units: more than the catalog's 32,000 tokens in any language, and 50 ms of the event
 * loop to read.
 */
const MAX_LENGTH = 256_000

const QUESTION_LABEL = /^(?:question|q|السؤال|سؤال)\s*[:：]\s*/i

/** What the service puts before the question of an agent's user. */
const SEARCH_RESULTS = /^\[#\d{1,6}\] /
const FULL_STOP = /[.!؛]["”»)]?$/

export interface Conversation {
  /** '' if nothing is asked. */
  readonly question: string
  /** The question that a follow-up refers to; '' for a question that can be understood alone. */
  readonly earlier: string
  readonly context: readonly Passage[]
  /** The text of each message, for counting. */
  readonly texts: readonly string[]
}

/**
 * The question is the last paragraph of the last user message. The context is all other text but the assistant's, which
 * is no evidence, and the user's earlier questions. Where search results stand before the question, they are the context.
 * @throws {KisError} `context_length_exceeded`: the text is too long
 */
export function readConversation(request: ProtocolObject): Conversation {
  const messages = (Array.isArray(request.messages) ? request.messages : []).map((message: unknown) => {
    const { role, content } = (message ?? {}) as { role?: unknown; content?: unknown }
    return { role, text: readText(content) }
  })
  const texts = messages.map(({ text }) => text)
  if (texts.reduce((sum, text) => sum + text.length, 0) > MAX_LENGTH)
    throw new KisError('context_length_exceeded', `This model reads at most ${MAX_LENGTH} characters.`, { param: 'messages' })

  const last = messages.findLastIndex(({ role }) => role === 'user')
  const parts = messages.map(({ role, text }) => (role === 'user' ? splitQuestion(text) : { before: text, question: '' }))
  const { question } = parts[last] ?? { question: '' }
  const earlier = messages.slice(0, Math.max(last, 0)).flatMap(({ role }, index) => (role === 'user' ? [parts[index]!.question] : []))
  const results = messages[last - 1]
  const isFound = results?.role === 'user' && SEARCH_RESULTS.test(results.text)
  const context = isFound
    ? readPassages(results.text)
    : messages.flatMap(({ role }, index) => {
        if (role === 'assistant') return []
        const { before, question: own } = parts[index]!
        const passages = readPassages(index !== last && isStatement(own) ? `${before}\n\n${own}` : before)
        return role === 'system' || role === 'developer' ? passages.map(withoutInstructions) : passages
      })
  return { question, earlier: isFollowUp(question) ? findEarlierQuestion(earlier.slice(0, isFound ? -1 : undefined)) : '', context, texts }
}

/** The text parts of a message, each a paragraph. This model ignores images and audio. */
function readText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: unknown) => ((part ?? {}) as { text?: unknown }).text)
    .filter((text) => typeof text === 'string')
    .join('\n\n')
}

function isStatement(text: string): boolean {
  return FULL_STOP.test(text) && readSmallTalk(text) === null
}

function splitQuestion(text: string): { readonly before: string; readonly question: string } {
  const paragraphs = text.trim().split(/\n\s*\n/)
  const paragraph = paragraphs.pop()!.trim()
  // Context and question in one paragraph: the question is the line that asks.
  const lines = paragraph.split('\n')
  const asking = lines.at(-1)!.trim()
  const isSeparate = lines.length > 1 && (/[?؟]$/.test(asking) || QUESTION_LABEL.test(asking))
  const before = isSeparate ? [...paragraphs, lines.slice(0, -1).join('\n')] : paragraphs
  return { before: before.join('\n\n'), question: (isSeparate ? asking : paragraph).replace(QUESTION_LABEL, '').trim() }
}

/** Instructions to the model are not text to quote from. */
const INSTRUCTION =
  /^(?:you (?:are|must|should|will)\b|answer\b|use (?:only )?the\b|do not\b|don't\b|be (?:brief|concise|polite)\b|always\b|never\b|reply\b|respond\b|if you\b|أنت\b|أجب|استخدم|استعمل|لا ت|كن |إذا لم)/i

function withoutInstructions({ text, ...rest }: Passage): Passage {
  const kept = text.split(/(?<=[.!؟?])\s+|\n/).filter((line) => !INSTRUCTION.test(line.trim()))
  return { ...rest, text: kept.join('\n') }
}
