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
import { endableIterator } from '../process/endable-iterator.ts'
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
      let events: Promise<AsyncIterator<ExecutionResult>> | undefined
      let opened: AsyncIterator<ExecutionResult> | undefined
      let ended = false
      const start = async () => {
        const document = documents.of(operation.query)
        if (!('kind' in document)) return single({ errors: document })
        const result = await openEvents(toExecutionArguments(subgraph, document, operation, context))
        if (!('next' in result)) return single(result)
        documents.keep(operation.query, document, {}, context.caller)
        return result
      }
      return endableIterator<ExecutionResult>(
        async () => {
          events ??= start()
          let item: IteratorResult<ExecutionResult>
          try {
            opened ??= await events
            // It ended while the subscription was being created. A first `next()` would begin work that nobody wants.
            if (ended) return { done: true, value: undefined }
            item = await opened.next()
          } catch (error) {
            // An error that a source throws between events is the stream's last result, as in GraphQL over WebSocket.
            opened = single({ errors: [] }, true)
            events = Promise.resolve(opened)
            const thrown = new GraphQLError(error instanceof Error ? error.message : String(error), { originalError: error as Error })
            return { done: false, value: format({ errors: [thrown] }, context) }
          }
          return item.done ? { done: true, value: undefined } : { done: false, value: format(item.value, context) }
        },
        // Even while the subscription is being created: its source is ended as soon as it exists.
        () => {
          ended = true
          events?.then((iterator) => iterator.return?.()).catch(() => undefined)
        },
        context.signal,
      )
    },
  }
}

type Arguments = ReturnType<typeof toExecutionArguments>

/** As `subscribe` of graphql-js, but events are read by a compiled operation, or executed with a different one. */
async function openEvents(given: Arguments): Promise<AsyncIterator<ExecutionResult> | ExecutionResult> {
  const stream = await createSourceEventStream(given)
  if (!(Symbol.asyncIterator in stream)) return stream
  const source = stream[Symbol.asyncIterator]()
  const { document, toVariables: variablesOf, read } = getEventOperation(given.schema, given.document)
  const forEvents = { ...given, document, variableValues: variablesOf(given.variableValues) }
  return {
    async next() {
      const { done, value } = await source.next()
      if (done) return { done, value: undefined }
      const data = read?.(value, given.contextValue)
      if (data) return { done: false, value: { data } }
      try {
        return { done: false, value: await execute({ ...forEvents, rootValue: value }) }
      } catch (error) {
        // A defect. The source must not go on without a reader.
        await source.return?.()
        throw error
      }
    },
    async return() {
      await source.return?.()
      return { done: true, value: undefined }
    },
  }
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

function single(result: ExecutionResult, over = false): AsyncIterator<ExecutionResult> {
  let given = over
  return {
    next: async () => {
      if (given) return { done: true, value: undefined }
      given = true
      return { done: false, value: result }
    },
  }
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
