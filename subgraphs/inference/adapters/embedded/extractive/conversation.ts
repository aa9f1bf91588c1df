import { KisError } from '../../../../common/errors.ts'
import type { ProtocolObject } from '../../../ports/engines.ts'
import { type Passage, readPassages } from './sources.ts'

/**
 * All text of a request, in UTF-16 units: more than the catalog's 32,000 tokens in any language, and 50 ms of the event
 * loop to read.
 */
const MAX_LENGTH = 256_000

const QUESTION_LABEL = /^(?:question|q|السؤال|سؤال)\s*[:：]\s*/i

export interface Conversation {
  /** '' if nothing is asked. */
  readonly question: string
  readonly context: readonly Passage[]
  /** The text of each message, for counting. */
  readonly texts: readonly string[]
}

/**
 * The question is the last paragraph of the last user message, the context all other text.
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
  const { before, question } = splitQuestion(texts[last] ?? '')
  const context = messages.flatMap(({ role, text }, index) => {
    const passages = readPassages(index === last ? before : text)
    return role === 'system' || role === 'developer' ? passages.map(withoutInstructions) : passages
  })
  return { question, context, texts }
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

function withoutInstructions({ text, source }: Passage): Passage {
  const kept = text.split(/(?<=[.!؟?])\s+|\n/).filter((line) => !INSTRUCTION.test(line.trim()))
  return { text: kept.join('\n'), source }
}
