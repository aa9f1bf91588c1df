import { GraphQLError } from 'graphql'
import { type ErrorCode, toErrorCode } from '../schema/errors.ts'
import { cut, isAbort, KisError } from '../subgraphs/common/errors.ts'
import type { Log } from '../subgraphs/common/process/log.ts'
import { PERSISTED_QUERY_NOT_FOUND } from './persisted-operations.ts'

/** Turns an error into one that may leave the gateway, for every transport. Masking twice changes nothing. */
export type Mask = (error: unknown, requestId: string) => GraphQLError

/** Apollo's codes for a wrong request. None is a code of ours. */
const COMPLAINTS: ReadonlySet<unknown> = new Set([
  'BAD_REQUEST',
  'BAD_USER_INPUT',
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'INVALID_GRAPHQL',
  'OPERATION_RESOLUTION_FAILURE',
])
/** The text of graphql-js, with its typo `that`. */
const TOO_MANY_TOKENS = /^Syntax Error: Document contains more that \d+ tokens/

export function createMask(log: Log): Mask {
  return (error, requestId) => {
    const { message: text = 'The service failed to answer.', path = null, extensions = {} } = (error ?? {}) as Partial<GraphQLError>
    // The message may quote the request, and be as long.
    const message = cut(text)
    if (toErrorCode(extensions.code)) {
      const known = KisError.fromGraphQL({ message, extensions }).extensions
      return new GraphQLError(message, { path, extensions: { ...known, param: known.param && cut(known.param) } })
    }
    if (error instanceof GraphQLError) {
      if (extensions.code === PERSISTED_QUERY_NOT_FOUND) {
        return new GraphQLError(message, {
          extensions: { ...new KisError('invalid_request', message).extensions, code: PERSISTED_QUERY_NOT_FOUND },
        })
      }
      if (TOO_MANY_TOKENS.test(message)) return complaint('operation_too_complex', message, path)
      if (COMPLAINTS.has(extensions.code) || (!extensions.code && isOfGraphql(error))) return complaint('invalid_request', message, path)
    }
    if (!isAbort(error)) log.error({ requestId, err: error, path: path?.join('.') }, 'defect behind the gateway')
    const masked = new KisError('internal', 'The service failed to answer; the request id leads to the cause in its log.')
    return new GraphQLError(masked.message, { path, extensions: { ...masked.extensions } })
  }
}

function complaint(code: ErrorCode, message: string, path: GraphQLError['path'] | null): GraphQLError {
  return new GraphQLError(message, { path: path ?? null, extensions: { ...new KisError(code, message).extensions } })
}

/**
 * True for an error of graphql-js itself about an operation or its variables: it has no path, and no cause but itself.
 * What a resolver throws has one of them.
 */
function isOfGraphql({ path, originalError }: GraphQLError): boolean {
  return !path && (!originalError || originalError instanceof GraphQLError)
}
