import type { OperationText } from '../../schema/operations.ts'
import type { Operation } from '../../subgraphs/common/link/link.ts'
import { errorBody, toKisError } from '../http/errors.ts'
import type { ParamNames } from '../http/param-names.ts'
import type { Call } from '../http/route.ts'

/**
 * Sends a run's events as they come, named by their type, with their cursor as ID if the caller requests resumption.
 * @throws {KisError} the request failed before the first event, so nothing has been sent
 */
export async function streamEvents<Data>(
  { subscribe, context, eventStream, log }: Call,
  operation: Operation & { readonly query: OperationText<Readonly<Record<string, Data>>, never> },
  toEvent: (data: Data) => { readonly type: string; readonly cursor: string },
  names: ParamNames,
): Promise<void> {
  const events = subscribe(operation, (data) => toEvent(Object.values(data)[0]!), { names })
  using stream = eventStream()
  try {
    for await (const event of events) await stream.sendTyped(event)
    // A run that ended before the cursor has no more events.
    if (!stream.isOpen) await stream.sendTyped()
  } catch (error) {
    if (!stream.isOpen) throw error
    await stream.sendTyped({ type: 'error', ...errorBody(toKisError(error, log, context.requestId)) })
  }
  stream.end()
}
