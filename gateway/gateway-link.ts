import type { Link, LinkContext, Operation } from '../subgraphs/common/link/link.ts'
import { openedLater } from '../subgraphs/common/process/endable-iterator.ts'
import type { OpenBytes } from './bytes.ts'
import type { Authenticator } from './keys/authenticate.ts'
import { type Operations, type Results, single } from './operations.ts'

/**
 * The gateway as a link for other parts of the process. The caller is the API key as the client sent it, or null when
 * it sent none.
 */
export function gatewayLink(operations: Operations, authenticator: Authenticator, openBytes: OpenBytes): Link<string | null> {
  /** Returns the operation with its caller, or the result that says why it may not run. */
  async function admit({ query, operationName }: Operation, { caller: credentials, requestId, signal, isCut }: LinkContext<string | null>) {
    try {
      const caller = await authenticator.getPrincipal(credentials, requestId)
      const prepared = operations.prepare(query, operationName, requestId)
      return 'document' in prepared
        ? { prepared, context: { caller, requestId, signal, isCut, credentials: credentials ?? '' } }
        : { refused: prepared }
    } catch (error) {
      return { refused: operations.failed(error, requestId) }
    }
  }

  return {
    async execute(operation, context) {
      context.signal.throwIfAborted()
      const { prepared, context: ours, refused } = await admit(operation, context)
      return prepared ? operations.execute(prepared, operation.variables ?? {}, ours) : refused
    },

    subscribe(operation, context) {
      const start = async (): Promise<Results> => {
        const { prepared, context: ours, refused } = await admit(operation, context)
        return prepared ? operations.subscribe(prepared, operation.variables ?? {}, ours) : single(async () => refused)
      }
      return openedLater(start, context.signal)
    },

    openBytes,
  }
}
