import type { Log } from '../../subgraphs/common/process/log.ts'
import { type Metrics, noMetrics, PrometheusMetrics } from '../../subgraphs/common/telemetry/metrics.ts'
import { RequestFacts } from '../../subgraphs/common/telemetry/request-facts.ts'
import { RequestLines } from '../../subgraphs/common/telemetry/request-lines.ts'
import { noTracer, type Telemetry, type Tracer } from '../../subgraphs/common/telemetry/telemetry.ts'
import { serveMetrics } from './metrics-server.ts'
import { watchProcess } from './process-metrics.ts'

/** The process that tells. */
interface Whose {
  /** `all` for all roles in one process. */
  readonly role: string
  readonly version: string
}

export interface TelemetrySettings {
  readonly hasAccessLog: boolean
  /** Null: no request counts as slow. */
  readonly slowMs: number | null
  /** Null: nothing is measured. */
  readonly metrics: { readonly host: string; readonly port: number; readonly byOrganization: boolean } | null
  /** Null: nothing is traced. `serviceName` null: `kis`, and the role. */
  readonly traces: { readonly endpoint: string; readonly ratio: number; readonly serviceName: string | null } | null
}

/** Opens what the settings ask for. `stack` closes it. */
export async function openTelemetry(
  whose: Whose,
  { hasAccessLog, slowMs, metrics: metricsSettings, traces }: TelemetrySettings,
  log: Log,
  stack: AsyncDisposableStack,
): Promise<Telemetry> {
  const metrics: Metrics = metricsSettings ? await openMetrics(whose, metricsSettings, log, stack) : noMetrics
  const byOrganization = metricsSettings?.byOrganization ?? false
  const wantsFacts = hasAccessLog || slowMs !== null || byOrganization
  return {
    isOn: wantsFacts || metricsSettings !== null || traces !== null,
    metrics,
    tracer: traces ? await openTraces(whose, traces, log, stack) : noTracer,
    requests: new RequestFacts(wantsFacts),
    lines: new RequestLines({ log, metrics, hasAccessLog, slowMs, byOrganization }),
  }
}

async function openTraces(
  { role, version }: Whose,
  { endpoint, ratio, serviceName }: NonNullable<TelemetrySettings['traces']>,
  log: Log,
  stack: AsyncDisposableStack,
): Promise<Tracer> {
  // Its packages are loaded for those alone who want traces.
  const { openTracer } = await import('./open-tracer.ts')
  const name = serviceName ?? (role === 'all' ? 'kis' : `kis-${role}`)
  return stack.use(openTracer({ endpoint, ratio, serviceName: name, version, log }))
}

async function openMetrics(
  { role, version }: Whose,
  { host, port }: NonNullable<TelemetrySettings['metrics']>,
  log: Log,
  stack: AsyncDisposableStack,
): Promise<Metrics> {
  const metrics = new PrometheusMetrics()
  metrics.gauge('kis_build_info', () => [[1, version, role]])
  stack.use(watchProcess(metrics))
  const server = stack.use(await serveMetrics(metrics, { host, port }))
  log.info({ url: server.url }, 'metrics')
  return metrics
}
