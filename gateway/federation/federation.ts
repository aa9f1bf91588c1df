import type { ExecutionResult, GraphQLSchema } from 'graphql'
import type { Principal } from '../../subgraphs/common/identity/principal.ts'
import type { Link, LinkContext } from '../../subgraphs/common/link/link.ts'
import type { Metrics } from '../../subgraphs/common/telemetry/metrics.ts'
import { noTelemetry, type Telemetry } from '../../subgraphs/common/telemetry/telemetry.ts'
import type { Prepared } from '../documents.ts'
import { AnswerShapes } from './answer-shapes.ts'
import { type Cost, Costs } from './costs.ts'
import { describePlan } from './describe-plan.ts'
import { type ExecutablePlan, executePlan, type Services } from './execute-plan.ts'
import type { LoadedSupergraph } from './loaded-supergraph.ts'
import { PlanCache } from './plan-cache.ts'
import { Requirements } from './requirements.ts'
import { subgraphService } from './subgraph-service.ts'
import { FederatedSubscriptions, type UpstreamEvents } from './subscriptions.ts'
import type { Variables } from './values.ts'

export type { UpstreamEvents }

/** Who is told of plans. */
type Observed = Pick<Telemetry, 'metrics' | 'requests'>

/**
 * The supergraph, planned by Apollo's packages and executed over our links. Everything that depends on Apollo's
 * federation packages is in this folder: they may change with any version, and
 * `test/gateway/federation-contract.test.ts` fails when they do. Errors in results are not masked yet.
 */
export class Federation {
  /** What clients see: without `@inaccessible`, `_entities` and `_service`. */
  readonly schema: GraphQLSchema
  readonly sdl: string
  readonly requirements: Requirements
  readonly #supergraph: LoadedSupergraph
  readonly #services: Services
  readonly #costs: Costs
  readonly #plans = new PlanCache()
  readonly #subscriptions: FederatedSubscriptions
  readonly #metrics: Metrics
  readonly #requests: Observed['requests']

  /**
   * @throws {Error} the supergraph names a subgraph without a link, or has a security directive that is not enforced
   */
  constructor(supergraph: LoadedSupergraph, links: Readonly<Record<string, Link>>, { metrics, requests }: Observed = noTelemetry) {
    this.#metrics = metrics
    this.#requests = requests
    this.requirements = new Requirements(supergraph.document)
    this.#supergraph = supergraph
    this.schema = supergraph.schema
    this.sdl = supergraph.sdl
    this.#services = Object.fromEntries(
      supergraph.subgraphs.map((name) => {
        const link = links[name]
        if (!link) throw new Error(`the supergraph has a subgraph ${name}, but there is no link to it`)
        return [name, subgraphService(link)]
      }),
    )
    this.#costs = new Costs(supergraph.document)
    this.#subscriptions = new FederatedSubscriptions({ supergraph, links, services: this.#services, requests })
  }

  /** The most that the operation, or one of its events, may return. The variables must be coerced. */
  estimateCost(prepared: Prepared, variables: Variables): Cost {
    return this.#costs.of(prepared, this.schema, variables)
  }

  /**
   * Runs a query or mutation. The variables must be coerced.
   * @throws as `LoadedSupergraph.plan`
   */
  async execute(prepared: Prepared, variables: Variables, context: LinkContext<Principal>): Promise<ExecutionResult> {
    const plan = this.#findPlan(prepared) ?? (await this.#makePlan(prepared, context.caller))
    this.#requests.planned(context.requestId, () => describePlan(plan))
    return executePlan(plan, this.#supergraph.types, this.#services, variables, context)
  }

  #findPlan(prepared: Prepared): ExecutablePlan | undefined {
    const kept = this.#plans.get(prepared)
    this.#metrics.add('kis_cache_lookups_total', 1, 'plans', kept ? 'hit' : 'miss')
    return kept
  }

  async #makePlan(prepared: Prepared, { organizationId }: Principal): Promise<ExecutablePlan> {
    const { node } = await this.#supergraph.plan(prepared, organizationId)
    if (node?.kind === 'Subscription') throw new Error('a subscription is not executed, but subscribed to')
    const plan = { node, shapes: new AnswerShapes(this.schema, prepared) }
    this.#plans.set(prepared, plan, organizationId)
    return plan
  }

  /** Drops the cached plan of the operation. */
  forget(prepared: Prepared): void {
    this.#plans.forget(prepared)
  }

  /** Starts a subscription. The variables must be coerced. */
  subscribe(prepared: Prepared, variables: Variables, context: LinkContext<Principal>): UpstreamEvents {
    return this.#subscriptions.subscribe(prepared, variables, context)
  }
}
