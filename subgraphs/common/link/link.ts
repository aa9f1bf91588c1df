import type { ExecutionResult } from 'graphql'
import type { OperationText } from '../../../schema/operations.ts'
import type { ByteRequest, ByteResponse } from '../bytes/byte-response.ts'
import { KisError, ServiceUnavailable } from '../errors.ts'
import type { Caller } from '../identity/principal.ts'

/**
 * A link closes idle connections before a draining server does, so that no request meets a connection that is being
 * closed.
 */
export const IDLE_CONNECTION_MS = 2_000
/**
 * Frames between services contain chat requests with images, 20 MiB, and audio files: 25 MiB, or 33.4 MiB as base64.
 */
export const MAX_SERVICE_FRAME_BYTES = 36 * 1024 * 1024

/** One GraphQL operation. Links cache what they derive from the text, so use constant texts. */
export interface Operation {
  readonly query: string
  readonly variables?: Readonly<Record<string, unknown>> | undefined
  readonly operationName?: string | undefined
}

/** The circumstances of an operation. */
export interface LinkContext<Who = Caller | null> {
  /**
   * The caller. For a link to a subgraph a principal or service, for the link to the gateway an API key as the client
   * sent it.
   */
  readonly caller: Who
  /** `req_…`. The id follows the request through every process into logs and usage records. */
  readonly requestId: string
  /**
   * Ends the operation: an aborted `execute` rejects, an aborted subscription ends, and the other side is notified at
   * once.
   */
  readonly signal: AbortSignal
  /**
   * Called when a subscription is ended by its consumer. True: the client's connection was lost, so the client may come
   * back. False or absent: the client wants no more.
   */
  readonly isCut?: (() => boolean) | undefined
}

/**
 * The only way to call another service. `localLink` runs in the process, `remoteLink` over HTTP keep-alive and
 * graphql-ws; both pass `test/contract/link.ts`. Results are plain JSON values, except vectors: see `readVector`. An
 * expected failure is in `errors`, with the extensions of `schema/errors.ts`.
 */
export interface Link<Who = Caller | null> {
  /** @throws {ServiceUnavailable} no response arrived. The link repeats nothing, because the operation may have run. */
  execute(operation: Operation, context: LinkContext<Who>): Promise<ExecutionResult>
  /**
   * Returns the iterator at once; the operation starts with the first `next()`. `return()` ends the operation at once,
   * even while a `next()` is pending, which then resolves to `done`. A failure before or between events is one result
   * with `errors`, then `done`.
   */
  subscribe(operation: Operation, context: LinkContext<Who>): AsyncIterableIterator<ExecutionResult>
  /**
   * Opens stored bytes at a path that an operation has returned. The signed path names the owner; the caller does not.
   * No process on the way holds all bytes, and the other side reads no faster than `body` is read.
   * @throws {KisError} the path has expired, or its bytes are gone
   */
  openBytes(request: ByteRequest, context: LinkContext<Who>): Promise<ByteResponse>
}

/** An operation whose types the compiler derives from its text, with its variables. */
interface TypedOperation<Data, Variables> {
  readonly query: OperationText<Data, Variables>
  readonly variables: Variables & Readonly<Record<string, unknown>>
}

/**
 * Executes the operation and returns `data`.
 * @throws {KisError} the first error of the result
 */
export async function request<Data, Variables, Who = Caller | null>(
  link: Link<Who>,
  operation: TypedOperation<Data, Variables>,
  context: LinkContext<Who>,
): Promise<Data> {
  const { data, errors } = await link.execute(operation, context)
  if (errors?.length) throw KisError.fromGraphQL(errors[0]!)
  if (!data) throw new ServiceUnavailable('A part of the service')
  return data as Data
}
