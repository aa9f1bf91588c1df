import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A proxy for a server on a loopback port. It can stop and start again, like the server itself. */
export class TcpProxy implements AsyncDisposable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #port = 0
  #isFrozen = false

  private constructor({ hostname, port }: URL) {
    this.#server = createServer((client) => {
      if (this.#isFrozen) {
        this.#sockets.add(client.pause().on('error', () => {}))
        return
      }
      const upstream = connect(Number(port), hostname)
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        this.#sockets.add(from)
        from.pipe(to)
        from.on('error', () => to.destroy())
        from.on('close', () => {
          this.#sockets.delete(from)
          to.destroy()
        })
      }
    })
  }

  static async start(url: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(url))
    await proxy.resume()
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Passes nothing on any more, and tells nobody, as a network that is gone. It ends with `stop`. */
  freeze(): void {
    this.#isFrozen = true
    for (const socket of this.#sockets) socket.unpipe().pause()
  }

  /** Refuses new connections and breaks open ones. */
  async stop(): Promise<void> {
    this.#isFrozen = false
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async resume(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) await this.stop()
  }
}
