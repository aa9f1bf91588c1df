import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Context,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { NO_SPAN, type Span, type Tracer } from '../../subgraphs/common/telemetry/telemetry.ts'

/** Spans that wait to be sent. Beyond it spans are dropped: traces must not take the memory of the service. */
const MAX_WAITING_SPANS = 4_096
const EXPORT_EVERY_MS = 1_000
/** The longest that the end of the process waits for the last spans. */
const LAST_EXPORT_MS = 3_000
const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const

const isSampled = ({ traceFlags }: SpanContext) => (traceFlags & TraceFlags.SAMPLED) !== 0

export interface TracerOptions {
  /** The base address of a collector that takes OTLP over HTTP: traces go to its `/v1/traces`. */
  readonly endpoint: string
  /** The share of traces that are kept, 0 to 1. A caller that sends `traceparent` decides for its own. */
  readonly ratio: number
  /** The `service.name` of all spans. */
  readonly serviceName: string
  readonly version: string
  readonly log: Pick<Log, 'warn'>
}

/**
 * Traces by OpenTelemetry's SDK. Import this file only where traces are wanted: its packages take 26 MB. Nothing is
 * registered for the whole process, so that no other package makes spans.
 */
export function openTracer({ endpoint, ratio, serviceName, version, log }: TracerOptions): Tracer & AsyncDisposable {
  const logWarning = (message: string) => log.warn({ cause: message }, 'traces')
  const silent = () => undefined
  diag.setLogger({ error: logWarning, warn: logWarning, info: silent, debug: silent, verbose: silent }, { logLevel: DiagLogLevel.WARN })
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': serviceName, 'service.version': version, 'process.pid': process.pid }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [new BatchSpanProcessor({ exporter, maxQueueSize: MAX_WAITING_SPANS, scheduledDelayMillis: EXPORT_EVERY_MS })],
  })
  const tracer = provider.getTracer('kis', version)
  const running = new AsyncLocalStorage<Context>()

  return {
    isOn: true,

    start(name, { kind = 'internal', attributes = {}, traceparent, begins = false } = {}): Span {
      const remote = traceparent === undefined ? null : parseTraceParent(traceparent)
      const above = remote ? trace.setSpanContext(ROOT_CONTEXT, { ...remote, isRemote: true }) : running.getStore()
      if (!above && !begins) return NO_SPAN
      const outer = above && trace.getSpanContext(above)
      // Most traces are not kept. What runs below their first span needs no span of its own.
      if (outer && !remote && !isSampled(outer)) return { ...NO_SPAN, traceId: outer.traceId }
      const parent = above ?? ROOT_CONTEXT
      const span = tracer.startSpan(name, { kind: KINDS[kind], attributes }, parent)
      const context = trace.setSpan(parent, span)
      return {
        traceId: span.spanContext().traceId,
        isRecording: span.isRecording(),
        within: (work) => running.run(context, work),
        set: (more) => void span.setAttributes(more),
        end(error) {
          if (error !== undefined && span.isRecording()) {
            span.setStatus({ code: SpanStatusCode.ERROR, message: error })
            span.setAttribute('error.type', error)
          }
          if (span.isRecording()) span.end()
        },
      }
    },

    traceparent() {
      const context = running.getStore()
      const span = context && trace.getSpanContext(context)
      return span && `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}`
    },

    async [Symbol.asyncDispose]() {
      const { promise: late, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, LAST_EXPORT_MS)
      await Promise.race([provider.shutdown().catch((error: Error) => logWarning(error.message)), late])
      clearTimeout(timer)
      diag.disable()
    },
  }
}
