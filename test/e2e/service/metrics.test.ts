import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { METRICS } from '../../../subgraphs/common/telemetry/metrics.ts'
import { mockCatalog } from '../../support/catalog.ts'
import { type Caller, createCaller, newOrganization } from '../../support/client.ts'
import { METERED_INPUT_TOKENS, MeteredEngine, type Script } from '../../support/engines/metered-engine.ts'
import { type Sample, scrape, sumOf } from '../../support/engines/prometheus.ts'
import { eventually } from '../../support/eventually.ts'
import { freePorts, type Service, startEmbedded, startFiveProcesses } from '../../support/processes/service.ts'

const ROLES = ['billing', 'knowledge', 'inference', 'gateway', 'rest-adapter']
const ENV = { KIS_METRICS_ORGANIZATIONS: 'on' }
const IDS = /\b(?:req|key|col|doc|file|hold)_[0-9a-f]{8}/

interface Measured {
  readonly service: Service
  readonly ports: readonly number[]
}

async function startOne(catalog: string): Promise<Measured> {
  const ports = await freePorts(1)
  return { service: await startEmbedded({ catalog, env: { ...ENV, KIS_METRICS_PORT: String(ports[0]) } }), ports }
}

async function startFive(catalog: string): Promise<Measured> {
  const ports = await freePorts(ROLES.length)
  const createEnv = (name: string) => ({ KIS_METRICS_PORT: String(ports[ROLES.indexOf(name.replace(/-\d+$/, ''))]) })
  return { service: await startFiveProcesses({ catalog, env: ENV, createEnv }), ports }
}

const STARTS: readonly (readonly [string, (catalog: string) => Promise<Measured>])[] = [
  ['one process', startOne],
  ['five processes', startFive],
]

describe.each(STARTS)('Metrics of %s', (_name, start) => {
  let engine: MeteredEngine
  let measured: Measured
  let caller: Caller & { readonly organizationId: string }
  beforeAll(async () => {
    engine = await MeteredEngine.start()
    measured = await start(mockCatalog(engine.url))
    const { service } = measured
    caller = await newOrganization(createCaller(service, service.key), service)
  }, 120_000)
  afterAll(async () => {
    await measured?.service.close()
    await engine?.[Symbol.asyncDispose]()
  })

  /** Of all processes. */
  const scrapeAll = async (): Promise<readonly Sample[]> => (await Promise.all(measured.ports.map(scrape))).flat()
  const chat = async (script: Script, model = 'mock-chat') => {
    const stream = await caller.openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content: JSON.stringify(script) }],
      stream: true,
    })
    for await (const _chunk of stream);
  }

  it('show duration, usage and cost of a streamed chat, at every part that it passed', async () => {
    await chat({ id: 'measured', pieces: 5, usage: 'end' })
    await eventually(async () => sumOf(await scrapeAll(), 'kis_http_request_seconds_count', { route: '/v1/chat/completions' }) === 1)
    const samples = await scrapeAll()
    const count = (name: string, labels: Record<string, string> = {}) => sumOf(samples, name, labels)
    expect(count('kis_http_requests_total', { route: '/v1/chat/completions', method: 'POST', status: '200' })).toBe(1)
    expect(count('kis_http_first_byte_seconds_count', { route: '/v1/chat/completions' })).toBe(1)
    expect(count('kis_operation_seconds_count', { to: 'gateway', type: 'subscribe', outcome: 'ok' })).toBe(1)
    expect(count('kis_operation_seconds_count', { to: 'inference', type: 'subscribe', outcome: 'ok' })).toBe(1)
    expect(count('kis_operation_seconds_count', { to: 'billing', outcome: 'ok' })).toBeGreaterThan(1)
    expect(count('kis_engine_seconds_count', { engine: 'mock', operation: 'chat', outcome: 'ok' })).toBe(1)
    expect(count('kis_engine_first_token_seconds_count', { engine: 'mock' })).toBe(1)
    expect(count('kis_tokens_total', { model: 'mock-chat', direction: 'input' })).toBe(METERED_INPUT_TOKENS)
    expect(count('kis_tokens_total', { model: 'mock-chat', direction: 'output' })).toBe(5)
    expect(count('kis_charged_usd_total', { model: 'mock-chat' })).toBeCloseTo(0.000_04, 9)
    expect(count('kis_calls_charged_total')).toBe(1)
    expect(count('kis_store_seconds_count', { subgraph: 'billing', operation: 'updateOne', outcome: 'ok' })).toBeGreaterThan(1)
    expect(count('kis_cache_lookups_total', { cache: 'principals' })).toBeGreaterThan(0)
    expect(count('kis_engine_breaker_open', { engine: 'mock' })).toBe(0)
    expect(count('kis_wallet_holds')).toBe(0)
    expect(count('kis_outbox_lag_seconds')).toBeLessThan(60)
    expect(count('kis_organization_requests_total', { organization: caller.organizationId })).toBe(1)
    expect(count('kis_organization_charged_usd_total', { organization: caller.organizationId })).toBeCloseTo(0.000_04, 9)
  })

  it('show an engine that always fails', async () => {
    for (let i = 0; i < 6; i++) await chat({ id: 'failing', pieces: 1, usage: 'end', fails: 'refuses' }).catch(() => undefined)
    const samples = await scrapeAll()
    expect(sumOf(samples, 'kis_engine_seconds_count', { engine: 'mock', outcome: 'engine_unavailable' })).toBeGreaterThanOrEqual(5)
    expect(sumOf(samples, 'kis_engine_breaker_open', { engine: 'mock' })).toBe(1)
  })

  it('count open sockets and their operations', async () => {
    const client = caller.socket()
    const events = client.iterate({ query: 'subscription { walletChanged { __typename } }' })
    const first = events.next()
    await eventually(async () => sumOf(await scrapeAll(), 'kis_subscriptions', { door: 'clients' }) === 1)
    expect(sumOf(await scrapeAll(), 'kis_sockets', { door: 'clients' })).toBe(1)
    await events.return!()
    await first.catch(() => undefined)
    await client.dispose()
    await eventually(async () => sumOf(await scrapeAll(), 'kis_sockets', { door: 'clients' }) === 0)
    expect(sumOf(await scrapeAll(), 'kis_socket_operations_total')).toBe(1)
  })

  it('are all described, and name no caller, no object and no address', async () => {
    await caller.rest('GET', '/v1/nothing-that-exists')
    const samples = await scrapeAll()
    for (const { name, labels } of samples) {
      const described = METRICS[name.replace(/_(?:bucket|sum|count)$/, '') as keyof typeof METRICS] ?? METRICS[name as keyof typeof METRICS]
      expect(described, name).toBeDefined()
      expect(Object.keys(labels).filter((label) => label !== 'le')).toEqual(described.labels)
      expect(JSON.stringify(labels)).not.toMatch(IDS)
      expect(JSON.stringify(labels)).not.toMatch(/nothing-that-exists/)
    }
    expect(sumOf(samples, 'kis_http_requests_total', { route: 'none', status: '404' })).toBe(1)
    expect(sumOf(samples, 'kis_build_info')).toBe(measured.ports.length)
    expect(sumOf(samples, 'process_resident_memory_bytes')).toBeGreaterThan(1e6)
  })

  it('are on their own port only, which serves nothing else', async () => {
    expect((await fetch(`${measured.service.rest}/metrics`)).status).toBe(404)
    const [port] = measured.ports
    for (const path of ['/', '/v1/models', '/graphql']) expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(404)
    expect((await fetch(`http://127.0.0.1:${port}/metrics`, { method: 'POST' })).status).toBe(405)
  })
})
