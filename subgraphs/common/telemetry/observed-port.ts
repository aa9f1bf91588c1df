import { isAbort, KisError } from '../errors.ts'
import type { NameOf } from './metrics.ts'
import type { Attributes, Telemetry } from './telemetry.ts'

interface PortDescription {
  readonly metric: NameOf<'histogram'>
  /** Label values of the metric before the operation and its outcome. */
  readonly labels: readonly string[]
  /** What follows the operation in the names of spans. */
  readonly what: string
  readonly attributes: Attributes
}

/**
 * Returns a substitute for a port that reports each call of its methods: its time, its outcome, its span. Members that
 * are not methods, or return no promise, are passed on.
 */
export function observedPort<P extends object>(
  port: P,
  { metric, labels, what, attributes }: PortDescription,
  { metrics, tracer }: Pick<Telemetry, 'metrics' | 'tracer'>,
): P {
  if (!metrics.isOn && !tracer.isOn) return port
  const methods = new Map<PropertyKey, unknown>()
  const observed = (operation: string, method: (...args: unknown[]) => unknown) => {
    const ofSpan = { attributes: { ...attributes, 'db.operation.name': operation } }
    return (...args: unknown[]) => {
      const startedMs = performance.now()
      const span = tracer.start(`${operation} ${what}`, ofSpan)
      const result = span.within(() => method.apply(port, args))
      if (!(result instanceof Promise)) {
        span.end()
        return result
      }
      const end = (outcome: string) => {
        metrics.observe(metric, (performance.now() - startedMs) / 1_000, ...labels, operation, outcome)
        span.end(outcome === 'failed' ? outcome : undefined)
      }
      result.then(
        () => end('ok'),
        (error) => end(outcomeOf(error)),
      )
      return result
    }
  }
  return new Proxy(port, {
    get(target, name) {
      const known = methods.get(name)
      if (known) return known
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function' || typeof name === 'symbol') return typeof value === 'function' ? value.bind(target) : value
      const method = observed(name, value as (...args: unknown[]) => unknown)
      methods.set(name, method)
      return method
    },
  })
}

/** A refused write, such as of a key that exists, is a result like any other. */
function outcomeOf(error: unknown): 'failed' | 'refused' | 'left' {
  if (isAbort(error)) return 'left'
  return error instanceof KisError && error.code === 'service_unavailable' ? 'failed' : 'refused'
}
