import {
  type DocumentNode,
  type ExecutionResult,
  type GraphQLError,
  type GraphQLSchema,
  getNamedType,
  isObjectType,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql'
import { toErrorCode } from '../schema/errors.ts'
import { KisError, PermissionDenied } from '../subgraphs/common/errors.ts'
import { hasScope, type Principal, type Scope } from '../subgraphs/common/identity/principal.ts'
import type { LinkContext } from '../subgraphs/common/link/link.ts'
import { endableIterator } from '../subgraphs/common/process/endable-iterator.ts'
import type { RequestFacts } from '../subgraphs/common/telemetry/request-facts.ts'
import type { GatewayConfig } from './config.ts'
import type { Documents, Prepared } from './documents.ts'
import type { Federation, UpstreamEvents } from './federation/federation.ts'
import type { Authenticator } from './keys/authenticate.ts'
import type { KeyWatch, Watched } from './keys/key-watch.ts'
import { locate } from './locations.ts'
import type { Mask } from './mask.ts'
import { coerceVariables, InvalidVariables, type Variables } from './variables.ts'

/** Errors of one result. A page of a hundred items that all fail has as many. */
const MAX_ERRORS = 100
/** Characters of an operation's name in the log. */
const MAX_NAME_CHARACTERS = 100

interface OperationContext extends LinkContext<Principal> {
  /** Called when a call of the operation has counted as a request of its key. */
  readonly counted?: () => void
}
/** The context of a subscription. */
export interface SubscriptionContext extends OperationContext {
  /** The caller's key as the client sent it. The key is checked again while the operation runs. */
  readonly credentials: string
}
/** The results of an operation, as an iterator for every transport. */
export type Results = AsyncIterableIterator<ExecutionResult, undefined>

/** Checks and executes every operation, whichever transport it came by, and masks its errors. */
export class Operations {
  readonly #documents: Documents
  readonly #federation: Federation
  readonly #mask: Mask
  readonly #watch: Pick<KeyWatch, 'watch'>
  readonly #authenticator: Pick<Authenticator, 'evictAfterChange'>
  readonly #config: Pick<GatewayConfig, 'introspection' | 'countNodes'>
  readonly #requests: Pick<RequestFacts, 'report'>

  constructor(
    documents: Documents,
    federation: Federation,
    mask: Mask,
    watch: Pick<KeyWatch, 'watch'>,
    authenticator: Pick<Authenticator, 'evictAfterChange'>,
    config: Pick<GatewayConfig, 'introspection' | 'countNodes'>,
    requests: Pick<RequestFacts, 'report'> = { report: () => undefined },
  ) {
    this.#documents = documents
    this.#federation = federation
    this.#mask = mask
    this.#watch = watch
    this.#authenticator = authenticator
    this.#config = config
    this.#requests = requests
  }

  /** Returns the operation, or the result that contains its errors. */
  prepare(query: string, operationName: string | undefined, requestId: string, parsed?: DocumentNode): Prepared | ExecutionResult {
    try {
      const prepared = this.#documents.prepare(query, operationName, parsed)
      return 'document' in prepared ? prepared : { errors: this.#maskAll(prepared, requestId) }
    } catch (error) {
      return this.failed(error, requestId)
    }
  }

  /** Runs a query or mutation. Rejects only when the signal aborts. */
  async execute(prepared: Prepared, variables: Variables, context: OperationContext): Promise<ExecutionResult> {
    context.signal.throwIfAborted()
    this.#requests.report(context.requestId, { operation: nameOf(prepared) })
    if (prepared.operation.operation === 'subscription') {
      return this.failed(
        new KisError('invalid_request', 'Subscriptions run over WebSocket, or with `accept: text/event-stream`, at this address.'),
        context.requestId,
      )
    }
    let isLetIn = false
    try {
      const coerced = this.#judge(prepared, variables, context)
      isLetIn = true
      const result = await this.#federation.execute(prepared, coerced, context)
      this.#learn(prepared, result, context)
      return this.#masked(result, prepared, context.requestId)
    } catch (error) {
      return this.failed(error, context.requestId, prepared)
    } finally {
      // Also after a failure: the change may be stored and only its response lost.
      if (isLetIn && mayChangeRules(prepared)) this.#authenticator.evictAfterChange(context.caller, mayLiftRefusals(prepared))
      context.signal.throwIfAborted()
    }
  }

  /**
   * Returns the iterator at once. Its `return()` ends the upstream at once, even while a `next()` is pending. A failure
   * is the last result, never a rejection; so is the refusal of a key that is revoked meanwhile or loses a needed
   * scope. `ended` is called once, however the subscription ends.
   */
  subscribe(prepared: Prepared, variables: Variables, context: SubscriptionContext, ended: () => void = () => undefined): Results {
    let events: UpstreamEvents | undefined
    let over = false
    let hasBegun = false
    let refusal: Error | undefined
    let unwatch: (() => void) | undefined
    this.#requests.report(context.requestId, { operation: nameOf(prepared) })
    const watched: Watched = {
      judge: (caller) => findDenial(prepared, caller),
      end: (why) => {
        refusal ??= why
        events?.end()
      },
    }
    const failed = (error: unknown): IteratorResult<ExecutionResult, undefined> => {
      over = true
      return { done: false, value: this.failed(error, context.requestId, prepared) }
    }
    const passed = (step: IteratorResult<ExecutionResult, undefined>): IteratorResult<ExecutionResult, undefined> => {
      if (refusal) return failed(refusal)
      if (step.done) return step
      try {
        if (!hasBegun || step.value.errors) this.#learn(prepared, step.value, context)
        hasBegun = true
        return { done: false, value: this.#masked(step.value, prepared, context.requestId) }
      } catch (error) {
        return failed(error)
      }
    }
    const startEvents = async () => {
      try {
        if (refusal) throw refusal
        unwatch ??= this.#watch.watch(context.credentials, watched)
        events = this.#federation.subscribe(prepared, this.#judge(prepared, variables, context), context)
        return passed(await events.next())
      } catch (error) {
        return failed(error)
      }
    }
    return endableIterator<ExecutionResult>(
      () => {
        if (over) return Promise.resolve({ done: true, value: undefined })
        return events ? events.next().then(passed, failed) : startEvents()
      },
      () => {
        unwatch?.()
        events?.end()
        ended()
      },
      context.signal,
    )
  }

  /** Returns the result of a failed operation. `prepared` is the operation, if it is known. */
  failed(error: unknown, requestId: string, prepared?: Prepared): ExecutionResult {
    const errors = error instanceof InvalidVariables ? error.complaints : [error]
    return { errors: this.#maskAll(prepared ? locate(errors, prepared) : errors, requestId) }
  }

  /** Caches the document and the plan of an operation that ran without an error. Evicts those of any other. */
  #learn(prepared: Prepared, { data, errors }: ExecutionResult, context: OperationContext): void {
    if (data && context.counted && countsItself(prepared, data, this.#federation.schema)) context.counted()
    if (!errors?.length) this.#documents.cache(prepared, context.caller.organizationId)
    else if (this.#documents.findDocument(prepared.hash) === undefined) this.#federation.evict(prepared, context)
  }

  /**
   * Checks whether the caller may run the operation, and returns its coerced variables.
   * @throws {PermissionDenied} the caller lacks a scope that the operation needs
   * @throws {InvalidVariables} a variable does not fit its type
   * @throws {KisError} `operation_too_complex`: the result may have too many nodes
   */
  #judge(prepared: Prepared, variables: Variables, { caller }: OperationContext): Variables {
    const denial = findDenial(prepared, caller)
    if (denial) throw denial
    const coerced = coerceVariables(this.#federation.schema, prepared.operation, variables, this.#config.introspection)
    this.#requireAffordable(prepared, coerced, caller)
    return coerced
  }

  /** @throws {KisError} `operation_too_complex`: the result may have more nodes than the caller's plan allows */
  #requireAffordable(prepared: Prepared, variables: Variables, { plan }: Principal): void {
    const allowed = this.#config.countNodes(plan.code)
    const { nodes, mostExpensive } = this.#federation.estimateCost(prepared, variables)
    if (nodes <= allowed) return
    throw new KisError(
      'operation_too_complex',
      `The result may have ${nodes} nodes, ${mostExpensive.nodes} of them in \`${mostExpensive.name}\`; the plan \`${plan.code}\` allows ${allowed}. Request fewer at once: a smaller \`first\`, or fewer lists inside lists.`,
    )
  }

  /**
   * Masks the errors of a result. Drops `extensions`, where Apollo's executor reports faults in the subgraphs' values.
   */
  #masked({ data, errors }: ExecutionResult, prepared: Prepared, requestId: string): ExecutionResult {
    if (!errors?.length) return data === undefined ? {} : { data }
    const masked = this.#maskAll(locate(errors.slice(0, MAX_ERRORS), prepared), requestId)
    return { ...(data !== undefined && { data }), ...(masked.length > 0 && { errors: masked }) }
  }

  #maskAll(errors: readonly unknown[], requestId: string): readonly GraphQLError[] {
    const masked = errors.map((error) => this.#mask(error, requestId))
    const code = toErrorCode(masked[0]?.extensions.code)
    if (code) this.#requests.report(requestId, { error: code })
    return masked
  }
}

/**
 * Returns, for example, `query Collections`. The caller chose the name, but it is a single word: the text has been
 * parsed.
 */
function nameOf({ operation: { operation, name } }: Prepared): string {
  return name ? `${operation} ${name.value.slice(0, MAX_NAME_CHARACTERS)}` : operation
}

/**
 * Returns the error for the first scope that the operation needs and the caller lacks. Nothing of such an operation
 * runs.
 */
function findDenial({ requirements }: Prepared, caller: Principal): PermissionDenied | undefined {
  for (const { anyOf } of requirements) {
    const missing = anyOf.map((scopes) => scopes.find((scope) => !hasScope(caller, scope as Scope)))
    if (missing.length > 0 && missing.every((scope) => scope !== undefined)) return new PermissionDenied(missing[0]!)
  }
  return undefined
}

/**
 * Whether the operation may change keys, members, sessions or organizations. Its mutation needs `admin` or `operator`,
 * or any key, because every person may end their own session.
 */
function mayChangeRules({ operation, requirements }: Prepared): boolean {
  return (
    operation.operation === 'mutation' &&
    requirements.some(
      ({ coordinate, anyOf }) =>
        coordinate.startsWith('Mutation.') && anyOf.every((scopes) => scopes.includes('admin') || scopes.includes('operator')),
    )
  )
}

/**
 * Whether a key that was refused a moment ago may be valid after the operation. Of the changes by an organization
 * itself, only a later expiry does that. Secrets of new keys are random, so nobody can have sent them before.
 */
function mayLiftRefusals({ requirements }: Prepared): boolean {
  return requirements.some(({ coordinate }) => coordinate === 'Mutation.updateApiKey')
}

/**
 * Whether the result of a root field reports the remaining limits of the key: its call has then counted as a request.
 */
function countsItself({ alone, operation }: Prepared, data: ExecutionResult['data'], schema: GraphQLSchema): boolean {
  const types = new TypeInfo(schema)
  let isCounted = false
  const visitor = visitWithTypeInfo(types, {
    Field({ alias, name }) {
      const type = getNamedType(types.getType())
      if (types.getParentType() !== schema.getRootType(operation.operation)) return
      if (isObjectType(type) && type.getFields().rateLimits && data?.[(alias ?? name).value]) isCounted = true
    },
  })
  visit(alone, visitor)
  return isCounted
}

/** Creates an iterator of one result. */
export function single(result: () => Promise<ExecutionResult>, ended: () => void = () => undefined): Results {
  let isDone = false
  return endableIterator<ExecutionResult>(async () => {
    if (isDone) return { done: true, value: undefined }
    isDone = true
    return { done: false, value: await result() }
  }, ended)
}
