import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** BSON's name of the field, its terminating zero included; a 32-bit number follows. */
const MAX_WIRE_VERSION = Buffer.from('maxWireVersion\0')

/** Stands between a client and one MongoDB server, to lose what a network and a server lose. */
export class MongoProxy implements AsyncDisposable {
  readonly #host: string
  readonly #port: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #listeningPort = 0
  /** From now on a request reaches the server, and its answer is lost with the connection. */
  losesAnswers = false
  /** From now on nothing is carried in either direction, and nothing is closed. */
  isFrozen = false
  /** What the server is made to say that it speaks, or null. */
  wireVersion: number | null = null

  private constructor(host: string, port: number) {
    this.#host = host
    this.#port = port
    this.#server = createServer((client) => this.#carry(client))
  }

  /** In front of the first host of the URL. */
  static async start(url: string): Promise<MongoProxy> {
    const [, host = '', port = '27017'] = /\/\/(?:[^@/?]+@)?([^:,/?]+)(?::(\d+))?/.exec(url) ?? []
    const proxy = new MongoProxy(host, Number(port))
    await proxy.resume()
    return proxy
  }

  /** The same URL through the proxy; a driver would otherwise go by the members that a replica set names. */
  through(url: string): string {
    const proxied = url.replace(/(\/\/(?:[^@/?]+@)?)[^/?]+/, `$1127.0.0.1:${this.#listeningPort}`)
    return `${proxied}${proxied.includes('?') ? '&' : /\/\/[^/]+\//.test(proxied) ? '?' : '/?'}directConnection=true`
  }

  /** Refuses connections and breaks those that are open, as a server that has ended. */
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
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.#sockets.add(from)
      from.on('data', (bytes: Buffer) => {
        if (this.isFrozen) return
        if (from === upstream && this.losesAnswers) from.destroy()
        else to.write(from === upstream ? this.#answer(bytes) : bytes)
      })
      from.on('error', () => to.destroy())
      from.on('close', () => {
        this.#sockets.delete(from)
        to.destroy()
      })
    }
  }

  #answer(bytes: Buffer): Buffer {
    const at = bytes.indexOf(MAX_WIRE_VERSION)
    if (this.wireVersion !== null && at >= 0) bytes.writeInt32LE(this.wireVersion, at + MAX_WIRE_VERSION.length)
    return bytes
  }
}
