import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A proxy for a server on a loopback port. It can stop and start again, like the server itself. */
export class TcpProxy implements AsyncDisposable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #port = 0

  private constructor({ hostname, port }: URL) {
    this.#server = createServer((client) => {
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

  /** Refuses new connections and breaks open ones. */
  async stop(): Promise<void> {
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
