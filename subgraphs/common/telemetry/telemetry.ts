import { silentLog } from '../process/log.ts'
import { type Metrics, noMetrics } from './metrics.ts'
import { RequestFacts } from './request-facts.ts'
import { RequestLines } from './request-lines.ts'
import { noTracer, type Tracer } from './tracer.ts'

/** How a process tells from outside what it does. */
export interface Telemetry {
  /** False: nobody is told anything. */
  readonly isOn: boolean
  readonly metrics: Metrics
  readonly tracer: Tracer
  readonly requests: RequestFacts
  readonly lines: RequestLines
}

/** Tells nothing. */
export const noTelemetry: Telemetry = {
  isOn: false,
  metrics: noMetrics,
  tracer: noTracer,
  requests: new RequestFacts(false),
  lines: new RequestLines({ log: silentLog, metrics: noMetrics, hasAccessLog: false, slowMs: null, byOrganization: false }),
}
