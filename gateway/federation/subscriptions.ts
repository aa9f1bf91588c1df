import { operationFromDocument, type Schema, Supergraph } from '@apollo/federation-internals'
import { buildOperationContext, executeQueryPlan, type ServiceMap } from '@apollo/gateway'
import { type FetchNode, type QueryPlan, QueryPlanner } from '@apollo/query-planner'
import { type DocumentNode, type ExecutionResult, GraphQLError, type GraphQLSchema, type OperationDefinitionNode, parse } from 'graphql'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { Link, LinkContext } from '../../subgraphs/common/link/link.ts'
import type { Prepared } from '../documents.ts'
import { keysOf } from './link-data-source.ts'
import { passesThrough } from './pass-through.ts'
import { buildRequestContext, type Variables } from './request-context.ts'

interface Plan {
  /** The fetch to subscribe to, in one subgraph. */
  readonly primary: FetchNode
  /**
   * The plan to run for each event: `primary` first, answered by the event itself, then what other subgraphs add. Null
   * when the event is already the answer.
   */
  readonly perEvent: QueryPlan | null
  readonly operationContext: ReturnType<typeof buildOperationContext>
  /** The name of the only field in the answer. */
  readonly field: string
}

/**
 * Events from upstream, completed by the other subgraphs. `next()` and `end()` are enough here: the caller wraps them
 * into an iterator.
 */
export interface UpstreamEvents {
  next(): Promise<IteratorResult<ExecutionResult, undefined>>
  /** Ends the upstream at once, even while a `next()` is pending. */
  end(): void
}

interface Parts {
  readonly supergraphSdl: string
  readonly schema: GraphQLSchema
  readonly links: Readonly<Record<string, Link>>
  readonly services: ServiceMap
}

/**
 * Subscriptions over a supergraph, which @apollo/gateway plans but does not execute. This class subscribes upstream to
 * the first fetch of the plan. Each event then becomes an ordinary plan in which that fetch is answered from memory, so
 * that Apollo's own executor fetches entities, places errors and shapes the result.
 */
export class FederatedSubscriptions {
  readonly #parts: Parts
  readonly #planner: QueryPlanner
  readonly #api: Schema
  readonly #supergraph: GraphQLSchema
  /** By operation name, as long as the document is kept. */
  readonly #plans = new WeakMap<DocumentNode, Map<string, Plan>>()

  constructor(parts: Parts) {
    const supergraph = Supergraph.build(parts.supergraphSdl)
    this.#parts = parts
    this.#planner = new QueryPlanner(supergraph)
    this.#api = supergraph.apiSchema()
    this.#supergraph = supergraph.schema.toGraphQLJSSchema()
  }

  /** Asks nothing before the first `next()`, which rejects when the operation cannot be planned. */
  subscribe(prepared: Prepared, variables: Variables, context: LinkContext): UpstreamEvents {
    let upstream: AsyncIterator<ExecutionResult> | undefined
    let next: UpstreamEvents['next'] = async () => {
      const plan = this.#getPlan(prepared)
      const { serviceName, operation, operationName, variableUsages = [] } = plan.primary
      const used = Object.fromEntries(variableUsages.filter((name) => name in variables).map((name) => [name, variables[name]]))
      const events = this.#parts.links[serviceName]!.subscribe({ query: operation, operationName, variables: used }, context)
      upstream = events
      next = async () => {
        const item = await events.next()
        if (item.done) return { done: true, value: undefined }
        if (item.value.data === undefined) return { done: false, value: placed(item.value, plan) }
        return { done: false, value: await this.#answer(plan, item.value, prepared, variables, context) }
      }
      return next()
    }
    return { next: () => next(), end: () => void upstream?.return?.() }
  }

  #getPlan(prepared: Prepared): Plan {
    const plans = this.#plans.get(prepared.document) ?? new Map<string, Plan>()
    this.#plans.set(prepared.document, plans)
    const name = prepared.operationName ?? ''
    const plan = plans.get(name) ?? this.#makePlan(prepared)
    plans.set(name, plan)
    return plan
  }

  #makePlan({ document, operation, operationName }: Prepared): Plan {
    const { schema } = this.#parts
    const named = operationName === undefined ? {} : { operationName }
    const { node } = this.#planner.buildQueryPlan(operationFromDocument(this.#api, document, named))
    if (node?.kind !== 'Subscription') throw new GraphQLError('The operation is not a subscription that can be planned.')
    const { primary, rest } = node
    const fetched = parse(primary.operation).definitions[0] as OperationDefinitionNode
    const asItStands =
      !rest &&
      !primary.outputRewrites?.length &&
      passesThrough(operation.selectionSet, fetched.selectionSet, schema.getSubscriptionType()!, this.#supergraph)
    return {
      primary,
      perEvent: asItStands ? null : { kind: 'QueryPlan', node: { kind: 'Sequence', nodes: rest ? [primary, rest] : [primary] } },
      field: keysOf(fetched.selectionSet)[0]!,
      operationContext: buildOperationContext({ schema, operationDocument: document, ...named }),
    }
  }

  async #answer(
    { primary, perEvent, operationContext }: Plan,
    event: ExecutionResult,
    prepared: Prepared,
    variables: Variables,
    context: LinkContext,
  ): Promise<ExecutionResult> {
    if (!perEvent) return event
    const { schema, services } = this.#parts
    const fromMemory: ServiceMap = {
      ...services,
      [primary.serviceName]: {
        process: async (options) =>
          // The types differ only in which fields may be absent.
          options.request.query === primary.operation ? (event as never) : services[primary.serviceName]!.process(options),
      },
    }
    const requestContext = buildRequestContext(schema, prepared, variables, context)
    return executeQueryPlan(perEvent, fromMemory, requestContext, operationContext, this.#supergraph, this.#api)
  }
}

/** The link gives its own errors no path: the subgraph did not answer. */
function placed({ errors = [] }: ExecutionResult, { field }: Plan): ExecutionResult {
  return {
    errors: errors.map(({ message, path, extensions }) => {
      const { code, retryAfterMs } = KisError.fromGraphQL({ message, extensions })
      const told =
        !path && code === 'service_unavailable' ? new KisError('part_unavailable', message, { retryAfterMs }).extensions : extensions
      return new GraphQLError(message, { path: path ?? [field], extensions: { ...told } })
    }),
  }
}
