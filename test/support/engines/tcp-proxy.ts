import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { Transform } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

/** One connection of a client through the proxy. */
interface ProxiedConnection {
  readonly client: Socket
  readonly toServer: Transform
  readonly toClient: Transform
  /** Absent while the proxy has not connected to the server. */
  upstream?: Socket
  /** True if nothing passes any more, whatever becomes of the proxy. */
  isLost: boolean
}

/** A proxy for a server on a loopback port. It can stop and start again, like the server itself, and fail as networks do. */
export class TcpProxy implements AsyncDisposable {
  readonly #server: Server
  readonly #hostname: string
  readonly #upstreamPort: number
  readonly #connections = new Set<ProxiedConnection>()
  #port = 0
  #isFrozen = false
  #latencyMs = 0

  private constructor({ hostname, port }: URL) {
    this.#hostname = hostname
    this.#upstreamPort = Number(port)
    this.#server = createServer((client) => {
      const connection: ProxiedConnection = { client, toServer: this.#carrier(), toClient: this.#carrier(), isLost: false }
      this.#connections.add(connection)
      client.pause().on('error', () => {})
      client.on('close', () => {
        this.#connections.delete(connection)
        if (!client.readableEnded) connection.upstream?.destroy()
      })
      if (!this.#isFrozen) this.#join(connection)
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

  /** From now on every piece takes this long, in each direction. */
  slow(latencyMs: number): void {
    this.#latencyMs = latencyMs
  }

  /** Passes nothing on any more, and tells nobody, as a network that is gone. It ends with `stop` or `heal`. */
  freeze(): void {
    this.#isFrozen = true
    for (const { client, upstream, toServer, toClient } of this.#connections)
      for (const stream of [client, upstream, toServer, toClient]) stream?.unpipe().pause()
  }

  /**
   * Makes the open connections half-open: the server's ends are closed, and the clients hear nothing of it, as when a
   * machine between them has forgotten them. New connections pass.
   */
  halfOpen(): void {
    for (const connection of this.#connections) {
      connection.isLost = true
      connection.client.unpipe().pause()
      connection.upstream?.destroy()
    }
  }

  /** Refuses new connections and breaks open ones. */
  async stop(): Promise<void> {
    this.#isFrozen = false
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const { client } of this.#connections) client.destroy()
    await closed
  }

  async resume(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
  }

  /** Ends every fault. What a frozen proxy has kept goes on, as packets that are sent again. */
  async heal(): Promise<void> {
    this.#latencyMs = 0
    if (this.#isFrozen) for (const connection of this.#connections) if (!connection.isLost) this.#join(connection)
    this.#isFrozen = false
    if (!this.#server.listening) await this.resume()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) await this.stop()
  }

  #join(connection: ProxiedConnection): void {
    const { client, toServer, toClient } = connection
    const upstream = connection.upstream ?? this.#connect(connection)
    client.pipe(toServer).pipe(upstream)
    upstream.pipe(toClient).pipe(client)
  }

  #connect(connection: ProxiedConnection): Socket {
    const upstream = connect(this.#upstreamPort, this.#hostname)
    connection.upstream = upstream
    return upstream
      .on('error', () => {})
      .on('close', () => {
        if (!upstream.readableEnded && !connection.isLost) connection.client.destroy()
      })
  }

  /** Carries pieces in their order, each after the latency of its moment. */
  #carrier(): Transform {
    let pending = 0
    let last: Promise<unknown> = Promise.resolve()
    const carrier: Transform = new Transform({
      transform: (piece, _encoding, done) => {
        if (this.#latencyMs === 0 && pending === 0) return done(null, piece)
        pending++
        last = Promise.all([last, sleep(this.#latencyMs)]).then(() => {
          pending--
          carrier.push(piece)
        })
        done()
      },
      flush: (done) => void last.then(() => done()),
    })
    return carrier
  }
}
