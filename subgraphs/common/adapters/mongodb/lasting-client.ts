import { MongoClient, type MongoClientOptions, MongoNetworkTimeoutError } from 'mongodb'

/** Between two tries to connect again. */
const PAUSE_MS = 1_000

export interface LastingOptions extends MongoClientOptions {
  /** Above the longest that a look at a server takes: one without an end for this long has stopped for good. */
  readonly heartbeatLimitMs: number
}

/**
 * A `MongoClient` that recovers when the driver does not. The driver writes to a socket that was destroyed but has not said `close` yet, and then
 * waits for its `drain` without end (seen in 7.8.0 and 7.9.0, `Connection.writeCommand`). A monitor that waits like this never finds its server
 * again; an operation never ends and keeps its connection. Both are noticed by their time here, and all connections are made anew.
 */
export class LastingClient extends MongoClient {
  readonly #heartbeatLimitMs: number
  /** Looks at servers that are under way, by address. */
  readonly #looks = new Map<string, NodeJS.Timeout>()
  #isClosed = false
  #renewing: Promise<void> | undefined

  constructor(url: string, { heartbeatLimitMs, ...options }: LastingOptions) {
    super(url, options)
    this.#heartbeatLimitMs = heartbeatLimitMs
    this.on('serverHeartbeatStarted', ({ connectionId }) => this.#watch(connectionId))
    this.on('serverHeartbeatSucceeded', ({ connectionId }) => this.#unwatch(connectionId))
    this.on('serverHeartbeatFailed', ({ connectionId }) => this.#unwatch(connectionId))
    this.on('serverClosed', ({ address }) => this.#unwatch(address))
  }

  /** What the operation gives. @throws {MongoNetworkTimeoutError} it has not ended after `limitMs`; whether it was carried out is unknown. */
  async bounded<R>(operation: () => Promise<R>, limitMs: number): Promise<R> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      this.#renew()
      reject(new MongoNetworkTimeoutError(`no answer after ${limitMs} ms`))
    }, limitMs)
    try {
      return await Promise.race([operation(), late])
    } finally {
      clearTimeout(timer)
    }
  }

  override async close(): Promise<void> {
    this.#isClosed = true
    await this.#disconnect()
    await this.#renewing
  }

  #watch(address: string): void {
    this.#unwatch(address)
    this.#looks.set(
      address,
      setTimeout(() => this.#renew(), this.#heartbeatLimitMs),
    )
  }

  #unwatch(address: string): void {
    clearTimeout(this.#looks.get(address))
    this.#looks.delete(address)
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
    // Closed while it was connecting.
    if (this.#isClosed) await this.#disconnect()
  }

  async #disconnect(): Promise<void> {
    for (const address of [...this.#looks.keys()]) this.#unwatch(address)
    await super.close()
  }
}
