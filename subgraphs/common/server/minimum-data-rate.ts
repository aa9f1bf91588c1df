import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** The minimum progress of a client while something waits for it. */
export interface DataRateLimits {
  readonly leastBytesPerSecond: number
  /** A body must keep the rate in each window of this length. */
  readonly bodyWindowMs: number
  /** The same for reading an answer, once the kernel's buffer is full. */
  readonly responseWindowMs: number
  /**
   * Bytes that all clients together may leave unread in this process. Above it those are disconnected that have read
   * nothing for the longest time.
   */
  readonly maxUnreadBytes: number
}

/**
 * Today's networks are faster than 128 kbit/s. A body has one of few places, so a slow one is ended soon. The kernel
 * takes an answer in pieces of up to a third of its buffer, 1.3 MB on fast networks; a window must be longer than such
 * a piece takes.
 */
export const MINIMUM_DATA_RATE: DataRateLimits = {
  leastBytesPerSecond: 16 * 1024,
  bodyWindowMs: 10_000,
  responseWindowMs: 90_000,
  maxUnreadBytes: 256 * 1024 * 1024,
}

/** A check that is later than this means that the process slept, not its clients. */
const MAX_PAUSE_MS = 3_000

interface Mark {
  readonly atMs: number
  readonly bytes: number
}

/** Finds clients that are too slow, by checking about once a second. It costs nothing in between. */
export class MinimumDataRate {
  readonly #limits: DataRateLimits
  #bodies = new WeakMap<IncomingMessage, Mark>()
  #unread = new WeakMap<Socket, Mark>()
  #lastCheckMs = 0

  constructor(limits: DataRateLimits) {
    this.#limits = limits
  }

  check(
    requests: Iterable<IncomingMessage>,
    sockets: Iterable<Socket>,
    nowMs: number,
  ): { readonly slowBodies: readonly IncomingMessage[]; readonly slowReaders: readonly Socket[] } {
    if (nowMs - this.#lastCheckMs > MAX_PAUSE_MS) {
      this.#bodies = new WeakMap()
      this.#unread = new WeakMap()
    }
    this.#lastCheckMs = nowMs
    const { bodyWindowMs } = this.#limits
    const slowBodies = [...requests].filter((request) => {
      if (request.readableFlowing === true)
        return !request.complete && this.#isSlow(this.#bodies, request, request.socket.bytesRead, bodyWindowMs, nowMs)
      // Nobody reads a body that waits for its turn, or for what has come in to be stored.
      this.#bodies.delete(request)
      return false
    })
    return { slowBodies, slowReaders: this.#slowReaders(sockets, nowMs) }
  }

  #slowReaders(sockets: Iterable<Socket>, nowMs: number): readonly Socket[] {
    const { responseWindowMs, maxUnreadBytes } = this.#limits
    const slow = new Set<Socket>()
    const waiting: Socket[] = []
    let unreadBytes = 0
    for (const socket of sockets) {
      if (socket.writableLength === 0) this.#unread.delete(socket)
      else if (this.#isSlow(this.#unread, socket, countFlushedBytes(socket), responseWindowMs, nowMs)) slow.add(socket)
      else {
        waiting.push(socket)
        unreadBytes += socket.writableLength
      }
    }
    waiting.sort((a, b) => this.#unread.get(a)!.atMs - this.#unread.get(b)!.atMs)
    for (const socket of waiting) {
      if (unreadBytes <= maxUnreadBytes) break
      slow.add(socket)
      unreadBytes -= socket.writableLength
    }
    return [...slow]
  }

  #isSlow<Key extends object>(marks: WeakMap<Key, Mark>, key: Key, bytes: number, windowMs: number, nowMs: number): boolean {
    const mark = marks.get(key)
    if (mark && nowMs - mark.atMs < windowMs) return false
    marks.set(key, { atMs: nowMs, bytes })
    return mark !== undefined && bytes - mark.bytes < (this.#limits.leastBytesPerSecond * windowMs) / 1_000
  }
}

/**
 * The written bytes that the kernel has taken. A large answer is one write, whose progress `net.Socket` reports only at
 * its end. Node's own socket timeout uses the same two figures (`_onTimeout` in lib/net.js).
 */
function countFlushedBytes(socket: Socket): number {
  const { _handle: handle } = socket as Socket & {
    readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null
  }
  return handle ? handle.bytesWritten - handle.writeQueueSize : 0
}
