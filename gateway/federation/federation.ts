import './no-telemetry.ts'
import { ApolloGateway, type GraphQLDataSource, type ServiceMap } from '@apollo/gateway'
import type { ExecutionResult, GraphQLSchema } from 'graphql'
import type { Link, LinkContext } from '../../subgraphs/common/link/link.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import type { Prepared } from '../documents.ts'
import { type Cost, Costs } from './costs.ts'
import { linkDataSource } from './link-data-source.ts'
import { PlanCache } from './plan-cache.ts'
import { buildRequestContext, type Variables } from './request-context.ts'
import { Requirements } from './requirements.ts'
import { FederatedSubscriptions, type UpstreamEvents } from './subscriptions.ts'

export type { UpstreamEvents }

/**
 * The supergraph, executed by @apollo/gateway over our links. Everything that depends on Apollo's federation packages
 * is in this folder: they may change with any version, and `test/gateway/federation-contract.test.ts` fails when they
 * do. Errors in results are not masked yet.
 */
export class Federation implements AsyncDisposable {
  /** What clients see: without `@inaccessible`, `_entities` and `_service`. */
  readonly schema: GraphQLSchema
  readonly supergraphSdl: string
  readonly requirements: Requirements
  readonly #costs: Costs
  readonly #plans: PlanCache
  readonly #gateway: ApolloGateway
  readonly #subscriptions: FederatedSubscriptions

  private constructor(
    schema: GraphQLSchema,
    requirements: Requirements,
    costs: Costs,
    plans: PlanCache,
    gateway: ApolloGateway,
    subscriptions: FederatedSubscriptions,
  ) {
    this.schema = schema
    this.supergraphSdl = requirements.loadableSdl
    this.requirements = requirements
    this.#costs = costs
    this.#plans = plans
    this.#gateway = gateway
    this.#subscriptions = subscriptions
  }

  /**
   * @throws {Error} the supergraph names a subgraph without a link, or has a security directive that is not enforced
   */
  static async load(supergraphSdl: string, links: Readonly<Record<string, Link>>, log: Log): Promise<Federation> {
    const services: ServiceMap = {}
    const requirements = new Requirements(supergraphSdl)
    const { loadableSdl } = requirements
    const plans = new PlanCache()
    const gateway = new ApolloGateway({
      queryPlannerConfig: { cache: plans },
      supergraphSdl: loadableSdl,
      logger: log,
      buildService: ({ name }): GraphQLDataSource => {
        const link = links[name]
        if (!link) throw new Error(`the supergraph has a subgraph ${name}, but there is no link to it`)
        services[name] = linkDataSource(link)
        return services[name]
      },
    })
    const { schema } = await gateway.load()
    const subscriptions = new FederatedSubscriptions({ supergraphSdl: loadableSdl, schema, links, services })
    return new Federation(schema, requirements, new Costs(loadableSdl), plans, gateway, subscriptions)
  }

  /**
   * The most that the operation, or one of its events, may return. The variables must be coerced.
   * @throws {KisError} `operation_too_complex`: it has too many fields to count
   */
  estimateCost(prepared: Prepared, variables: Variables): Cost {
    return this.#costs.of(prepared, this.schema, variables)
  }

  /** Runs a query or mutation. The variables must be coerced. */
  execute(prepared: Prepared, variables: Variables, context: LinkContext): Promise<ExecutionResult> {
    return this.#gateway.executor(buildRequestContext(this.schema, prepared, variables, context))
  }

  /** Drops the cached plan of the operation. */
  forget(prepared: Prepared): void {
    this.#plans.forget(prepared)
  }

  /** Starts a subscription. The variables must be coerced. */
  subscribe(prepared: Prepared, variables: Variables, context: LinkContext): UpstreamEvents {
    return this.#subscriptions.subscribe(prepared, variables, context)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gateway.stop()
  }
}
