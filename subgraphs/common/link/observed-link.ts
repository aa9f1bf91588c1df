import type { ExecutionResult } from 'graphql'
import { toErrorCode } from '../../../schema/errors.ts'
import { KisError } from '../errors.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Link, LinkContext, Operation } from './link.ts'
import { nameOperation } from './watched-link.ts'

/** Wraps a link so that each of its operations is told of: its time, its outcome, and its span. `to` names the other side. */
export function observedLink<Who, L extends Link<Who>>(
  link: L,
  to: string,
  { metrics, tracer, requests }: Telemetry,
  kind: 'client' | 'internal',
): L {
  const begin = (type: 'execute' | 'subscribe', operation: Operation, { requestId }: LinkContext<unknown>) => {
    const startedMs = performance.now()
    const name = nameOperation(to, operation)
    const span = tracer.start(name, { kind, attributes: { 'graphql.operation.type': type, 'kis.request_id': requestId } })
    return {
      span,
      answered(outcome: string) {
        metrics.observe('kis_operation_seconds', (performance.now() - startedMs) / 1_000, to, type, outcome)
        requests.fetched(requestId, name, startedMs)
      },
    }
  }

  const observed: Omit<Link<Who>, 'openBytes'> = {
    execute(operation, context) {
      const { span, answered } = begin('execute', operation, context)
      const end = (outcome: string) => {
        answered(outcome)
        span.end(outcome === 'ok' ? undefined : outcome)
      }
      const answer = span.within(() => link.execute(operation, context))
      answer.then(
        (result) => end(outcomeOf(result)),
        (error) => end(outcomeOfError(error, context)),
      )
      return answer
    },

    subscribe(operation, context) {
      const { span, answered } = begin('subscribe', operation, context)
      const events = span.within(() => link.subscribe(operation, context))
      let hasAnswered = false
      const first = (outcome: string) => {
        if (hasAnswered) return
        hasAnswered = true
        answered(outcome)
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
          if (!hasAnswered || span.isKept)
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

function outcomeOf({ errors }: ExecutionResult): string {
  const [error] = errors ?? []
  return error ? (toErrorCode(error.extensions?.code) ?? 'internal') : 'ok'
}

function outcomeOfError(error: unknown, { signal }: LinkContext<unknown>): string {
  if (error instanceof KisError) return error.code
  return signal.aborted ? 'left' : 'internal'
}
