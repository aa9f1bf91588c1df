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
import { endableIterator } from './endable-iterator.ts'
import { KisError } from './errors.ts'
import { type EventOperation, eventOperation } from './event-operation.ts'
import { formatError } from './graphql-errors.ts'
import type { Link, LinkContext, Operation } from './link.ts'
import type { Log } from './log.ts'
import { Lru } from './lru.ts'
import type { Subgraph } from './subgraph.ts'

/** Distinct operation texts of one subgraph that are kept parsed and checked; the gateway's plans and the services' constants are far fewer. */
const MAX_DOCUMENTS = 2_000

/** A link to a subgraph of this process. */
export function localLink(subgraph: Subgraph, log: Log): Link {
  const documentOf = documentCache(subgraph.schema)
  const format = (result: ExecutionResult, context: LinkContext): ExecutionResult =>
    result.errors ? { ...result, errors: result.errors.map((error) => formatError(error, log, context.requestId) as GraphQLError) } : result

  return {
    async execute(operation, context) {
      context.signal.throwIfAborted()
      const document = documentOf(operation.query)
      if (Array.isArray(document)) return format({ errors: document }, context)
      return format(await execute(argumentsOf(subgraph, document as DocumentNode, operation, context)), context)
    },

    subscribe(operation, context) {
      let events: Promise<AsyncIterator<ExecutionResult>> | undefined
      let ended = false
      const start = async () => {
        const document = documentOf(operation.query)
        const result = Array.isArray(document)
          ? { errors: document }
          : await eventsOf(argumentsOf(subgraph, document as DocumentNode, operation, context))
        return 'next' in result ? result : single(result)
      }
      return endableIterator<ExecutionResult>(
        async () => {
          events ??= start()
          let item: IteratorResult<ExecutionResult>
          try {
            const iterator = await events
            // Ended while the subscription was being made: a first `next()` would begin the work that nobody wants.
            if (ended) return { done: true, value: undefined }
            item = await iterator.next()
          } catch (error) {
            // What a source throws between events is the stream's last result, as GraphQL over WebSocket has it.
            events = Promise.resolve(single({ errors: [] }, true))
            const thrown = new GraphQLError(error instanceof Error ? error.message : String(error), { originalError: error as Error })
            return { done: false, value: format({ errors: [thrown] }, context) }
          }
          return item.done ? { done: true, value: undefined } : { done: false, value: format(item.value, context) }
        },
        // Also when the subscription is still being made: what comes of it is ended as soon as it is there.
        () => {
          ended = true
          events?.then((iterator) => iterator.return?.()).catch(() => undefined)
        },
        context.signal,
      )
    },
  }
}

type Arguments = ReturnType<typeof argumentsOf>

/** As the `subscribe` of graphql-js, but for what each event is executed with. */
async function eventsOf(given: Arguments): Promise<AsyncIterator<ExecutionResult> | ExecutionResult> {
  const stream = await createSourceEventStream(given)
  if (!(Symbol.asyncIterator in stream)) return stream
  const source = stream[Symbol.asyncIterator]()
  const { document, variablesOf } = eventOperationOf(given.document)
  const forEvents = { ...given, document, variableValues: variablesOf(given.variableValues) }
  return {
    async next() {
      const { done, value } = await source.next()
      if (done) return { done, value: undefined }
      try {
        return { done: false, value: await execute({ ...forEvents, rootValue: value }) }
      } catch (error) {
        // A defect; the source must not go on for nobody.
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

const eventOperations = new WeakMap<DocumentNode, EventOperation>()

function eventOperationOf(document: DocumentNode): EventOperation {
  let operation = eventOperations.get(document)
  if (!operation) {
    operation = eventOperation(document)
    eventOperations.set(document, operation)
  }
  return operation
}

function argumentsOf(subgraph: Subgraph, document: DocumentNode, operation: Operation, context: LinkContext) {
  return {
    schema: subgraph.schema,
    document,
    contextValue: subgraph.contextOf(context),
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

/** Parses and validates each text once; gives the errors of a text that is not valid. */
export function documentCache(schema: GraphQLSchema): (query: string) => DocumentNode | readonly GraphQLError[] {
  const documents = new Lru<string, DocumentNode | readonly GraphQLError[]>(MAX_DOCUMENTS)
  return (query) => {
    let document = documents.get(query)
    if (!document) {
      document = check(schema, query)
      documents.set(query, document)
    }
    return document
  }
}

function check(schema: GraphQLSchema, query: string): DocumentNode | readonly GraphQLError[] {
  try {
    const document = parse(query)
    const errors = validate(schema, document)
    return errors.length ? errors : document
  } catch (error) {
    // `validate` itself throws on `@include` at the root of a subscription (graphql-js 16, SingleFieldSubscriptionsRule).
    return [
      error instanceof GraphQLError
        ? error
        : new GraphQLError('The operation cannot be validated.', { extensions: { ...new KisError('invalid_request', '').extensions } }),
    ]
  }
}
