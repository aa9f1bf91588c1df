import { GraphQLError } from 'graphql'
import { toErrorCode } from '../schema/errors.ts'
import { cut, isAbort, KisError } from '../subgraphs/common/errors.ts'
import type { Log } from '../subgraphs/common/process/log.ts'
import { PERSISTED_QUERY_NOT_FOUND } from './persisted-operations.ts'

/** Converts an error into one that may leave the gateway, for every transport. Masking twice changes nothing. */
export type Mask = (error: unknown, requestId: string) => GraphQLError

/** Apollo's codes for an invalid request that are not codes of ours. */
const COMPLAINTS: ReadonlySet<unknown> = new Set(['BAD_REQUEST', 'BAD_USER_INPUT', 'INVALID_GRAPHQL', 'OPERATION_RESOLUTION_FAILURE'])
/** The message of graphql-js, with its typo `that`. */
const TOO_MANY_TOKENS = /^Syntax Error: Document contains more that \d+ tokens/

/** Creates the mask. It logs each defect, whose details do not leave the gateway. */
export function createMask(log: Log): Mask {
  return (error, requestId) => {
    const {
      message: text = 'The service failed to process the request.',
      path = null,
      source,
      positions,
      extensions = {},
    } = (error ?? {}) as Partial<GraphQLError>
    const toGraphQLError = (message: string, extensions: object) =>
      new GraphQLError(message, { path, source, positions, extensions: { ...extensions } })
    // The message may quote the request and be as long as it.
    const message = cut(text)
    if (TOO_MANY_TOKENS.test(message)) return toGraphQLError(message, new KisError('operation_too_complex', message).extensions)
    if (toErrorCode(extensions.code)) {
      const error = KisError.fromGraphQL({ message, extensions })
      if (path && error.code === 'service_unavailable')
        return toGraphQLError(message, new KisError('part_unavailable', message, { retryAfterMs: error.retryAfterMs }).extensions)
      const known = error.extensions
      return toGraphQLError(message, { ...known, param: known.param && cut(known.param) })
    }
    if (error instanceof GraphQLError) {
      const invalid = new KisError('invalid_request', message).extensions
      if (extensions.code === PERSISTED_QUERY_NOT_FOUND) return toGraphQLError(message, { ...invalid, code: PERSISTED_QUERY_NOT_FOUND })
      if (COMPLAINTS.has(extensions.code) || (!extensions.code && isOfGraphql(error))) return toGraphQLError(message, invalid)
    }
    if (!isAbort(error)) log.error({ requestId, err: error, path: path?.join('.') }, 'defect behind the gateway')
    const masked = new KisError('internal', 'The service failed to process the request. Its log has the cause under the request id.')
    return toGraphQLError(masked.message, masked.extensions)
  }
}

/**
 * Whether the error is one of graphql-js itself about an operation or its variables: it has no path and no cause but
 * itself. An error of a resolver has one of them.
 */
function isOfGraphql({ path, originalError }: GraphQLError): boolean {
  return !path && (!originalError || originalError instanceof GraphQLError)
}
