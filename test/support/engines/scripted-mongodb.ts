import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { BSON } from 'mongodb'
import { bodyOf, commandOf, replyTo, replyToQuery, splitMessages } from './op-msg.ts'

/** The reply of a server to a command: `ok: 1` is added where `ok` is absent. */
export type Reply = Readonly<Record<string, unknown>>

/** A member of a replica set, as `hello` describes it. */
const PRIMARY: Reply = {
  isWritablePrimary: true,
  setName: 'rs0',
  setVersion: 1,
  me: 'played:27017',
  maxBsonObjectSize: 16 * 1024 * 1024,
  maxMessageSizeBytes: 48_000_000,
  maxWriteBatchSize: 100_000,
  logicalSessionTimeoutMinutes: 30,
  minWireVersion: 0,
  maxWireVersion: 21,
  readOnly: false,
}

const EMPTY_CURSOR: Reply = { cursor: { id: BSON.Long.ZERO, ns: 'kis.items', firstBatch: [] } }

const SUCCESSES: Readonly<Record<string, Reply>> = {
  listIndexes: EMPTY_CURSOR,
  find: EMPTY_CURSOR,
  aggregate: EMPTY_CURSOR,
  insert: { n: 1 },
  update: { n: 1, nModified: 1 },
  delete: { n: 1 },
  findAndModify: { value: null },
}

/**
 * Plays the replies of a MongoDB server that engines at hand do not give. `reply` gives that to a command; undefined
 * is the reply of a server that stores nothing and fails at nothing. `hello` is merged into that to `hello`.
 */
export async function playMongo(
  reply: (command: string, body: BSON.Document) => Reply | undefined | Promise<Reply | undefined>,
  hello: Reply = {},
): Promise<{ readonly url: string; readonly commands: readonly string[] } & AsyncDisposable> {
  const commands: string[] = []
  const sockets = new Set<Socket>()
  const greeting = () => ({ ...PRIMARY, localTime: new Date(), ...hello, ok: 1 })
  const respond = async (message: Buffer) => {
    const command = commandOf(message)
    if (command === undefined) return replyToQuery(message, greeting())
    if (command === 'hello') return replyTo(message, greeting())
    commands.push(command)
    return replyTo(message, { ok: 1, ...((await reply(command, bodyOf(message))) ?? SUCCESSES[command]) })
  }
  const server = createServer((socket) => {
    sockets.add(socket)
    let bytes: Buffer = Buffer.alloc(0)
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => {
      const { messages, rest } = splitMessages(Buffer.concat([bytes, chunk]))
      bytes = rest
      for (const message of messages) void respond(message).then((sent) => socket.writable && socket.write(sent))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `mongodb://127.0.0.1:${(server.address() as AddressInfo).port}/?directConnection=true`,
    commands,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
