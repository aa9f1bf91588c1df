import msgreader, { type FieldsData } from '@kenjiuno/msgreader'
import { ParseFailure } from '../../../ports/document-parser.ts'
import { decodeText } from '../decode-text.ts'
import { addMessage, type MailAttachment, type MailMessage } from './add-message.ts'
import type { DocumentBuilder } from './document-builder.ts'
import type { PackedFile } from './unpack.ts'

type Reader = InstanceType<typeof msgreader.default>
/** The package is CommonJS. Node imports its default export as a field, but a bundler imports it directly. */
const MsgReader = (msgreader.default ?? msgreader) as typeof msgreader.default

/**
 * Reads an Outlook message.
 * @throws {ParseFailure} `corrupt` if the message is corrupted.
 */
export function readMsg(bytes: Uint8Array, builder: DocumentBuilder): void {
  addMessage(openMessage(bytes), builder)
}

/** Yields the attachments of an Outlook message. */
export async function* unpackMsg(bytes: Uint8Array): AsyncGenerator<PackedFile> {
  yield* openMessage(bytes).attachments
}

function openMessage(bytes: Uint8Array): MailMessage {
  try {
    return readMessage(bytes)
  } catch (error) {
    throw new ParseFailure('corrupt', 'The Outlook message cannot be read: its parts are corrupted.', { cause: error })
  }
}

function readMessage(bytes: Uint8Array): MailMessage {
  const reader = new MsgReader(Uint8Array.from(bytes).buffer)
  const { subject = '', body, bodyHtml, html, recipients = [], attachments = [], error, ...fields } = reader.getFileData()
  if (error !== undefined) throw new Error(error)
  const date = fields.messageDeliveryTime ?? fields.clientSubmitTime
  const sender = written(fields.senderName, fields.senderSmtpAddress ?? fields.senderEmail)
  const to = (kind: string) =>
    recipients.filter(({ recipType }) => recipType === kind).map(({ name, smtpAddress, email }) => written(name, smtpAddress ?? email))
  const lines = [
    ['From', sender === '' ? [] : [sender]],
    ['To', to('to')],
    ['Cc', to('cc')],
    ['Date', date ? [date] : []],
  ] as const
  return {
    subject,
    header: lines.flatMap(([name, values]) => (values.length > 0 ? [`${name}: ${values.join(', ')}`] : [])),
    html: bodyHtml ?? (html && decodeText(html).text),
    text: body,
    attachments: attachments.filter(({ attachmentHidden }) => !attachmentHidden).map((attachment) => readAttachment(reader, attachment)),
  }
}

/** Reads an attachment. An attached message becomes a separate Outlook message. */
function readAttachment(reader: Reader, attachment: FieldsData): MailAttachment {
  const { fileName, content } = reader.getAttachment(attachment)
  return { name: fileName ?? 'attachment', bytes: content }
}

function written(name = '', address = ''): string {
  if (name === '' || name === address) return address
  return address.includes('@') ? `${name} <${address}>` : name
}
