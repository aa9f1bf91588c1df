import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLSchema,
  parse,
  validate,
} from 'graphql'
import { isAbort, KisError } from '../../subgraphs/common/errors.ts'
import type { Link, LinkContext, Operation } from '../../subgraphs/common/link/link.ts'
import type { Subgraph } from '../../subgraphs/common/link/subgraph.ts'
import { documentWeight, WeighedCache } from '../../subgraphs/common/link/weighed-cache.ts'
import { changedSteps, endableIterator, openedLater } from '../../subgraphs/common/process/endable-iterator.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { formatError, formatThrown } from './graphql-errors.ts'

/**
 * Bytes of one subgraph's operations kept parsed and validated. The gateway's plans and the services' constants need
 * far less.
 */
const MAX_CACHED_BYTES = 32 * 1024 * 1024
/** Characters of an operation's text. The gateway accepts at most 262,144, and its plans may be longer. */
export const MAX_TEXT_CHARACTERS = 1_048_576

/** A link to a subgraph of this process. */
export function localLink(subgraph: Subgraph, log: Log): Link {
  const operations = createOperationCache(subgraph.schema)
  const format = (result: ExecutionResult, context: LinkContext): ExecutionResult =>
    result.errors ? { ...result, errors: result.errors.map((error) => formatError(error, log, context.requestId) as GraphQLError) } : result

  return {
    async execute(operation, context) {
      context.signal.throwIfAborted()
      const document = operations.of(operation.query)
      if (!('kind' in document)) return format({ errors: document }, context)
      const result = await execute(argumentsOf(subgraph, document, operation, context))
      operations.cache(operation.query, document, result, context.caller)
      return format(result, context)
    },

    subscribe(operation, context) {
      const formatted = (result: ExecutionResult) => format(result, context)
      const thrown = (error: unknown) => {
        const asError = new GraphQLError(error instanceof Error ? error.message : String(error), { originalError: error as Error })
        return formatted({ errors: [error instanceof GraphQLError ? error : asError] })
      }
      const open = async () => {
        const document = operations.of(operation.query)
        if (!('kind' in document)) return single(formatted({ errors: document }))
        try {
          const args = argumentsOf(subgraph, document, operation, context)
          const source = await createSourceEventStream(args)
          if (!(Symbol.asyncIterator in source)) return single(formatted(source))
          operations.cache(operation.query, document, {}, context.caller)
          return toResults(source[Symbol.asyncIterator]() as AsyncIterator<unknown, undefined>, args, formatted, thrown)
        } catch (error) {
          return single(thrown(error))
        }
      }
      return openedLater(open, context.signal)
    },

    async openBytes(request, context) {
      context.signal.throwIfAborted()
      return subgraph.openBytes!(request, context).catch((error: unknown) => {
        if (context.signal.aborted && isAbort(error)) throw error
        throw KisError.fromGraphQL(formatThrown(error, log, context.requestId))
      })
    },
  }
}

/**
 * The events of a source as results. An error that the source throws is the last result, as in GraphQL over WebSocket.
 */
function toResults(
  source: AsyncIterator<unknown, undefined>,
  args: ExecutionArgs,
  format: (result: ExecutionResult) => ExecutionResult,
  thrown: (error: unknown) => ExecutionResult,
): AsyncIterableIterator<ExecutionResult, undefined> {
  return changedSteps<unknown, ExecutionResult>(
    source,
    (step) => {
      if (step.done) return step
      const result = execute({ ...args, rootValue: step.value })
      if (!(result instanceof Promise)) return { done: false, value: format(result) }
      return result.then((later) => ({ done: false, value: format(later) }))
    },
    (error) => ({ done: false, value: thrown(error) }),
  )
}

function argumentsOf(
  subgraph: Subgraph,
  document: DocumentNode,
  { operationName, variables = {} }: Operation,
  context: LinkContext,
): ExecutionArgs {
  const contextValue = subgraph.toResolverContext(context)
  return { schema: subgraph.schema, document, contextValue, variableValues: variables, operationName: operationName ?? null }
}

function single(result: ExecutionResult): AsyncIterableIterator<ExecutionResult, undefined> {
  let isDone = false
  const next = async (): Promise<IteratorResult<ExecutionResult, undefined>> => {
    if (isDone) return { done: true, value: undefined }
    isDone = true
    return { done: false, value: result }
  }
  return endableIterator(next, () => {})
}

interface OperationCache {
  /** Gives the operation ready to run, or what is wrong with its text. */
  of(query: string): DocumentNode | readonly GraphQLError[]
  /** Keeps it if it ran without an error, so that failing operations take no memory. */
  cache(query: string, document: DocumentNode, result: ExecutionResult, caller: LinkContext['caller']): void
}

function createOperationCache(schema: GraphQLSchema): OperationCache {
  const cached = new WeighedCache<DocumentNode>(MAX_CACHED_BYTES)
  return {
    of: (query) => cached.get(query) ?? check(schema, query),
    cache(query, document, { errors }, caller) {
      if (errors?.length || cached.get(query) === document) return
      cached.set(query, document, documentWeight(document, query), caller && 'organizationId' in caller ? caller.organizationId : '')
    },
  }
}

function check(schema: GraphQLSchema, query: string): DocumentNode | readonly GraphQLError[] {
  if (query.length > MAX_TEXT_CHARACTERS) {
    const { message, extensions } = new KisError(
      'operation_too_complex',
      `The text of an operation has at most ${MAX_TEXT_CHARACTERS} characters.`,
    )
    return [new GraphQLError(message, { extensions: { ...extensions } })]
  }
  try {
    const document = parse(query, { noLocation: true })
    const errors = validate(schema, document)
    return errors.length > 0 ? errors : document
  } catch (error) {
    // `validate` itself throws on `@include` at the root of a subscription (SingleFieldSubscriptionsRule of graphql-js
    // 16).
    return [
      error instanceof GraphQLError
        ? error
        : new GraphQLError('The operation cannot be validated.', { extensions: { ...new KisError('invalid_request', '').extensions } }),
    ]
  }
}
