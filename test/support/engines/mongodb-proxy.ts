import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { commandOf, replyTo, splitMessages } from './op-msg.ts'

/** The BSON name of the field, with its terminating zero. A 32-bit number follows it. */
const MAX_WIRE_VERSION = Buffer.from('maxWireVersion\0')

/** A server's refusal of commands, with the name, code and message of mongod. */
export interface Refusal {
  readonly commands: readonly string[]
  readonly code: number
  readonly codeName: string
  readonly errmsg: string
}

const WRITES = ['insert', 'update', 'delete', 'findAndModify', 'create', 'createIndexes']
export const DISK_FULL: Refusal = {
  commands: WRITES,
  code: 14031,
  codeName: 'OutOfDiskSpace',
  errmsg: 'available disk space of 1000 bytes is less than required minimum of 524288000',
}
export const NO_RIGHTS: Refusal = {
  commands: WRITES,
  code: 13,
  codeName: 'Unauthorized',
  errmsg: 'not authorized on kis to execute command',
}
export const NO_PRIMARY: Refusal = { commands: WRITES, code: 10107, codeName: 'NotWritablePrimary', errmsg: 'not primary' }
export const WRONG_PASSWORD: Refusal = {
  commands: ['saslStart'],
  code: 18,
  codeName: 'AuthenticationFailed',
  errmsg: 'Authentication failed.',
}

/** A proxy between a client and one MongoDB server that simulates failures of the network and the server. */
export class MongoProxy implements AsyncDisposable {
  readonly #host: string
  readonly #port: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #listeningPort = 0
  /** If true, requests reach the server, and their answers are lost with the connection. */
  losesReplies = false
  /** If true, nothing is forwarded in either direction, and nothing is closed. */
  isFrozen = false
  /** The wire version that the server appears to have. Null leaves it unchanged. */
  wireVersion: number | null = null
  /** Commands that are refused before they reach the server, with the answer. Null refuses none. */
  refusal: Refusal | null = null

  private constructor(host: string, port: number) {
    this.#host = host
    this.#port = port
    this.#server = createServer((client) => this.#carry(client))
  }

  /** Starts a proxy for the first host of the URL. */
  static async start(url: string): Promise<MongoProxy> {
    const [, host = '', port = '27017'] = /\/\/(?:[^@/?]+@)?([^:,/?]+)(?::(\d+))?/.exec(url) ?? []
    const proxy = new MongoProxy(host, Number(port))
    await proxy.resume()
    return proxy
  }

  /**
   * Returns the URL through the proxy. It connects directly, because a driver would otherwise contact the members of
   * the replica set.
   */
  through(url: string): string {
    const proxied = url.replace(/(\/\/(?:[^@/?]+@)?)[^/?]+/, `$1127.0.0.1:${this.#listeningPort}`)
    return `${proxied}${proxied.includes('?') ? '&' : /\/\/[^/]+\//.test(proxied) ? '?' : '/?'}directConnection=true`
  }

  /** Refuses new connections and breaks open ones, like a server that has stopped. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async resume(): Promise<void> {
    this.#server.listen(this.#listeningPort, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#listeningPort = (this.#server.address() as AddressInfo).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) await this.stop()
  }

  #carry(client: Socket): void {
    const upstream = connect(this.#port, this.#host)
    let request: Buffer = Buffer.alloc(0)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.#sockets.add(from)
      from.on('data', (bytes: Buffer) => {
        if (this.isFrozen) return
        if (from === upstream) {
          if (this.losesReplies) from.destroy()
          else to.write(this.#reply(bytes))
          return
        }
        const { messages, rest } = splitMessages(Buffer.concat([request, bytes]))
        request = rest
        for (const message of messages) {
          const refusal = this.#toRefusal(message)
          if (refusal) from.write(refusal)
          else to.write(message)
        }
      })
      from.on('error', () => to.destroy())
      from.on('close', () => {
        this.#sockets.delete(from)
        to.destroy()
      })
    }
  }

  #toRefusal(message: Buffer): Buffer | undefined {
    if (!this.refusal) return undefined
    const { commands, ...reply } = this.refusal
    return commands.includes(commandOf(message) ?? '') ? replyTo(message, { ok: 0, ...reply }) : undefined
  }

  #reply(bytes: Buffer): Buffer {
    const at = bytes.indexOf(MAX_WIRE_VERSION)
    if (this.wireVersion !== null && at >= 0) bytes.writeInt32LE(this.wireVersion, at + MAX_WIRE_VERSION.length)
    return bytes
  }
}
