import type { ExecutionResult } from 'graphql'
import { toErrorCode } from '../../schema/errors.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { Link, LinkContext, Operation } from '../../subgraphs/common/link/link.ts'
import type { QueueWatch } from '../../subgraphs/common/server/queue-watch.ts'
import { noTelemetry, type Telemetry } from '../../subgraphs/common/telemetry/telemetry.ts'

/** Callers choose the names of their operations. */
const MAX_NAME_CHARACTERS = 100
const NAME = /^\s*(?:query|mutation|subscription)\s+(\w+)/

export interface LinkObservers {
  /** Gets the time, the outcome and the span of each operation. Default: nothing does. */
  readonly telemetry?: Telemetry | undefined
  /** Knows the running operations by name: until the result, or the first event of a subscription. Default: nothing does. */
  readonly watch?: Pick<QueueWatch, 'start'> | undefined
}

/** Wraps a link so that each of its operations is reported to the observers. `to` names the other side. */
export function observedLink<Who, L extends Link<Who>>(
  link: L & Link<Who>,
  to: string,
  kind: 'client' | 'internal',
  { telemetry: { metrics, tracer, requests } = noTelemetry, watch }: LinkObservers,
): L {
  const start = (type: 'execute' | 'subscribe', operation: Operation, { requestId }: LinkContext<unknown>) => {
    const startedMs = performance.now()
    const name = nameOperation(to, operation)
    const span = tracer.start(name, { kind, attributes: { 'graphql.operation.type': type, 'kis.request_id': requestId } })
    return {
      span,
      watched(first: Promise<unknown>) {
        const end = watch?.start(name)
        if (end) first.then(end, end)
      },
      recordOutcome(outcome: string) {
        metrics.observe('kis_operation_seconds', (performance.now() - startedMs) / 1_000, to, type, outcome)
        requests.fetched(requestId, name, startedMs)
      },
    }
  }

  const observed: Omit<Link<Who>, 'openBytes'> = {
    execute(operation, context) {
      const { span, watched, recordOutcome } = start('execute', operation, context)
      const end = (outcome: string) => {
        recordOutcome(outcome)
        span.end(outcome === 'ok' ? undefined : outcome)
      }
      const result = span.within(() => link.execute(operation, context))
      watched(result)
      result.then(
        (value) => end(outcomeOf(value)),
        (error) => end(outcomeOfError(error, context)),
      )
      return result
    },

    subscribe(operation, context) {
      const { span, watched, recordOutcome } = start('subscribe', operation, context)
      const events = span.within(() => link.subscribe(operation, context))
      let hasBegun = false
      let hasResponded = false
      const first = (outcome: string) => {
        if (hasResponded) return
        hasResponded = true
        recordOutcome(outcome)
      }
      const heard = (item: IteratorResult<ExecutionResult>) => {
        const outcome = item.done ? 'ok' : outcomeOf(item.value)
        first(outcome)
        if (item.done) span.end()
        else if (outcome !== 'ok') span.end(outcome)
      }
      return {
        next() {
          const event = span.within(() => events.next())
          if (!hasBegun) watched(event)
          hasBegun = true
          if (!hasResponded || span.isRecording)
            event.then(heard, (error) => {
              const outcome = outcomeOfError(error, context)
              first(outcome)
              span.end(outcome)
            })
          return event
        },
        return(value) {
          first('left')
          const ended = span.within(() => events.return!(value))
          span.end()
          return ended
        },
        [Symbol.asyncIterator]() {
          return this
        },
      }
    },
  }
  return { ...link, ...observed }
}

/** `knowledge: SearchCollection`. Nothing else of the text, which may contain private data. */
export function nameOperation(to: string, { query = '', operationName }: Partial<Operation>): string {
  const name = operationName ?? NAME.exec(query)?.[1] ?? 'an operation without a name'
  return `${to}: ${name.slice(0, MAX_NAME_CHARACTERS)}`
}

function outcomeOf({ errors }: ExecutionResult): string {
  const [error] = errors ?? []
  return error ? (toErrorCode(error.extensions?.code) ?? 'internal') : 'ok'
}

function outcomeOfError(error: unknown, { signal }: LinkContext<unknown>): string {
  if (error instanceof KisError) return error.code
  return signal.aborted ? 'left' : 'internal'
}
