import type { WebSocket } from 'ws'
import { MAX_SERVICE_FRAME_BYTES } from '../subgraphs/common/link/remote-link.ts'
import type { Clock } from '../subgraphs/common/process/clock.ts'

/** What one API key may do over sockets at once. */
export interface SocketLimits {
  /** Largest message of a client, in bytes. */
  readonly maxFrameBytes: number
  readonly socketsPerKey: number
  /** Subscriptions, queries and mutations under way. */
  readonly operationsPerKey: number
  /** Messages of one socket per second, in the long run; `messageBurst` may come at once. */
  readonly messagesPerSecond: number
  readonly messageBurst: number
}

/** A burst: every operation that a key may have under way is started, and ended, at once. */
export const PUBLIC_SOCKETS: SocketLimits = {
  maxFrameBytes: 1024 * 1024,
  socketsPerKey: 20,
  operationsPerKey: 50,
  messagesPerSecond: 20,
  messageBurst: 120,
}

/** Sockets of the service's own processes carry the calls of many clients; how many is judged where they came in. */
export const SERVICE_SOCKETS: SocketLimits = {
  maxFrameBytes: MAX_SERVICE_FRAME_BYTES,
  socketsPerKey: Number.POSITIVE_INFINITY,
  operationsPerKey: Number.POSITIVE_INFINITY,
  messagesPerSecond: Number.POSITIVE_INFINITY,
  messageBurst: Number.POSITIVE_INFINITY,
}

/** A socket whose key was accepted. */
export interface Connection {
  readonly socket: WebSocket
  /** As the client sent it; judged again while the socket is open. */
  readonly credentials: string
  readonly apiKeyId: string
  /** Ends the operations under way. */
  readonly operations: Set<AbortController>
  /** When the client was first seen to leave too much unread, in milliseconds since 1970. */
  slowSince: number | undefined
}

/** The open sockets whose key was accepted, and what is under way on them. */
export class SocketRegistry {
  readonly connections = new Set<Connection>()
  readonly #limits: SocketLimits

  constructor(limits: SocketLimits) {
    this.#limits = limits
  }

  /** Undefined when the key has as many sockets as it may. */
  add(socket: WebSocket, credentials: string, apiKeyId: string): Connection | undefined {
    if (this.#of(apiKeyId).length >= this.#limits.socketsPerKey) return undefined
    const connection: Connection = { socket, credentials, apiKeyId, operations: new Set(), slowSince: undefined }
    this.connections.add(connection)
    return connection
  }

  /** Undefined when the key has as many operations under way as it may. Whoever begins one deletes it from `operations` at its end. */
  begin(connection: Connection): AbortController | undefined {
    const underWay = this.#of(connection.apiKeyId).reduce((sum, { operations }) => sum + operations.size, 0)
    if (underWay >= this.#limits.operationsPerKey) return undefined
    const operation = new AbortController()
    connection.operations.add(operation)
    return operation
  }

  /** Ends what is under way at once, without waiting for the client to agree to the close. */
  close(connection: Connection, code: number, reason: string): void {
    for (const operation of connection.operations) operation.abort()
    connection.socket.close(code, reason)
  }

  #of(apiKeyId: string): readonly Connection[] {
    return [...this.connections].filter((connection) => connection.apiKeyId === apiKeyId)
  }
}

/** Gives false for a message above the rate: a bucket that fills by `messagesPerSecond` and holds `messageBurst`. */
export function messageRate({ messagesPerSecond, messageBurst }: SocketLimits, clock: Clock): () => boolean {
  let left = messageBurst
  let at = clock.now().getTime()
  return () => {
    const now = clock.now().getTime()
    left = Math.min(messageBurst, left + ((now - at) / 1000) * messagesPerSecond)
    at = now
    if (left < 1) return false
    left -= 1
    return true
  }
}
