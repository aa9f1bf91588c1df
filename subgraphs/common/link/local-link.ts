import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLSchema,
  parse,
  validate,
} from 'graphql'
import { isAbort, KisError } from '../errors.ts'
import { changedSteps, endableIterator, openedLater } from '../process/endable-iterator.ts'
import type { Log } from '../process/log.ts'
import { documentWeight, FIELD_BYTES } from './document-weight.ts'
import { type BoundOperation, type CompiledOperation, compileOperation } from './execution/compiled-operation.ts'
import { compileVariables } from './execution/input-values.ts'
import { type PlainOperation, plainOperation } from './execution/plain-operation.ts'
import { formatError, formatThrown } from './graphql-errors.ts'
import type { Link, LinkContext, Operation } from './link.ts'
import type { Subgraph } from './subgraph.ts'
import { WeighedCache } from './weighed-cache.ts'

/**
 * Bytes of one subgraph's operations kept parsed and validated. The gateway's plans and the services' constants need
 * far less.
 */
const MAX_KEPT_BYTES = 32 * 1024 * 1024
/** Characters of an operation's text. The gateway accepts at most 262,144, and its plans may be longer. */
export const MAX_TEXT_CHARACTERS = 1_048_576

interface Compiled {
  readonly name: string | undefined
  readonly fieldCount: number
  readonly bind: CompiledOperation
  readonly coerce: ReturnType<typeof compileVariables>
}

/** An operation that was parsed and validated. */
interface Executable {
  readonly document: DocumentNode
  /** Undefined: graphql-js executes it. */
  readonly compiled: Compiled | undefined
}

/** A link to a subgraph of this process. */
export function localLink(subgraph: Subgraph, log: Log): Link {
  const operations = keptOperations(subgraph.schema)
  const format = (result: ExecutionResult, context: LinkContext): ExecutionResult =>
    result.errors ? { ...result, errors: result.errors.map((error) => formatError(error, log, context.requestId) as GraphQLError) } : result

  return {
    async execute(operation, context) {
      context.signal.throwIfAborted()
      const executable = operations.of(operation.query)
      if (!('document' in executable)) return format({ errors: executable }, context)
      const bound = bind(subgraph, executable, operation, context)
      if (!('execute' in bound)) return format(bound, context)
      const result = await bound.execute()
      operations.keep(operation.query, executable, result, context.caller)
      return format(result, context)
    },

    subscribe(operation, context) {
      const formatted = (result: ExecutionResult) => format(result, context)
      const thrown = (error: unknown) => {
        const asError = new GraphQLError(error instanceof Error ? error.message : String(error), { originalError: error as Error })
        return formatted({ errors: [error instanceof GraphQLError ? error : asError] })
      }
      const open = async () => {
        const executable = operations.of(operation.query)
        if (!('document' in executable)) return single(formatted({ errors: executable }))
        try {
          const bound = bind(subgraph, executable, operation, context)
          if (!('execute' in bound)) return single(formatted(bound))
          const source = await bound.subscribe()
          operations.keep(operation.query, executable, {}, context.caller)
          return toResults(source[Symbol.asyncIterator]() as AsyncIterator<unknown, undefined>, bound, formatted, thrown)
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
  { execute: executeEvent }: BoundOperation,
  format: (result: ExecutionResult) => ExecutionResult,
  thrown: (error: unknown) => ExecutionResult,
): AsyncIterableIterator<ExecutionResult, undefined> {
  return changedSteps<unknown, ExecutionResult>(
    source,
    (step) => {
      if (step.done) return step
      const result = executeEvent(step.value)
      if (!(result instanceof Promise)) return { done: false, value: format(result) }
      return result.then((later) => ({ done: false, value: format(later) }))
    },
    (error) => ({ done: false, value: thrown(error) }),
  )
}

function bind(
  subgraph: Subgraph,
  { document, compiled }: Executable,
  { operationName, variables: variableValues = {} }: Operation,
  context: LinkContext,
): BoundOperation | ExecutionResult {
  const contextValue = subgraph.toResolverContext(context)
  if (compiled && (!operationName || operationName === compiled.name)) {
    const variables = compiled.coerce(variableValues)
    return 'errors' in variables ? variables : compiled.bind(contextValue, variables.coerced)
  }
  const given = { schema: subgraph.schema, document, contextValue, variableValues, operationName: operationName ?? null }
  return {
    execute: (rootValue) => execute({ ...given, rootValue }),
    async subscribe() {
      const source = await createSourceEventStream(given)
      if (Symbol.asyncIterator in source) return source
      throw source.errors![0]!
    },
  }
}

function single(result: ExecutionResult): AsyncIterableIterator<ExecutionResult, undefined> {
  let given = false
  const next = async (): Promise<IteratorResult<ExecutionResult, undefined>> => {
    if (given) return { done: true, value: undefined }
    given = true
    return { done: false, value: result }
  }
  return endableIterator(next, () => {})
}

interface KeptOperations {
  /** Gives the operation ready to run, or what is wrong with its text. */
  of(query: string): Executable | readonly GraphQLError[]
  /** Keeps it if it ran without an error, so that failing operations take no memory. */
  keep(query: string, executable: Executable, result: ExecutionResult, caller: LinkContext['caller']): void
}

function keptOperations(schema: GraphQLSchema): KeptOperations {
  const kept = new WeighedCache<Executable>(MAX_KEPT_BYTES)
  return {
    of: (query) => kept.get(query) ?? check(schema, query),
    keep(query, executable, { errors }, caller) {
      if (errors?.length || kept.get(query) === executable) return
      const { document, compiled } = executable
      const weight = documentWeight(document, query) + (compiled?.fieldCount ?? 0) * FIELD_BYTES
      kept.set(query, executable, weight, caller && 'organizationId' in caller ? caller.organizationId : '')
    },
  }
}

function check(schema: GraphQLSchema, query: string): Executable | readonly GraphQLError[] {
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
    if (errors.length > 0) return errors
    return { document, compiled: compile(schema, plainOperation(document)) }
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

function compile(schema: GraphQLSchema, plain: PlainOperation | null): Compiled | undefined {
  if (!plain) return undefined
  const { operation, fieldCount } = plain
  return { name: operation.name?.value, fieldCount, bind: compileOperation(schema, plain), coerce: compileVariables(schema, operation) }
}
