import { silentLog } from '../process/log.ts'
import { type Metrics, noMetrics } from './metrics.ts'
import { RequestFacts } from './request-facts.ts'
import { RequestLines } from './request-lines.ts'

/** Attributes of a span. */
export type Attributes = Readonly<Record<string, string | number | boolean>>

interface SpanOptions {
  /** `server`: the span responds to another process. `client`: another process responds to it. Default: neither. */
  readonly kind?: 'server' | 'client' | 'internal'
  readonly attributes?: Attributes
  /** The header `traceparent` of another process. Default: the span that runs now. */
  readonly traceparent?: string | undefined
  /** True: starts a trace if there is none. Default: no trace is started, because background polls are no requests. */
  readonly begins?: boolean
}

/** A span of a trace. */
export interface Span {
  /** 32 hexadecimal digits. Empty: there is no trace. */
  readonly traceId: string
  /** False: the trace is not recorded, so callers need not set attributes. */
  readonly isRecording: boolean
  /** Runs work whose own spans are children of this one. */
  within<T>(work: () => T): T
  set(attributes: Attributes): void
  /** `error`: a code of the failure. Only the first call counts. */
  end(error?: string | undefined): void
}

/** Creates spans. */
export interface Tracer {
  /** False: nothing is traced, and callers need not prepare for tracing. */
  readonly isOn: boolean
  start(name: string, options?: SpanOptions): Span
  /** The header `traceparent` of the span that runs now. */
  traceparent(): string | undefined
}

export const NO_SPAN: Span = {
  traceId: '',
  isRecording: false,
  within: (work) => work(),
  set: () => undefined,
  end: () => undefined,
}

export const noTracer: Tracer = { isOn: false, start: () => NO_SPAN, traceparent: () => undefined }

/** Metrics, traces and request logs of a process. */
export interface Telemetry {
  /** False: nothing is reported. */
  readonly isOn: boolean
  readonly metrics: Metrics
  readonly tracer: Tracer
  readonly requests: RequestFacts
  readonly lines: RequestLines
}

/** Reports nothing. */
export const noTelemetry: Telemetry = {
  isOn: false,
  metrics: noMetrics,
  tracer: noTracer,
  requests: new RequestFacts(false),
  lines: new RequestLines({ log: silentLog, metrics: noMetrics, hasAccessLog: false, slowMs: null, byOrganization: false }),
}
