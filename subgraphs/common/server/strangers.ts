import type { Duplex } from 'node:stream'

/** Sockets of this process whose caller has not been judged yet; each has 3 s for that. A thousand clients that come back at once are in within them. */
const MAX_STRANGERS = 1_000
/** What a stranger may send: the one message that says who it is. A signed principal with a long list of models has some 30 KiB. */
const MAX_BYTES = 64 * 1024

/** Connections that became sockets before anybody knows whose they are: few, and with little to say. */
export class Strangers {
  readonly #watched = new Map<Duplex, () => void>()

  /** True: there are as many as may be, and an upgrade is to be refused. */
  get isFull(): boolean {
    return this.#watched.size >= MAX_STRANGERS
  }

  /** Call it after the WebSocket has begun to listen: were this the first listener, data could flow before the WebSocket listens. */
  enter(connection: Duplex): void {
    let bytes = 0
    const count = (piece: Buffer) => {
      bytes += piece.length
      if (bytes > MAX_BYTES) connection.destroy()
    }
    const forget = () => this.know(connection)
    connection.on('data', count)
    connection.once('close', forget)
    this.#watched.set(connection, () => {
      connection.off('data', count)
      connection.off('close', forget)
    })
  }

  /** Its caller is known; how much it may send is judged by others. */
  know(connection: Duplex): void {
    this.#watched.get(connection)?.()
    this.#watched.delete(connection)
  }
}

/** Ends a connection that becomes no socket. Node leaves it to whoever listens for upgrades, and its timeouts do not hold for it. */
export function refuseUpgrade(connection: Duplex, status: '404 Not Found' | '503 Service Unavailable'): void {
  connection.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`, () => connection.destroy())
}
