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
  /** Lines such as `From: …`. */
  readonly header: readonly string[]
  readonly html: string | undefined
  readonly text: string | undefined
  readonly attachments: readonly MailAttachment[]
}

/** The number of attachments of one message that are read. */
const MAX_ATTACHMENTS = 100
const UPLOAD_THEM = 'Upload a readable copy of each one that you need.'
const SUBJECT_LEVEL = 1
const ATTACHMENT_LEVEL = 2
const DEEPEST_LEVEL = 6
/** The depth of messages inside attached messages. Deeper ones are not read. */
const MAX_MESSAGES_DEEP = 3

let messagesDeep = 0

/**
 * Adds a message: the subject as a heading, the sender and recipients, the text, and each readable attachment under a
 * heading with its file name. Warns `attachments_not_read` about the other attachments.
 * @throws {ParseFailure} `limit_exceeded` if the message or an attachment exceeds a limit.
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
    builder.warn('attachments_not_read', `${unread.length} attachments were not read: ${unread.slice(0, 10).join(', ')}. ${UPLOAD_THEM}`)
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

/** Adds an attachment without its page numbers, which would look like those of the message. */
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
