import type { ExecutionResult } from 'graphql'
import type { OperationText } from '../../../schema/operations.ts'
import { KisError, ServiceUnavailable } from '../errors.ts'
import type { Caller } from '../identity/principal.ts'

/** One GraphQL operation as text; links cache what they derive from the text, so texts should be constants. */
export interface Operation {
  readonly query: string
  readonly variables?: Readonly<Record<string, unknown>> | undefined
  readonly operationName?: string | undefined
}

export interface LinkContext<Who = Caller | null> {
  /** Who asks. A link to a subgraph takes a caller, the link to the gateway an API key as the client sent it. */
  readonly caller: Who
  /** `req_…`; follows the request through every process into logs and usage records. */
  readonly requestId: string
  /** Ends the operation: an aborted `execute` rejects, an aborted subscription ends, and what serves them is told at once. */
  readonly signal: AbortSignal
}

/**
 * The only way across a service's border. `localLink` runs in the process, `remoteLink` over HTTP keep-alive and graphql-ws;
 * both pass `test/contract/link.ts`. Results are plain JSON values; an expected failure is in `errors` with the extensions of
 * `schema/errors.ts`.
 */
export interface Link<Who = Caller | null> {
  /** @throws {ServiceUnavailable} no answer came. Nothing is repeated by the link: the operation may have run. */
  execute(operation: Operation, context: LinkContext<Who>): Promise<ExecutionResult>
  /**
   * Gives the iterator at once; the operation starts with the first `next()`. `return()` ends the operation at once, also while a
   * `next()` is pending, and that `next()` then gives `done`. A failure before or between events is one result with `errors`, then `done`.
   */
  subscribe(operation: Operation, context: LinkContext<Who>): AsyncIterableIterator<ExecutionResult>
}

/** An operation whose text the compiler knows, with its variables. */
export interface TypedOperation<Data, Variables> {
  readonly query: OperationText<Data, Variables>
  readonly variables: Variables & Readonly<Record<string, unknown>>
}

/** Executes and gives `data`. @throws {KisError} the first error of the answer. */
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
