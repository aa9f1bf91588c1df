import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { METRICS, type MetricDescription, PrometheusMetrics, readRarely } from './metrics.ts'

/** Returns the lines between the header of a metric and that of the next one. */
async function linesOf(metrics: PrometheusMetrics, name: string): Promise<readonly string[]> {
  const lines = (await metrics.text()).split('\n')
  return lines.filter((line) => line.startsWith(name))
}

describe('Metrics', () => {
  it('are text in the format of Prometheus, with escaped labels', async () => {
    const metrics = new PrometheusMetrics()
    metrics.add('kis_charged_usd_total', 0.5, 'a "b"\\\n')
    metrics.add('kis_charged_usd_total', 0.25, 'a "b"\\\n')
    expect(await metrics.text()).toBe(
      '# HELP kis_charged_usd_total Money that was charged, in USD.\n# TYPE kis_charged_usd_total counter\nkis_charged_usd_total{model="a \\"b\\"\\\\\\n"} 0.75\n',
    )
  })

  it('count a time in every bucket that it fits into', async () => {
    const metrics = new PrometheusMetrics()
    for (const seconds of [0.001, 0.02, 1_000]) metrics.observe('kis_http_request_seconds', seconds, '/v1/models')
    const lines = await linesOf(metrics, 'kis_http_request_seconds')
    expect(lines).toEqual(
      expect.arrayContaining([
        'kis_http_request_seconds_bucket{route="/v1/models",le="0.001"} 1',
        'kis_http_request_seconds_bucket{route="/v1/models",le="0.01"} 1',
        'kis_http_request_seconds_bucket{route="/v1/models",le="0.025"} 2',
        'kis_http_request_seconds_bucket{route="/v1/models",le="300"} 2',
        'kis_http_request_seconds_bucket{route="/v1/models",le="+Inf"} 3',
        'kis_http_request_seconds_sum{route="/v1/models"} 1000.021',
        'kis_http_request_seconds_count{route="/v1/models"} 3',
      ]),
    )
  })

  it('sum the values of several parts of the process, and omit unreadable ones', async () => {
    const metrics = new PrometheusMetrics()
    metrics.gauge('kis_jobs', () => [[2, 'documents', 'due']])
    const second = metrics.gauge('kis_jobs', async () => [[3, 'documents', 'due']])
    metrics.gauge('kis_wallet_holds', () => {
      throw new Error('the store is away')
    })
    expect(await linesOf(metrics, 'kis_')).toEqual(['kis_jobs{of="documents",state="due"} 5'])
    second[Symbol.dispose]()
    expect(await linesOf(metrics, 'kis_')).toEqual(['kis_jobs{of="documents",state="due"} 2'])
  })

  it('store a limited number of label sets, and count the others together', async () => {
    const metrics = new PrometheusMetrics()
    for (let i = 0; i < 3_000; i++) metrics.add('kis_organization_requests_total', 1, `org_${i}`)
    const lines = await linesOf(metrics, 'kis_organization_requests_total')
    expect(lines).toHaveLength(1_001)
    expect(lines.at(-1)).toBe('kis_organization_requests_total{organization="other"} 2000')
  })

  it('query a store rarely, however many requests read them', async () => {
    let reads = 0
    const read = readRarely(async () => [[++reads]])
    expect(await Promise.all([read(), read()])).toEqual([[[1]], [[1]]])
  })

  it('are all on the page for operators, with their kind and their labels', () => {
    const page = readFileSync(new URL('../../../docs/operate/observability.md', import.meta.url), 'utf8')
    const rows = [...page.matchAll(/^\| `((?:kis|process|nodejs)_\w+)` \| (\w+) \| (.*?) \|/gm)].map(([, ...cells]) => cells)
    const expected = Object.entries<MetricDescription>(METRICS).map(([name, { kind, labels }]) => [
      name,
      kind,
      labels.map((label) => `\`${label}\``).join(', '),
    ])
    expect(rows).toEqual(expected)
  })
})
