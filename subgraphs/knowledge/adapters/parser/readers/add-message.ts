import { isReadable } from '../../../domain/media-types.ts'
import { ParseFailure } from '../../../ports/document-parser.ts'
import { readHtmlText } from '../html/read-html.ts'
import type { ParserLimits } from '../limits.ts'
import { sniffMediaType } from '../sniff.ts'
import { DocumentBuilder } from './document-builder.ts'
import { readDocument } from './read-document.ts'
import { addText } from './read-text.ts'

export interface MailAttachment {
  readonly name: string
  readonly bytes: Uint8Array
}

export interface MailMessage {
  readonly subject: string
  /** `From: …`, one each. */
  readonly header: readonly string[]
  readonly html: string | undefined
  readonly text: string | undefined
  readonly attachments: readonly MailAttachment[]
}

/** Attachments of one message that are read. */
const MAX_ATTACHMENTS = 100
const SUBJECT_LEVEL = 1
const ATTACHMENT_LEVEL = 2
const DEEPEST_LEVEL = 6
/** Messages in attachments of messages; deeper ones are left out. */
const MAX_MESSAGES_DEEP = 3

let messagesDeep = 0

/**
 * The subject as heading, who wrote to whom, the text, and each attachment that can be read under a heading with its
 * name.
 */
export async function addMessage(message: MailMessage, builder: DocumentBuilder, limits: ParserLimits): Promise<void> {
  const { subject, header, html, text, attachments } = message
  builder.add('heading', subject, { level: SUBJECT_LEVEL })
  builder.add('paragraph', header.join('\n'))
  if (html?.trim()) readHtmlText(html, builder)
  else addText(text ?? '', builder)
  const unread: string[] = []
  messagesDeep += 1
  for (const [index, { name, bytes }] of attachments.entries()) {
    const inner = index < MAX_ATTACHMENTS && messagesDeep <= MAX_MESSAGES_DEEP ? await readAttachment(name, bytes, limits) : undefined
    if (inner) addInner(name, inner, builder)
    else unread.push(name)
  }
  messagesDeep -= 1
  if (unread.length > 0)
    builder.warn('attachments_not_read', `${unread.length} attachments were not read: ${unread.slice(0, 10).join(', ')}.`)
}

async function readAttachment(name: string, bytes: Uint8Array, limits: ParserLimits): Promise<DocumentBuilder | undefined> {
  const mediaType = sniffMediaType(bytes, name)
  if (!isReadable(mediaType)) return undefined
  const inner = new DocumentBuilder(limits)
  try {
    await readDocument(mediaType, bytes, inner, limits)
    return inner
  } catch (error) {
    if (error instanceof ParseFailure && error.code !== 'limit_exceeded') return undefined
    throw error
  }
}

/** Pages are left out: those of attachments would be taken for the message's. */
function addInner(name: string, inner: DocumentBuilder, builder: DocumentBuilder): void {
  builder.add('heading', name, { level: ATTACHMENT_LEVEL })
  const { text, blocks, warnings } = inner.build('')
  for (const { kind, charStart, charEnd, level, tableHeader, location } of blocks) {
    builder.add(kind, text.slice(charStart, charEnd), {
      ...(level !== undefined && { level: Math.min(DEEPEST_LEVEL, level + ATTACHMENT_LEVEL) }),
      ...(tableHeader !== undefined && { tableHeader }),
      ...(location && { location }),
    })
  }
  for (const { code, message } of warnings) builder.warn(code, `${name}: ${message}`)
}
