import PostalMime, { type Address, type Email } from 'postal-mime'
import { ParseFailure } from '../../../ports/document-parser.ts'
import { addMessage, type MailMessage } from './add-message.ts'
import type { DocumentBuilder } from './document-builder.ts'
import type { PackedFile } from './unpack.ts'

/** Maximum messages per mailbox. */
const MAX_MESSAGES = 10_000
const MAX_HEADERS_BYTES = 1024 * 1024
const MAX_PARTS_DEEP = 50

/** Reads a mail message in its transmitted format (RFC 5322). */
export async function readEml(bytes: Uint8Array, builder: DocumentBuilder): Promise<void> {
  addMessage(toMessage(await parseMail(bytes)), builder)
}

/** Yields the attachments of a message. */
export async function* unpackEml(bytes: Uint8Array): AsyncGenerator<PackedFile> {
  yield* toMessage(await parseMail(bytes)).attachments
}

/** Yields the attachments of all messages of a mailbox. */
export async function* unpackMbox(bytes: Uint8Array): AsyncGenerator<PackedFile> {
  for (const message of messagesIn(bytes)) yield* unpackEml(message)
}

/**
 * Reads a mailbox. Each message follows a line that starts with `From `.
 * @throws {ParseFailure} `limit_exceeded` if there are too many messages.
 */
export async function readMbox(bytes: Uint8Array, builder: DocumentBuilder): Promise<void> {
  let messages = 0
  for (const message of messagesIn(bytes)) {
    messages += 1
    if (messages > MAX_MESSAGES) throw new ParseFailure('limit_exceeded', `The mailbox has more than ${MAX_MESSAGES} messages. Split it.`)
    await readEml(message, builder)
  }
}

/**
 * Parses a mail message.
 * @throws {ParseFailure} `corrupt` if its parts are corrupted or nested too deeply.
 */
export async function parseMail(bytes: Uint8Array): Promise<Email> {
  try {
    return await PostalMime.parse(bytes, {
      forceRfc822Attachments: true,
      attachmentEncoding: 'arraybuffer',
      maxHeadersSize: MAX_HEADERS_BYTES,
      maxNestingDepth: MAX_PARTS_DEEP,
    })
  } catch (error) {
    throw new ParseFailure('corrupt', 'The message cannot be read: its parts are corrupted or nested too deeply.', { cause: error })
  }
}

function toMessage(email: Email): MailMessage {
  const { subject = '', date } = email
  const lines = [
    ['From', email.from && [email.from]],
    ['To', email.to],
    ['Cc', email.cc],
  ] as const
  const header = lines.flatMap(([name, addresses]) => (addresses?.length ? [`${name}: ${addresses.map(written).join(', ')}`] : []))
  return {
    subject,
    header: [...header, ...(date ? [`Date: ${date}`] : [])],
    html: email.html,
    text: email.text,
    // Images that the text shows are part of the text.
    attachments: email.attachments
      .filter(({ related }) => !related)
      .map(({ filename, mimeType, content }) => ({ name: filename ?? nameFor(mimeType), bytes: Buffer.from(content as ArrayBuffer) })),
  }
}

function nameFor(mimeType: string): string {
  return mimeType === 'message/rfc822' ? 'message.eml' : 'attachment'
}

function written(address: Address): string {
  if (address.group) return [address.name, ...address.group.map(written)].join(' ')
  return address.name === '' ? address.address : `${address.name} <${address.address}>`
}

function* messagesIn(bytes: Uint8Array): Generator<Uint8Array> {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let start = endOfLine(all, 0)
  while (start < all.length) {
    let next = all.indexOf('\nFrom ', start - 1)
    // A line of text may start in the same way, but the separator of a mailbox ends with a year.
    while (next >= 0 && !/\b\d{4}\b/.test(all.toString('latin1', next + 1, Math.min(endOfLine(all, next + 1), next + 200))))
      next = all.indexOf('\nFrom ', next + 1)
    const end = next < 0 ? all.length : next + 1
    yield all.subarray(start, end)
    start = next < 0 ? all.length : endOfLine(all, end)
  }
}

function endOfLine(all: Buffer, from: number): number {
  const feed = all.indexOf(0x0a, from)
  return feed < 0 ? all.length : feed + 1
}
