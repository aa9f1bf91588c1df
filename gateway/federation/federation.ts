import { ApolloGateway } from '@apollo/gateway'
import type { QueryPlan } from '@apollo/query-planner'
import { type ExecutionResult, type GraphQLSchema, parse } from 'graphql'
import type { Principal } from '../../subgraphs/common/identity/principal.ts'
import type { Link, LinkContext } from '../../subgraphs/common/link/link.ts'
import { changedSteps } from '../../subgraphs/common/process/endable-iterator.ts'
import { type Log, silentLog } from '../../subgraphs/common/process/log.ts'
import { type Metrics, noMetrics } from '../../subgraphs/common/telemetry/metrics.ts'
import type { Prepared } from '../documents.ts'
import type { Variables } from '../variables.ts'
import { type Cost, Costs } from './costs.ts'
import { attachErrors, type FetchContext, LinkDataSource } from './link-data-source.ts'
import { PassThrough } from './pass-through.ts'
import { PlanCache, planKey } from './plan-cache.ts'
import { Requirements } from './requirements.ts'

type Context = LinkContext<Principal>

/**
 * Events from upstream, completed by the other subgraphs. `next()` and `end()` are enough here: the caller wraps them
 * into an iterator.
 */
export interface UpstreamEvents {
  next(): Promise<IteratorResult<ExecutionResult, undefined>>
  /** Ends the upstream at once, even while a `next()` is pending. */
  end(): void
}

const LINK_OF_ENFORCED = /(url: "https:\/\/specs\.apollo\.dev\/(?:authenticated|requiresScopes)\/[^"]+"), for: SECURITY/g

/**
 * The supergraph, which `ApolloGateway` plans and executes over our links. An operation whose result is that of one
 * fetch goes straight to its link. Errors in results are not masked yet.
 */
export class Federation implements AsyncDisposable {
  readonly sdl: string
  readonly requirements: Requirements
  readonly #gateway: ApolloGateway
  readonly #links: Readonly<Record<string, Link>>
  readonly #sources: Record<string, LinkDataSource> = {}
  readonly #plans = new PlanCache()
  readonly #passThrough: PassThrough
  readonly #costs: Costs
  readonly #metrics: Metrics

  /** @throws {Error} the supergraph has a security directive that is not enforced */
  private constructor(sdl: string, links: Readonly<Record<string, Link>>, metrics: Metrics, log: Log) {
    // Without places, which the schemas would retain: a place of each word of the text.
    const document = parse(sdl, { noLocation: true })
    this.sdl = sdl
    this.requirements = new Requirements(document)
    this.#links = links
    this.#passThrough = new PassThrough(document)
    this.#costs = new Costs(document)
    this.#metrics = metrics
    // It would send figures of the host to Apollo.
    process.env.APOLLO_TELEMETRY_DISABLED = 'true'
    this.#gateway = new ApolloGateway({
      // Apollo refuses a supergraph with security directives that it does not enforce. `Operations` enforces these.
      supergraphSdl: sdl.replaceAll(LINK_OF_ENFORCED, '$1'),
      // Composition has checked it.
      validateSupergraph: false,
      buildService: ({ name }) => {
        const link = links[name]
        if (!link) throw new Error(`the supergraph has a subgraph ${name}, but there is no link to it`)
        const source = new LinkDataSource(link)
        this.#sources[name] = source
        return source
      },
      queryPlannerConfig: { cache: this.#plans },
      logger: { debug() {}, info() {}, warn: (text) => log.warn(text), error: (text) => log.error(text) },
    })
  }

  /**
   * @throws {Error} the supergraph is not valid, names a subgraph without a link, or has a security directive that is
   * not enforced
   */
  static async open(sdl: string, links: Readonly<Record<string, Link>>, metrics = noMetrics, log: Log = silentLog): Promise<Federation> {
    const federation = new Federation(sdl, links, metrics, log)
    await federation.#gateway.load()
    return federation
  }

  /** What clients see: without `@inaccessible`, `_entities` and `_service`. */
  get schema(): GraphQLSchema {
    return this.#gateway.schema!
  }

  /** The most that the operation, or one of its events, may return. The variables must be coerced. */
  estimateCost(prepared: Prepared, variables: Variables): Cost {
    return this.#costs.of(prepared, this.schema, variables)
  }

  /** Runs a query or mutation. The variables must be coerced. */
  async execute(prepared: Prepared, variables: Variables, context: Context): Promise<ExecutionResult> {
    const plan = this.#plans.find(keyOf(prepared, context))
    this.#metrics.add('kis_cache_lookups_total', 1, 'plans', plan ? 'hit' : 'miss')
    const fetch = plan && this.#passThrough.fetchOf(plan, prepared.operation, this.schema)
    if (!fetch) return this.#run(prepared, variables, context)
    const { serviceName, operation: query, operationName, variableUsages } = fetch
    const operation = { query, operationName, variables: pick(variables, variableUsages) }
    const result = await this.#sources[serviceName]!.send(operation, context)
    return result.data && !result.errors ? result : this.#run(prepared, variables, { ...context, known: { result } })
  }

  /** Executes the plan of the operation. */
  async #run(prepared: Prepared, variables: Variables, context: FetchContext & Context): Promise<ExecutionResult> {
    const { text, alone, operation } = prepared
    const result = await this.#gateway.executor({
      request: { query: text, variables },
      source: text,
      document: alone,
      operation,
      operationName: null,
      queryHash: keyOf(prepared, context),
      context,
      schema: this.schema,
      metrics: {},
    } as unknown as Parameters<ApolloGateway['executor']>[0])
    return result as ExecutionResult
  }

  /** Drops the cached plan of the operation. */
  evict(prepared: Prepared, context: Context): void {
    void this.#plans.delete(keyOf(prepared, context))
  }

  /**
   * Subscribes to the first fetch of the plan. Each event then runs the plan with that fetch answered, unless it is the
   * result already. Sends nothing before the first `next()`, which rejects when the operation cannot be planned. The
   * variables must be coerced.
   */
  subscribe(prepared: Prepared, variables: Variables, context: Context): UpstreamEvents {
    let upstream: AsyncIterator<ExecutionResult, undefined> | undefined
    let isOver = false
    let next: UpstreamEvents['next'] = async () => {
      const plan = await this.#planSubscription(prepared, variables, context)
      // A first `next()` upstream would begin work that nobody waits for any more.
      if (isOver) return { done: true, value: undefined }
      const { serviceName, operation: query, operationName, variableUsages } = plan.node.primary
      const passes = this.#passThrough.fetchOf(plan, prepared.operation, this.schema) !== null
      const operation = { query, operationName, variables: pick(variables, variableUsages) }
      const complete = async (result: ExecutionResult): Promise<IteratorYieldResult<ExecutionResult>> => {
        this.#plans.retain(keyOf(prepared, context), plan)
        return { done: false, value: await this.#run(prepared, variables, { ...context, known: { query, result } }) }
      }
      upstream = changedSteps<ExecutionResult, ExecutionResult>(this.#links[serviceName]!.subscribe(operation, context), (step) => {
        if (step.done || (passes && step.value.data && !step.value.errors)) return step
        // The whole subscription has failed, such as when the subgraph is away.
        if (step.value.data === undefined) return { done: false, value: attachErrors(step.value, query) as ExecutionResult }
        return complete(step.value)
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

  /** `ApolloGateway` plans a subscription and stores its plan before it refuses to execute it. */
  async #planSubscription(
    prepared: Prepared,
    variables: Variables,
    context: Context,
  ): Promise<QueryPlan & { readonly node: SubscriptionNode }> {
    const key = keyOf(prepared, context)
    let plan = this.#plans.find(key)
    if (!plan) {
      const refused = await this.#run(prepared, variables, { ...context, known: { result: {} } }).catch((error: unknown) => ({
        errors: [error],
      }))
      plan = this.#plans.find(key)
      if (!plan) throw refused.errors?.[0]
    }
    return plan as QueryPlan & { readonly node: SubscriptionNode }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#gateway.stop()
  }
}

type SubscriptionNode = Extract<NonNullable<QueryPlan['node']>, { readonly kind: 'Subscription' }>

function keyOf({ hash, operationName }: Prepared, { caller }: Context): string {
  return planKey(caller.organizationId, hash, operationName)
}

function pick(variables: Variables, names: readonly string[] = []): Variables {
  return Object.fromEntries(names.filter((name) => Object.hasOwn(variables, name)).map((name) => [name, variables[name]]))
}
