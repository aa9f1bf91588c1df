import type { ExecutionResult } from 'graphql'
import { endableIterator } from '../subgraphs/common/endable-iterator.ts'
import { KisError, PermissionDenied } from '../subgraphs/common/errors.ts'
import type { LinkContext } from '../subgraphs/common/link.ts'
import { hasScope, type Principal, type Scope } from '../subgraphs/common/principal.ts'
import type { Documents, Prepared } from './documents.ts'
import type { Federation } from './federation/federation.ts'
import type { Variables } from './federation/request-context.ts'
import type { Mask } from './mask.ts'

export type OperationContext = LinkContext<Principal>
export type Results = AsyncIterableIterator<ExecutionResult, undefined>

/** The one way that every operation goes, whichever door it came by: checked, executed, its errors masked. */
export class Operations {
  readonly #documents: Documents
  readonly #federation: Federation
  readonly #mask: Mask

  constructor(documents: Documents, federation: Federation, mask: Mask) {
    this.#documents = documents
    this.#federation = federation
    this.#mask = mask
  }

  /** The operation, or the result that says what is wrong with it. */
  prepare(query: string, operationName: string | undefined, requestId: string): Prepared | ExecutionResult {
    try {
      const prepared = this.#documents.prepare(query, operationName)
      return 'document' in prepared ? prepared : { errors: prepared.map((error) => this.#mask(error, requestId)) }
    } catch (error) {
      return this.failed(error, requestId)
    }
  }

  /** A query or mutation. Rejects only when the signal aborts. */
  async execute(prepared: Prepared, variables: Variables, context: OperationContext): Promise<ExecutionResult> {
    context.signal.throwIfAborted()
    if (prepared.operation.operation === 'subscription') {
      return this.failed(new KisError('invalid_request', 'A subscription needs the WebSocket at this address.'), context.requestId)
    }
    const denied = deniedScope(prepared, context.caller)
    if (denied) return this.failed(new PermissionDenied(denied), context.requestId)
    const result = await this.#federation.execute(prepared, variables, context).then(
      (answer) => this.#masked(answer, context.requestId),
      (error) => this.failed(error, context.requestId),
    )
    context.signal.throwIfAborted()
    return result
  }

  /**
   * Gives the iterator at once; its `return()` ends the upstream at once, also while a `next()` is pending. A failure is the last result, never a
   * rejection. `ended` is called once, however it ends.
   */
  subscribe(prepared: Prepared, variables: Variables, context: OperationContext, ended: () => void = () => undefined): Results {
    const denied = deniedScope(prepared, context.caller)
    const events = this.#federation.subscribe(prepared, variables, context)
    let over = false
    return endableIterator<ExecutionResult>(
      async () => {
        if (over) return { done: true, value: undefined }
        try {
          if (denied) throw new PermissionDenied(denied)
          const item = await events.next()
          return item.done ? item : { done: false, value: this.#masked(item.value, context.requestId) }
        } catch (error) {
          over = true
          return { done: false, value: this.failed(error, context.requestId) }
        }
      },
      () => {
        events.end()
        ended()
      },
      context.signal,
    )
  }

  failed(error: unknown, requestId: string): ExecutionResult {
    return { errors: [this.#mask(error, requestId)] }
  }

  /** `extensions` stay inside: Apollo's executor puts there what it found wrong with subgraphs' values. */
  #masked({ data, errors }: ExecutionResult, requestId: string): ExecutionResult {
    return { ...(data !== undefined && { data }), ...(errors?.length && { errors: errors.map((error) => this.#mask(error, requestId)) }) }
  }
}

/** A scope that the caller lacks for something that the operation selects. Nothing of such an operation runs. */
function deniedScope({ requirements }: Prepared, caller: Principal): string | undefined {
  for (const { anyOf } of requirements) {
    const missing = anyOf.map((scopes) => scopes.find((scope) => !hasScope(caller, scope as Scope)))
    if (missing.length > 0 && missing.every((scope) => scope !== undefined)) return missing[0]
  }
  return undefined
}

/** One result as an iterator. */
export function single(result: () => Promise<ExecutionResult>, ended: () => void = () => undefined): Results {
  let given = false
  return endableIterator<ExecutionResult>(async () => {
    if (given) return { done: true, value: undefined }
    given = true
    return { done: false, value: await result() }
  }, ended)
}
