import { LRUCache } from 'lru-cache'
import type { WebSocket } from 'ws'
import type { Principal } from '../subgraphs/common/identity/principal.ts'
import { MAX_SERVICE_FRAME_BYTES } from '../subgraphs/common/link/link.ts'
import type { Clock } from '../subgraphs/common/process/clock.ts'
import { FairSemaphore } from '../subgraphs/common/process/fair-semaphore.ts'

/** When an operation of the key ends is unknown. */
export const FULL_RETRY_MS = 1_000

/** Limits of the keys of one door over sockets. */
interface SocketLimits {
  /** Of all keys. An organization may open another while it has fewer than are free, however many keys it has. */
  readonly sockets: number
  /** Largest message from a client, in bytes. */
  readonly maxFrameBytes: number
  readonly socketsPerKey: number
  /** Running subscriptions, queries and mutations. */
  readonly operationsPerKey: number
  /** Sustained rate of messages of one socket. `messageBurst` messages may come at once. */
  readonly messagesPerSecond: number
  readonly messageBurst: number
  /** Sustained rate of what all sockets of an organization send: reading a MiB takes some 10 ms of the event loop. */
  readonly organizationBytesPerSecond: number
  readonly organizationByteBurst: number
}

/** Organizations whose rates of bytes are remembered: 2 MB. */
const MAX_BYTE_RATES = 10_000

/** The burst lets a key start, and end, all its operations at once. */
export const PUBLIC_SOCKETS: SocketLimits = {
  sockets: 10_000,
  maxFrameBytes: 1024 * 1024,
  socketsPerKey: 20,
  operationsPerKey: 50,
  messagesPerSecond: 20,
  messageBurst: 120,
  organizationBytesPerSecond: 4 * 1024 * 1024,
  organizationByteBurst: 16 * 1024 * 1024,
}

/** Sockets of the service's own processes carry the calls of many clients, which were limited where they came in. */
export const SERVICE_SOCKETS: SocketLimits = {
  sockets: Number.POSITIVE_INFINITY,
  maxFrameBytes: MAX_SERVICE_FRAME_BYTES,
  socketsPerKey: Number.POSITIVE_INFINITY,
  operationsPerKey: Number.POSITIVE_INFINITY,
  messagesPerSecond: Number.POSITIVE_INFINITY,
  messageBurst: Number.POSITIVE_INFINITY,
  organizationBytesPerSecond: Number.POSITIVE_INFINITY,
  organizationByteBurst: Number.POSITIVE_INFINITY,
}

/** Whose a socket is. */
type Owner = Pick<Principal, 'apiKeyId' | 'organizationId'>

/** A socket whose key was accepted. */
export interface Connection {
  readonly socket: WebSocket
  /** As the client sent it. It is checked again while the socket is open. */
  readonly credentials: string
  readonly apiKeyId: string
  readonly organizationId: string
  /** Aborting one ends that operation. */
  readonly operations: Set<AbortController>
  /** Gives its place back. */
  readonly release: () => void
  /** When the client was first seen to leave too much unread, in milliseconds since 1970; undefined while it reads. */
  slowSince: number | undefined
  /** Set when this side closes the socket: whether its client may come back for its subscriptions. */
  isLost?: boolean
}

/** The open sockets whose key was accepted, and their running operations. */
export class SocketRegistry {
  readonly connections = new Set<Connection>()
  readonly limits: SocketLimits
  readonly #permits: FairSemaphore
  /** Operations by server-sent events, by key. */
  readonly #streams = new Map<string, number>()
  /** Of the bytes that the sockets of an organization send, by organization. They stay when sockets close. */
  readonly #byteRates = new LRUCache<string, ConsumeTokens>({ max: MAX_BYTE_RATES })

  constructor(limits: SocketLimits) {
    this.limits = limits
    this.#permits = new FairSemaphore(limits.sockets)
  }

  /** Undefined when the key, or its organization, has as many sockets as it may. */
  add(socket: WebSocket, credentials: string, { apiKeyId, organizationId }: Owner): Connection | undefined {
    if (this.#of(apiKeyId).length >= this.limits.socketsPerKey) return undefined
    const release = this.#permits.tryAcquire(organizationId)
    if (!release) return undefined
    const connection: Connection = { socket, credentials, apiKeyId, organizationId, operations: new Set(), release, slowSince: undefined }
    this.connections.add(connection)
    return connection
  }

  /** Counts a message against what the sockets of its organization may send. False: it is above that. */
  consumeBytes({ organizationId }: Connection, bytes: number, clock: Clock): boolean {
    const { organizationBytesPerSecond, organizationByteBurst } = this.limits
    const consume = this.#byteRates.get(organizationId) ?? tokenBucket(organizationBytesPerSecond, organizationByteBurst, clock)
    this.#byteRates.set(organizationId, consume)
    return consume(bytes)
  }

  /** Its socket is closed. */
  delete(connection: Connection): void {
    this.connections.delete(connection)
    connection.release()
    for (const operation of connection.operations) operation.abort()
  }

  /**
   * Undefined when the key runs as many operations as it may. The caller deletes the controller from `operations` at
   * the end.
   */
  start(connection: Connection): AbortController | undefined {
    if (this.#countOperations(connection.apiKeyId) >= this.limits.operationsPerKey) return undefined
    const operation = new AbortController()
    connection.operations.add(operation)
    return operation
  }

  /** Closes the socket of a client that may come back. */
  cut(connection: Connection, code: number, reason: string): void {
    connection.isLost = true
    this.close(connection, code, reason)
  }

  /**
   * Counts an operation that has a connection of its own and no socket. Gives the function to call at its end, once;
   * undefined when the key runs as many operations, or its organization has as many connections, as it may.
   */
  startStream({ apiKeyId, organizationId }: Owner): (() => void) | undefined {
    if (this.#countOperations(apiKeyId) >= this.limits.operationsPerKey) return undefined
    const release = this.#permits.tryAcquire(organizationId)
    if (!release) return undefined
    this.#streams.set(apiKeyId, (this.#streams.get(apiKeyId) ?? 0) + 1)
    return () => {
      release()
      const left = this.#streams.get(apiKeyId)! - 1
      if (left > 0) this.#streams.set(apiKeyId, left)
      else this.#streams.delete(apiKeyId)
    }
  }

  #countOperations(apiKeyId: string): number {
    return this.#of(apiKeyId).reduce((sum, { operations }) => sum + operations.size, this.#streams.get(apiKeyId) ?? 0)
  }

  /** Ends the running operations at once, without waiting for the client to answer the close frame. */
  close(connection: Connection, code: number, reason: string): void {
    connection.isLost ??= false
    for (const operation of connection.operations) operation.abort()
    connection.socket.close(code, reason)
  }

  #of(apiKeyId: string): readonly Connection[] {
    return [...this.connections].filter((connection) => connection.apiKeyId === apiKeyId)
  }
}

/** A message counts once more for each of these: reading it takes as long as so many bytes need. */
const MESSAGE_BYTES = 32 * 1024

/** Counts a message of so many bytes. False: the socket sends more than it may. */
export function messageRate({ messagesPerSecond, messageBurst }: SocketLimits, clock: Clock): ConsumeTokens {
  const consume = tokenBucket(messagesPerSecond, messageBurst, clock)
  return (bytes) => consume(1 + Math.floor(bytes / MESSAGE_BYTES))
}

/** Takes tokens, and returns false if there are not as many. */
type ConsumeTokens = (tokens: number) => boolean

function tokenBucket(perSecond: number, burst: number, clock: Clock): ConsumeTokens {
  let left = burst
  let at = clock.now().getTime()
  return (tokens) => {
    const now = clock.now().getTime()
    left = Math.min(burst, left + ((now - at) / 1000) * perSecond)
    at = now
    if (left < tokens) return false
    left -= tokens
    return true
  }
}
