import { GraphQLError, type GraphQLFormattedError } from 'graphql'
import { toErrorCode } from '../../schema/errors.ts'
import { cut, isAbort, KisError } from '../../subgraphs/common/errors.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'

/**
 * Formats an error that leaves a subgraph. A KisError keeps its code and extensions; GraphQL's own errors about the
 * operation or its variables become `INVALID_REQUEST`. Everything else is a defect, whose details stay in the log,
 * unless the caller is gone: then nobody reads the result.
 */
export function formatError(error: GraphQLError, log: Log, requestId: string): GraphQLFormattedError {
  const where = error.path ? { path: error.path } : {}
  if (toErrorCode(error.extensions.code)) return { message: error.message, ...where, extensions: error.extensions }
  const cause = error.originalError
  if (!cause || (cause instanceof GraphQLError && !error.path)) {
    const message = cut(error.message)
    return { message, ...where, extensions: { ...new KisError('invalid_request', message).extensions } }
  }
  if (!isAbort(cause)) log.error({ requestId, err: cause, path: error.path?.join('.') }, 'defect in a resolver')
  const masked = new KisError('internal', 'The service failed to process the request. Its log has the cause under the request id.')
  return { message: masked.message, ...where, extensions: { ...masked.extensions } }
}

/** Formats anything that was thrown outside of an operation, as `formatError` formats the errors of operations. */
export function formatThrown(error: unknown, log: Log, requestId: string): GraphQLFormattedError {
  const originalError = error instanceof Error ? error : new Error(String(error))
  return formatError(new GraphQLError(originalError.message, { originalError }), log, requestId)
}

/** Returns the response to a request that never became an operation. */
export function graphqlBody({ message, extensions }: KisError) {
  return { errors: [{ message, extensions }] }
}
