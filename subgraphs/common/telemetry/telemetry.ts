import { silentLog } from '../process/log.ts'
import { type Metrics, noMetrics } from './metrics.ts'
import { RequestFacts } from './request-facts.ts'
import { RequestLines } from './request-lines.ts'

export type Attributes = Readonly<Record<string, string | number | boolean>>

interface SpanOptions {
  /** `server`: it answers another process. `client`: another process answers it. Default: neither. */
  readonly kind?: 'server' | 'client' | 'internal'
  readonly attributes?: Attributes
  /** The header `traceparent` of another process. Default: the span that runs now. */
  readonly traceparent?: string | undefined
  /** Begins a trace if there is none. By default nothing is then traced: what polls in the background is no request. */
  readonly begins?: boolean
}

/** A piece of work in a trace. */
export interface Span {
  /** 32 hexadecimal digits. Empty: there is no trace. */
  readonly traceId: string
  /** False: its trace is not kept, so nothing need be told of it. */
  readonly isRecording: boolean
  /** Runs work, whose own spans are below this one. */
  within<T>(work: () => T): T
  set(attributes: Attributes): void
  /** `error`: why it failed, a code. Only the first call counts. */
  end(error?: string | undefined): void
}

export interface Tracer {
  /** False: nothing is traced, and nothing need be prepared for it. */
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
