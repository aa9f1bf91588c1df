import type { ExecutionResult } from 'graphql'
import { KisError, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import type { Operation } from '../../subgraphs/common/link/link.ts'
import { errorBody, toKisError } from '../http/errors.ts'
import type { ParamNames } from '../http/param-names.ts'
import { type Call, inRestNames } from '../http/route.ts'

/**
 * Sends a run's events as they come, named by their type, with their cursor as id if the caller asks for resumption.
 * @throws {KisError} the request failed before the first event, so nothing has been sent
 */
export async function streamEvents<Data>(
  { subscribe, context, eventStream, log }: Call,
  operation: Operation,
  toEvent: (data: Data) => { readonly type: string; readonly cursor: string },
  names: ParamNames,
): Promise<void> {
  const events = subscribe(operation)
  context.signal.addEventListener('abort', () => void events.return?.(), { once: true })
  using stream = eventStream()
  try {
    for await (const result of events) await stream.sendTyped(toEvent(readEvent<Data>(result, names)))
    context.signal.throwIfAborted()
    // A run that ended before the cursor has no more events.
    if (!stream.isOpen) await stream.sendTyped()
  } catch (error) {
    if (!stream.isOpen) throw error
    await stream.sendTyped({ type: 'error', ...errorBody(toKisError(error, log, context.requestId)) })
  }
  stream.end()
}

function readEvent<Data>({ data, errors }: ExecutionResult, names: ParamNames): Data {
  if (errors?.length) throw inRestNames(KisError.fromGraphQL(errors[0]!), names)
  if (!data) throw new ServiceUnavailable('A part of the service')
  return Object.values(data as Record<string, Data>)[0]!
}
