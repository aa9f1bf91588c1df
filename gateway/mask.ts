import { GraphQLError } from 'graphql'
import { type ErrorCode, errorCodeOf } from '../schema/errors.ts'
import { isAbort, KisError } from '../subgraphs/common/errors.ts'
import type { Log } from '../subgraphs/common/log.ts'
import { PERSISTED_QUERY_NOT_FOUND } from './persisted-operations.ts'

/** An error as it leaves the gateway, whichever door it leaves by. Repeating it changes nothing. */
export type Mask = (error: unknown, requestId: string) => GraphQLError

/** Codes by which Apollo says that the request is wrong, none of which is in the closed set. */
const COMPLAINTS: ReadonlySet<unknown> = new Set([
  'BAD_REQUEST',
  'BAD_USER_INPUT',
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'INVALID_GRAPHQL',
  'OPERATION_RESOLUTION_FAILURE',
])
/** As graphql-js writes it, `that` included. */
const TOO_MANY_TOKENS = /^Syntax Error: Document contains more that \d+ tokens/

/** `suggestions`: whether complaints may say "Did you mean …?", which tells names of the schema. */
export function createMask(log: Log, suggestions: boolean): Mask {
  function complaint(code: ErrorCode, { message, path }: GraphQLError): GraphQLError {
    const text = suggestions ? message : message.replace(/ ?Did you mean .+\?$/s, '')
    return new GraphQLError(text, { path: path ?? null, extensions: { ...new KisError(code, text).extensions } })
  }

  return (error, requestId) => {
    const { message = 'The service failed to answer.', path = null, extensions = {} } = (error ?? {}) as Partial<GraphQLError>
    if (errorCodeOf(extensions.code)) {
      return new GraphQLError(message, { path, extensions: { ...KisError.fromGraphQL({ message, extensions }).extensions } })
    }
    if (error instanceof GraphQLError) {
      if (extensions.code === PERSISTED_QUERY_NOT_FOUND) {
        return new GraphQLError(message, {
          extensions: { ...new KisError('invalid_request', message).extensions, code: PERSISTED_QUERY_NOT_FOUND },
        })
      }
      if (TOO_MANY_TOKENS.test(message)) return complaint('operation_too_complex', error)
      if (COMPLAINTS.has(extensions.code) || (!extensions.code && isOfGraphql(error))) return complaint('invalid_request', error)
    }
    if (!isAbort(error)) log.error({ requestId, err: error, path: path?.join('.') }, 'defect behind the gateway')
    const masked = new KisError('internal', 'The service failed to answer; the request id leads to the cause in its log.')
    return new GraphQLError(masked.message, { path, extensions: { ...masked.extensions } })
  }
}

/** What graphql-js says of an operation or its variables has no path, and no cause but itself; what a resolver failed at has one of them. */
function isOfGraphql({ path, originalError }: GraphQLError): boolean {
  return !path && (!originalError || originalError instanceof GraphQLError)
}
