import type { Duplex } from 'node:stream'

/**
 * Sockets of this process whose caller is not known yet. Each has 3 s to identify itself, enough for a thousand clients
 * that return at once.
 */
const MAX_UNAUTHENTICATED = 1_000
/**
 * Bytes that a stranger may send: the one message that identifies it. A signed principal with a long list of models has
 * about 30 KiB.
 */
const MAX_BYTES = 64 * 1024

/**
 * Connections that became sockets before their caller is known. They are limited in number, and in what they may send.
 */
export class UnauthenticatedSockets {
  readonly #watched = new Map<Duplex, () => void>()

  /** True: the limit is reached, so refuse the upgrade. */
  get isFull(): boolean {
    return this.#watched.size >= MAX_UNAUTHENTICATED
  }

  /**
   * Call it after the WebSocket has begun to listen. As the first listener, this one would start the flow of data too
   * early.
   */
  enter(connection: Duplex): void {
    let bytes = 0
    const count = (piece: Buffer) => {
      bytes += piece.length
      if (bytes > MAX_BYTES) connection.destroy()
    }
    const stopWatching = () => this.know(connection)
    connection.on('data', count)
    connection.once('close', stopWatching)
    this.#watched.set(connection, () => {
      connection.off('data', count)
      connection.off('close', stopWatching)
    })
  }

  /** The caller is known. Other limits apply from now on. */
  know(connection: Duplex): void {
    this.#watched.get(connection)?.()
    this.#watched.delete(connection)
  }
}

/** The other connections end when their keys are known, or after some seconds. */
const RETRY_AFTER_S = 1

/** Ends a connection that does not become a socket. Node leaves it to its listeners, and its timeouts do not apply. */
export function refuseUpgrade(connection: Duplex, status: '403 Forbidden' | '404 Not Found' | '503 Service Unavailable'): void {
  const retry = status === '503 Service Unavailable' ? `Retry-After: ${RETRY_AFTER_S}\r\n` : ''
  connection.end(`HTTP/1.1 ${status}\r\n${retry}Connection: close\r\n\r\n`, () => connection.destroy())
}
