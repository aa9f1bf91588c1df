import { MongoClient, type MongoClientOptions, MongoNetworkTimeoutError } from 'mongodb'

/** Pause between two attempts to reconnect. */
const PAUSE_MS = 1_000

interface ResilientClientOptions extends MongoClientOptions {
  /** Longer than any check of a server takes. A check that is still running after this long has hung. */
  readonly heartbeatLimitMs: number
}

/**
 * A `MongoClient` that recovers when the driver does not. The driver writes to a socket that is destroyed but has not
 * emitted `close` yet, and then waits forever for its `drain` (seen in 7.8.0 and 7.9.0, `Connection.writeCommand`). A
 * monitor in this state never finds its server again; an operation never ends and holds its connection. This client
 * detects both by a time limit, and replaces all connections.
 */
export class ResilientClient extends MongoClient {
  readonly #url: string
  readonly #options: MongoClientOptions
  readonly #heartbeatLimitMs: number
  /** The clients of `patiently`. */
  readonly #patient = new Set<MongoClient>()
  /** Running checks of servers, by address. */
  readonly #checks = new Map<string, NodeJS.Timeout>()
  #isClosed = false
  #renewing: Promise<void> | undefined

  constructor(url: string, { heartbeatLimitMs, ...options }: ResilientClientOptions) {
    super(url, options)
    this.#url = url
    this.#options = options
    this.#heartbeatLimitMs = heartbeatLimitMs
    this.on('serverHeartbeatStarted', ({ connectionId }) => this.#watch(connectionId))
    this.on('serverHeartbeatSucceeded', ({ connectionId }) => this.#unwatch(connectionId))
    this.on('serverHeartbeatFailed', ({ connectionId }) => this.#unwatch(connectionId))
    this.on('serverClosed', ({ address }) => this.#unwatch(address))
  }

  /**
   * Returns the result of the operation.
   * @throws {MongoNetworkTimeoutError} the operation has not ended after `limitMs`; whether it was carried out is
   * unknown
   */
  async withTimeout<R>(operation: () => Promise<R>, limitMs: number): Promise<R> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      this.#renew()
      reject(new MongoNetworkTimeoutError(`no response after ${limitMs} ms`))
    }, limitMs)
    try {
      return await Promise.race([operation(), late])
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Runs an operation that may take hours, such as building an index, on a connection of its own without a socket
   * timeout. The operation fails when the server is lost, and when this client is closed.
   */
  async patiently<R>(operation: (client: MongoClient) => Promise<R>): Promise<R> {
    const client = new MongoClient(this.#url, { ...this.#options, socketTimeoutMS: 0, maxPoolSize: 1 })
    this.#patient.add(client)
    try {
      return await operation(client)
    } finally {
      this.#patient.delete(client)
      await client.close()
    }
  }

  override async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#patient].map((client) => client.close()))
    await this.#disconnect()
    await this.#renewing
  }

  #watch(address: string): void {
    this.#unwatch(address)
    this.#checks.set(
      address,
      setTimeout(() => this.#renew(), this.#heartbeatLimitMs),
    )
  }

  #unwatch(address: string): void {
    clearTimeout(this.#checks.get(address))
    this.#checks.delete(address)
  }

  #renew(): void {
    if (this.#isClosed) return
    this.#renewing ??= this.#reconnect().finally(() => {
      this.#renewing = undefined
    })
  }

  async #reconnect(): Promise<void> {
    await this.#disconnect()
    while (!this.#isClosed) {
      try {
        await this.connect()
        break
      } catch {
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      }
    }
    // The client was closed while it connected.
    if (this.#isClosed) await this.#disconnect()
  }

  async #disconnect(): Promise<void> {
    for (const address of [...this.#checks.keys()]) this.#unwatch(address)
    await super.close()
  }
}
