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
import { KisError } from '../errors.ts'
import { changedSteps, endableIterator, openedLater } from '../process/endable-iterator.ts'
import type { Log } from '../process/log.ts'
import { documentWeight } from './document-weight.ts'
import { type EventOperation, eventOperation } from './events/event-operation.ts'
import { type EventReader, eventReader } from './events/event-reader.ts'
import { formatError } from './graphql-errors.ts'
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

/** A link to a subgraph of this process. */
export function localLink(subgraph: Subgraph, log: Log): Link {
  const documents = keptDocuments(subgraph.schema)
  const format = (result: ExecutionResult, context: LinkContext): ExecutionResult =>
    result.errors ? { ...result, errors: result.errors.map((error) => formatError(error, log, context.requestId) as GraphQLError) } : result

  return {
    async execute(operation, context) {
      context.signal.throwIfAborted()
      const document = documents.of(operation.query)
      if (!('kind' in document)) return format({ errors: document }, context)
      const result = await execute(toExecutionArguments(subgraph, document, operation, context))
      documents.keep(operation.query, document, result, context.caller)
      return format(result, context)
    },

    subscribe(operation, context) {
      const thrown = (error: unknown) => {
        const asError = new GraphQLError(error instanceof Error ? error.message : String(error), { originalError: error as Error })
        return format({ errors: [asError] }, context)
      }
      const open = async () => {
        const document = documents.of(operation.query)
        if (!('kind' in document)) return single(format({ errors: document }, context))
        try {
          const given = toExecutionArguments(subgraph, document, operation, context)
          const source = await createSourceEventStream(given)
          if (!(Symbol.asyncIterator in source)) return single(format(source, context))
          documents.keep(operation.query, document, {}, context.caller)
          return toResults(source[Symbol.asyncIterator](), given, (result) => format(result, context), thrown)
        } catch (error) {
          return single(thrown(error))
        }
      }
      return openedLater(open, context.signal)
    },
  }
}

type Arguments = ReturnType<typeof toExecutionArguments>

/**
 * The events of a source as results: read by a compiled operation, or executed with one of their own. An error that the
 * source throws is the last result, as in GraphQL over WebSocket.
 */
function toResults(
  source: AsyncIterator<unknown, undefined>,
  given: Arguments,
  format: (result: ExecutionResult) => ExecutionResult,
  thrown: (error: unknown) => ExecutionResult,
): AsyncIterableIterator<ExecutionResult, undefined> {
  const { document, toVariables: variablesOf, read } = getEventOperation(given.schema, given.document)
  const forEvents = { ...given, document, variableValues: variablesOf(given.variableValues) }
  const executed = async (rootValue: unknown) => {
    try {
      return { done: false, value: format(await execute({ ...forEvents, rootValue })) } as const
    } catch (error) {
      // A defect. The source must not go on without a reader.
      await source.return?.()
      return { done: false, value: thrown(error) } as const
    }
  }
  return changedSteps<unknown, ExecutionResult>(
    source,
    (step) => {
      if (step.done) return step
      const data = read?.(step.value, given.contextValue)
      return data ? { done: false, value: { data } } : executed(step.value)
    },
    (error) => ({ done: false, value: thrown(error) }),
  )
}

/** Each document belongs to one schema. */
const eventOperations = new WeakMap<DocumentNode, EventOperation & { readonly read: EventReader | null }>()

function getEventOperation(schema: GraphQLSchema, document: DocumentNode) {
  let operation = eventOperations.get(document)
  if (!operation) {
    operation = { ...eventOperation(document), read: eventReader(schema, document) }
    eventOperations.set(document, operation)
  }
  return operation
}

function toExecutionArguments(subgraph: Subgraph, document: DocumentNode, operation: Operation, context: LinkContext) {
  return {
    schema: subgraph.schema,
    document,
    contextValue: subgraph.toResolverContext(context),
    variableValues: operation.variables ?? {},
    operationName: operation.operationName ?? null,
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

interface KeptDocuments {
  /** Gives the text parsed and validated, or what is wrong with it. */
  of(query: string): DocumentNode | readonly GraphQLError[]
  /** Keeps it if it ran without an error, so that failing operations take no memory. */
  keep(query: string, document: DocumentNode, result: ExecutionResult, caller: LinkContext['caller']): void
}

function keptDocuments(schema: GraphQLSchema): KeptDocuments {
  const kept = new WeighedCache<DocumentNode>(MAX_KEPT_BYTES)
  return {
    of: (query) => kept.get(query) ?? check(schema, query),
    keep(query, document, { errors }, caller) {
      if (errors?.length || kept.get(query) === document) return
      kept.set(query, document, documentWeight(document, query), caller && 'organizationId' in caller ? caller.organizationId : '')
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
    return errors.length ? errors : document
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
