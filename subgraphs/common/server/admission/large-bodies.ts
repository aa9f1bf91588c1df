import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest, RequestPayload } from 'fastify'
import { KisError, TooBusy } from '../../errors.ts'
import { sizeText } from '../../sizes.ts'
import { readContentLength } from '../bodies/request-counts.ts'

/** Smaller bodies are accepted without a check: they cost no more than headers. */
export const SMALL_BODY_BYTES = 16 * 1024
/** How many of the largest bodies fit at once. While a body is passed on, its process holds it several times. */
const LARGEST_AT_ONCE = 4
/** How many of these one organization may have, so that others always have room. */
const LARGEST_AT_ONCE_OF_ONE = 2
/** What a process holds of a file that it sends piece by piece, however long the file is. */
const STREAMED_BYTES = 4 * 1024 * 1024
/** A 25 MiB upload from a fast client takes a second: eight that come at once all get in. */
const WAIT_MS = 10_000
/** Waiting bodies of one organization. Each holds the 64 KiB that have already arrived. */
const MAX_WAITING = 64
const RETRY_AFTER_MS = 1_000

interface LargeBodiesOptions {
  /** The largest body that any route of the process takes. */
  readonly largestBytes: number
  /** How long a body may wait for its place. Default: 10 s. */
  readonly waitMs?: number
}

/**
 * Room for one body, until it is freed. A response counts for its organization alone, not in total: a client that reads
 * slowly must not keep the bodies of others waiting.
 */
interface Reservation {
  bytes: number
  readonly isResponse: boolean
}

interface Waiter {
  readonly bytes: number
  readonly isResponse: boolean
  readonly enter: () => void
}

/**
 * Limits the bodies above `SMALL_BODY_BYTES` that a process holds at once, in total and for each organization: those of
 * requests from before their first byte is read until they are answered, those of responses until they are written.
 * Without room, a request waits for a short time. Organizations take turns.
 */
export class LargeBodies {
  readonly #waitMs: number
  readonly #totalBytes: number
  readonly #bytesOfOne: number
  #heldBytes = 0
  readonly #heldBy = new Map<string, number>()
  /** By organization; the next turn comes first. */
  readonly #queues = new Map<string, Waiter[]>()

  constructor({ largestBytes, waitMs = WAIT_MS }: LargeBodiesOptions) {
    this.#waitMs = waitMs
    this.#totalBytes = LARGEST_AT_ONCE * largestBytes
    this.#bytesOfOne = LARGEST_AT_ONCE_OF_ONE * largestBytes
  }

  /**
   * Call and await it before the body is read. `findOrganization` identifies the caller, and is only called for large
   * bodies.
   * @param limitBytes the route's limit: a body of unknown length counts as this large until it is read
   * @throws {KisError} the caller is unknown, or found no room in time
   */
  async admit(
    { raw, server }: FastifyRequest,
    reply: FastifyReply,
    findOrganization: () => string | Promise<string>,
    limitBytes: number,
  ): Promise<void> {
    const bytes = Math.min(limitBytes, readContentLength(raw.headers))
    if (bytes > SMALL_BODY_BYTES) {
      const organization = await findOrganization()
      const reservation = await this.#enter(organization, bytes, false, reply)
      const { socket } = raw
      const readBefore = socket.bytesRead - raw.readableLength
      const settle = (heldBytes: number) => this.#settle(organization, reservation, heldBytes)
      // A body counts with its stated length until it is answered. One of unknown length counts with what has arrived.
      if (raw.headers['content-length'] === undefined) raw.once('end', () => settle(Math.min(bytes, socket.bytesRead - readBefore)))
      reply.raw.once('close', () => settle(0))
    }
    // With `listen` we must send `100 Continue` ourselves. Otherwise Node has already sent it.
    if (raw.headers.expect && server.server.listenerCount('checkContinue') > 0) reply.raw.writeContinue()
  }

  /**
   * Call and await it before a response is written. A whole response never waits, because its work is done and may be
   * paid for; what comes after it waits. What is sent piece by piece, such as a file, waits before it is read on.
   * @throws {KisError} the file found no room in time
   */
  async admitResponse(reply: FastifyReply, payload: unknown, findOrganization: () => string | Promise<string>): Promise<void> {
    const isWhole = typeof payload === 'string' || payload instanceof Uint8Array
    const streamedBytes = payload instanceof Readable ? Number(reply.getHeader('content-length') ?? STREAMED_BYTES) : 0
    const bytes = isWhole ? payload.length : Math.min(STREAMED_BYTES, streamedBytes)
    if (bytes <= SMALL_BODY_BYTES || reply.request.method === 'HEAD') return
    const organization = await findOrganization()
    const reservation = isWhole ? this.#reserve(organization, bytes, true) : await this.#enter(organization, bytes, true, reply)
    const free = () => this.#settle(organization, reservation, 0)
    if (reply.raw.destroyed) free()
    else reply.raw.once('close', free)
  }

  async #enter(organization: string, bytes: number, isResponse: boolean, { raw }: FastifyReply): Promise<Reservation> {
    if (raw.destroyed) throw this.#refusal(organization, bytes)
    const queue = this.#queues.get(organization)
    if (!queue && this.#fits(organization, bytes, isResponse)) return this.#reserve(organization, bytes, isResponse)
    if (queue && queue.length >= MAX_WAITING) throw this.#refusal(organization, queue[0]!.bytes)
    return new Promise((resolve, reject) => {
      const abandon = () => {
        clearTimeout(timer)
        raw.off('close', abandon)
        this.#dequeue(organization, waiter)
        reject(this.#refusal(organization, bytes))
      }
      const timer = setTimeout(abandon, this.#waitMs)
      raw.once('close', abandon)
      const waiter: Waiter = {
        bytes,
        isResponse,
        enter: () => {
          clearTimeout(timer)
          raw.off('close', abandon)
          resolve(this.#reserve(organization, bytes, isResponse))
        },
      }
      this.#queues.set(organization, [...(queue ?? []), waiter])
    })
  }

  #fits(organization: string, bytes: number, isResponse: boolean): boolean {
    if ((this.#heldBy.get(organization) ?? 0) + bytes > this.#bytesOfOne) return false
    return isResponse || this.#heldBytes + bytes <= this.#totalBytes
  }

  #reserve(organization: string, bytes: number, isResponse: boolean): Reservation {
    const reservation: Reservation = { bytes: 0, isResponse }
    this.#hold(organization, reservation, bytes)
    return reservation
  }

  #settle(organization: string, reservation: Reservation, bytes: number): void {
    if (reservation.bytes === 0) return
    this.#hold(organization, reservation, bytes)
    this.#letIn()
  }

  #hold(organization: string, reservation: Reservation, bytes: number): void {
    const heldBytes = (this.#heldBy.get(organization) ?? 0) + bytes - reservation.bytes
    if (!reservation.isResponse) this.#heldBytes += bytes - reservation.bytes
    reservation.bytes = bytes
    if (heldBytes > 0) this.#heldBy.set(organization, heldBytes)
    else this.#heldBy.delete(organization)
  }

  #dequeue(organization: string, waiter: Waiter): void {
    const left = this.#queues.get(organization)?.filter((other) => other !== waiter) ?? []
    if (left.length > 0) this.#queues.set(organization, left)
    else this.#queues.delete(organization)
    this.#letIn()
  }

  /** Lets in one body of each organization in turn, as long as one fits. */
  #letIn(): void {
    for (let hasEntered = true; hasEntered; ) {
      hasEntered = false
      for (const [organization, [first, ...others]] of [...this.#queues]) {
        if (!first || !this.#fits(organization, first.bytes, first.isResponse)) continue
        this.#queues.delete(organization)
        if (others.length > 0) this.#queues.set(organization, others)
        first.enter()
        hasEntered = true
      }
    }
  }

  #refusal(organization: string, bytes: number): KisError {
    if ((this.#heldBy.get(organization) ?? 0) + bytes <= this.#bytesOfOne)
      return new TooBusy('The service is processing as many large requests as it can.', RETRY_AFTER_MS)
    return new KisError(
      'rate_limit_exceeded',
      `Your organization has reached its limit of ${sizeText(this.#bytesOfOne)} in concurrent large requests. Send fewer at once.`,
      { retryAfterMs: RETRY_AFTER_MS },
    )
  }
}

/** Pieces of a chunked body that may be of any length, such as the last of each write. */
const FREE_PIECES = 4_096
/**
 * What the others have at least, in the mean. Each piece holds a few hundred bytes beside its own until the body is
 * whole.
 */
const LEAST_MEAN_BYTES = 64

/**
 * A `preParsing` hook: ends a chunked body that comes byte by byte. 20 MB in pieces of one byte would hold some
 * gigabytes, though the body is no longer than it may be. Whoever reads the body answers with the error.
 */
export function endTinyPieces(
  { raw }: FastifyRequest,
  _reply: unknown,
  payload: RequestPayload,
  done: (error: null, payload: RequestPayload) => void,
): void {
  if (raw.headers['transfer-encoding'] !== undefined) {
    let [pieces, bytes] = [0, 0]
    const count = ({ length }: Buffer) => {
      pieces += 1
      bytes += length
      if (pieces <= FREE_PIECES || bytes >= pieces * LEAST_MEAN_BYTES) return
      raw.off('data', count)
      const error = new KisError('invalid_request', 'The body comes in pieces that are too small. Send it in larger ones.')
      // The reader still gets this piece, and might be done with it.
      process.nextTick(() => raw.listenerCount('error') > 0 && raw.emit('error', error))
    }
    // Nothing flows before the next turn, and the body's reader listens by then.
    raw.on('data', count)
  }
  done(null, payload)
}
