import { BSON } from 'mongodb'

/**
 * The bytes of an OP_MSG before its document: the header (length, id, id of the request, opcode), the flags and the
 * kind of the section. The first field of the document is the command.
 */
const HEADER_BYTES = 16
const OP_MSG = 2013
const DOCUMENT_AT = 21
const FIRST_NAME_AT = DOCUMENT_AT + 5

/** Undefined: the message is not a command in an OP_MSG. */
export function commandOf(message: Buffer): string | undefined {
  if (message.readInt32LE(12) !== OP_MSG) return undefined
  return message.toString('latin1', FIRST_NAME_AT, message.indexOf(0, FIRST_NAME_AT))
}

/** The document of a command: what it asks. */
export function bodyOf(message: Buffer): BSON.Document {
  return BSON.deserialize(message.subarray(DOCUMENT_AT, DOCUMENT_AT + message.readInt32LE(DOCUMENT_AT)))
}

/** Splits what has come into whole messages, and what is left. */
export function splitMessages(bytes: Buffer): { readonly messages: readonly Buffer[]; readonly rest: Buffer } {
  const messages: Buffer[] = []
  let rest = bytes
  while (rest.length >= HEADER_BYTES && rest.length >= rest.readInt32LE()) {
    messages.push(rest.subarray(0, rest.readInt32LE()))
    rest = rest.subarray(rest.readInt32LE())
  }
  return { messages, rest }
}

/** The reply to a message, as an OP_MSG. */
export function replyTo(message: Buffer, reply: object): Buffer {
  const body = BSON.serialize(reply)
  const head = Buffer.alloc(DOCUMENT_AT)
  head.writeInt32LE(head.length + body.length, 0)
  head.writeInt32LE(message.readInt32LE(4), 8)
  head.writeInt32LE(OP_MSG, 12)
  return Buffer.concat([head, body])
}

/** The reply to the first message of a connection, which drivers send as an OP_QUERY. */
export function replyToQuery(message: Buffer, reply: object): Buffer {
  const body = BSON.serialize(reply)
  // The header, the flags, the id of a cursor, the position in it, and the number of documents.
  const head = Buffer.alloc(36)
  head.writeInt32LE(head.length + body.length, 0)
  head.writeInt32LE(message.readInt32LE(4), 8)
  head.writeInt32LE(1, 12)
  head.writeInt32LE(1, 32)
  return Buffer.concat([head, body])
}
