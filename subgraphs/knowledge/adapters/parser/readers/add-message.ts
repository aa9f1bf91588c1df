import { readHtmlText } from '../html/read-html.ts'
import type { DocumentBuilder } from './document-builder.ts'
import { addText } from './read-text.ts'

export interface MailAttachment {
  readonly name: string
  readonly bytes: Uint8Array
}

/** A mail message, independent of its format. */
export interface MailMessage {
  readonly subject: string
  /** Lines such as `From: …`. */
  readonly header: readonly string[]
  readonly html: string | undefined
  readonly text: string | undefined
  readonly attachments: readonly MailAttachment[]
}

/** Maximum attachments whose names are in the text. */
const MAX_NAMED = 100

/**
 * Adds a message: the subject as a heading, the sender and recipients, the names of the attachments, and the text. The
 * attachments become separate documents.
 * @throws {ParseFailure} `limit_exceeded` if the message exceeds a limit.
 */
export function addMessage({ subject, header, html, text, attachments }: MailMessage, builder: DocumentBuilder): void {
  builder.add('heading', subject, { level: 1 })
  const names = attachments.slice(0, MAX_NAMED).map(({ name }) => name)
  builder.add('paragraph', [...header, ...(names.length > 0 ? [`Attachments: ${names.join(', ')}`] : [])].join('\n'))
  if (html?.trim()) readHtmlText(html, builder)
  else addText(text ?? '', builder)
  if (attachments.length > 0) builder.hasFiles = true
}
