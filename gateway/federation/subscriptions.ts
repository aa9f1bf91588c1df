import type { FetchNode, QueryPlan } from '@apollo/query-planner'
import { type DocumentNode, type ExecutionResult, GraphQLError, type OperationDefinitionNode, parse } from 'graphql'
import type { Principal } from '../../subgraphs/common/identity/principal.ts'
import type { Link, LinkContext } from '../../subgraphs/common/link/link.ts'
import { changedSteps } from '../../subgraphs/common/process/endable-iterator.ts'
import type { RequestFacts } from '../../subgraphs/common/telemetry/request-facts.ts'
import type { Prepared } from '../documents.ts'
import { AnswerShapes } from './answer-shapes.ts'
import { describePlan } from './describe-plan.ts'
import { type ExecutablePlan, executePlan, type Services } from './execute-plan.ts'
import type { LoadedSupergraph } from './loaded-supergraph.ts'
import { passesThrough } from './pass-through.ts'
import { keysOf } from './subgraph-service.ts'
import type { Variables } from './values.ts'

interface Plan {
  readonly whole: QueryPlan
  /** The fetch to subscribe to, in one subgraph. */
  readonly primary: FetchNode
  /**
   * The plan to run for each event: `primary` first, answered by the event itself, then what other subgraphs add. Null
   * when the event is already the answer.
   */
  readonly perEvent: ExecutablePlan | null
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
  readonly supergraph: LoadedSupergraph
  readonly links: Readonly<Record<string, Link>>
  readonly services: Services
  readonly requests: RequestFacts
}

/**
 * Subscriptions over a supergraph, which Apollo's planner plans. This class subscribes upstream to the first fetch of the
 * plan. Each event then becomes an ordinary plan in which that fetch is answered from memory, and which `executePlan`
 * runs.
 */
export class FederatedSubscriptions {
  readonly #parts: Parts
  /** By operation name, as long as the document is kept. */
  readonly #plans = new WeakMap<DocumentNode, Map<string, Plan>>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Asks nothing before the first `next()`, which rejects when the operation cannot be planned. */
  subscribe(prepared: Prepared, variables: Variables, context: LinkContext<Principal>): UpstreamEvents {
    let upstream: AsyncIterator<ExecutionResult, undefined> | undefined
    let isOver = false
    let next: UpstreamEvents['next'] = async () => {
      const plan = this.#findPlan(prepared) ?? (await this.#makePlan(prepared, context.caller))
      // A first `next()` upstream would begin work that nobody waits for any more.
      if (isOver) return { done: true, value: undefined }
      this.#parts.requests.planned(context.requestId, () => describePlan(plan.whole))
      const { serviceName, operation, operationName, variableUsages = [] } = plan.primary
      const used = Object.fromEntries(variableUsages.filter((name) => name in variables).map((name) => [name, variables[name]]))
      const events = this.#parts.links[serviceName]!.subscribe({ query: operation, operationName, variables: used }, context)
      upstream = changedSteps<ExecutionResult, ExecutionResult>(events, (step) => {
        if (step.done) return step
        if (step.value.data === undefined) return { done: false, value: placed(step.value, plan) }
        return plan.perEvent ? this.#answer(plan.primary, plan.perEvent, step.value, variables, context) : step
      })
      next = () => upstream!.next()
      return next()
    }
    return {
      next: () => next(),
      end: () => {
        isOver = true
        void upstream?.return?.()
      },
    }
  }

  #findPlan({ document, operationName = '' }: Prepared): Plan | undefined {
    return this.#plans.get(document)?.get(operationName)
  }

  async #makePlan(prepared: Prepared, { organizationId }: Principal): Promise<Plan> {
    const { document, operation, operationName = '' } = prepared
    const { schema, types } = this.#parts.supergraph
    const whole = await this.#parts.supergraph.plan(prepared, organizationId)
    const { node } = whole
    if (node?.kind !== 'Subscription') throw new GraphQLError('The operation is not a subscription that can be planned.')
    const { primary, rest } = node
    const fetched = parse(primary.operation).definitions[0] as OperationDefinitionNode
    const asItStands =
      !rest &&
      !primary.outputRewrites?.length &&
      passesThrough(operation.selectionSet, fetched.selectionSet, schema.getSubscriptionType()!, types)
    const plan: Plan = {
      whole,
      primary,
      perEvent: asItStands
        ? null
        : { node: { kind: 'Sequence', nodes: rest ? [primary, rest] : [primary] }, shapes: new AnswerShapes(schema, prepared) },
      field: keysOf(fetched.selectionSet)[0]!,
    }
    const plans = this.#plans.get(document) ?? new Map<string, Plan>()
    this.#plans.set(document, plans.set(operationName, plan))
    return plan
  }

  async #answer(
    { serviceName, operation }: FetchNode,
    perEvent: ExecutablePlan,
    { data, errors }: ExecutionResult,
    variables: Variables,
    context: LinkContext,
  ): Promise<IteratorYieldResult<ExecutionResult>> {
    const { supergraph, services } = this.#parts
    const fromMemory: Services = {
      ...services,
      [serviceName]: async (fetched, its) => (fetched.query === operation ? { data, errors } : services[serviceName]!(fetched, its)),
    }
    return { done: false, value: await executePlan(perEvent, supergraph.types, fromMemory, variables, context) }
  }
}

/** An error of the whole subscription, such as that the subgraph is away, has no path. */
function placed({ errors = [] }: ExecutionResult, { field }: Plan): ExecutionResult {
  const at = ({ message, extensions }: GraphQLError) => new GraphQLError(message, { path: [field], extensions })
  return { errors: errors.map((error) => (error.path ? error : at(error))) }
}
