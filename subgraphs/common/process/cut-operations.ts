import type { WebSocket } from 'ws'

/** Close code of a client that has finished. */
const NORMAL_CLOSE = 1000
/** Longest note, in bytes. */
const MAX_NOTE_BYTES = 128
/** Limit of notes of one socket. The operation of a note ends right after it. */
const MAX_NOTES = 1_000

/**
 * Returns a ping of `graphql-transport-ws` by which a service reports that the client of one of its subscriptions was
 * disconnected. The service then completes the subscription. The protocol's `complete` alone means that the client
 * wants no more.
 */
export function cutNote(subscription: string): string {
  return JSON.stringify({ type: 'ping', payload: { cut: subscription } })
}

/** Returns the name of a subscription in `extensions`, for notes about it. */
export function readSubscription(extensions: Readonly<Record<string, unknown>> | null | undefined): string | undefined {
  const name = extensions?.subscription
  return typeof name === 'string' ? name : undefined
}

/**
 * The subscriptions of one service socket whose clients were disconnected, as the notes on the socket say. Create it
 * before graphql-ws reads from the socket.
 */
export class CutOperations {
  readonly #cut = new Set<string>()
  /** True once the socket was lost, without a normal close. */
  isLost = false

  constructor(socket: WebSocket) {
    socket.on('message', (data: Buffer) => {
      if (data.length <= MAX_NOTE_BYTES && data.includes('"cut"')) this.#note(String(data))
    })
    socket.once('close', (code) => {
      this.isLost = code !== NORMAL_CLOSE
    })
  }

  /** Returns whether the client of the subscription was disconnected. */
  has(subscription: string | undefined): boolean {
    return this.isLost || (subscription !== undefined && this.#cut.has(subscription))
  }

  #note(text: string): void {
    try {
      const cut: unknown = JSON.parse(text)?.payload?.cut
      if (typeof cut !== 'string') return
      this.#cut.add(cut)
      if (this.#cut.size > MAX_NOTES) this.#cut.delete(this.#cut.values().next().value!)
    } catch {
      // graphql-ws closes the socket if a message is not JSON.
    }
  }
}
