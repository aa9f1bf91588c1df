import type { Clock } from '../../../common/process/clock.ts'
import type { Log } from '../../../common/process/log.ts'
import type { Metrics } from '../../../common/telemetry/metrics.ts'
import type { Catalog, Model } from '../../domain/catalog.ts'

/** Frequent enough to be noticed in the log, without a line for each call. */
const REPEAT_MS = 3_600_000

/**
 * Warns the operator of models whose engine reports a usage of zero for work that was not empty: in the log once per
 * model and hour, and in a metric. Their calls are charged by count.
 */
export class ZeroUsage {
  readonly #clock: Clock
  readonly #log: Log
  readonly #metrics: Metrics
  readonly #loggedAt = new Map<string, number>()

  constructor(catalog: Catalog, clock: Clock, log: Log, metrics: Metrics) {
    this.#clock = clock
    this.#log = log
    this.#metrics = metrics
    // Prometheus sees no increase in a series that starts at one.
    for (const { id } of catalog.models) metrics.add('kis_zero_usage_calls_total', 0, id)
  }

  note({ id, engine }: Model): void {
    this.#metrics.add('kis_zero_usage_calls_total', 1, id)
    const now = this.#clock.now().getTime()
    if (now - (this.#loggedAt.get(id) ?? Number.NEGATIVE_INFINITY) < REPEAT_MS) return
    this.#loggedAt.set(id, now)
    this.#log.warn({ model: id, engine }, MESSAGE)
  }
}

/** Operators search for this text, so do not change it. */
const MESSAGE = 'engine reports a usage of zero for work that was not empty: its calls are charged by count'
