import fastify from 'fastify'
import { expect, it, onTestFinished, vi } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import { type Log, silentLog } from '../process/log.ts'
import { healthRoutes } from './health.ts'

it('names unavailable parts to every caller, and their addresses only in the log', async () => {
  const found = [
    'document store: MongoDB cannot be reached: connect ECONNREFUSED 10.0.0.7:27017',
    'document store: it is too old',
    'chunk index: /var/data/index.sqlite cannot be made',
    'billing',
  ]
  const logged: unknown[] = []
  const log: Log = { ...silentLog, warn: (entry: unknown) => void logged.push(entry) }
  const app = fastify()
  healthRoutes(app, async () => found, log)
  for (let i = 0; i < 3; i++) {
    const response = await app.inject('/readyz')
    expect([response.statusCode, response.json()]).toEqual([
      503,
      { status: 'not ready', problems: ['document store', 'chunk index', 'billing'] },
    ])
  }
  expect(logged).toEqual([{ problems: found }])
  found.length = 0
  await eventually(async () => (await app.inject('/readyz')).statusCode === 200)
  expect((await app.inject('/readyz')).json()).toEqual({ status: 'ready', problems: [] })
})

it('is ready with a part unavailable if the rest serves, and says so', async () => {
  const found = ['inference']
  const app = fastify()
  healthRoutes(app, async () => found, silentLog, { serves: ({ length }) => length < 2 })
  const degraded = await app.inject('/readyz')
  expect([degraded.statusCode, degraded.json()]).toEqual([200, { status: 'degraded', problems: ['inference'] }])
  found.push('billing')
  await eventually(async () => (await app.inject('/readyz')).statusCode === 503)
})

it('checks once for concurrent and quick repeated probes, and again for later ones', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const app = fastify()
  let checks = 0
  const { promise, resolve } = Promise.withResolvers<void>()
  healthRoutes(
    app,
    async () => {
      checks++
      await promise
      return []
    },
    silentLog,
  )
  await app.ready()
  const requests = Array.from({ length: 50 }, () => app.inject('/readyz'))
  for (let tick = 0; tick < 5; tick++) await new Promise((next) => setImmediate(next))
  resolve()
  for (const response of await Promise.all(requests)) expect(response.statusCode).toBe(200)
  for (let i = 0; i < 10; i++) await app.inject('/readyz')
  expect(checks).toBe(1)
  await vi.advanceTimersByTimeAsync(1_000)
  expect((await app.inject('/readyz')).statusCode).toBe(200)
  expect(checks).toBe(2)
})

it('is not ready when a part does not report its state, and delays no probe for it', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const app = fastify()
  healthRoutes(app, () => new Promise(() => undefined), silentLog)
  await app.ready()
  const request = app.inject('/readyz')
  await vi.advanceTimersByTimeAsync(5_000)
  const response = await request
  expect([response.statusCode, response.json()]).toEqual([
    503,
    { status: 'not ready', problems: ['a part does not report its health in time'] },
  ])
})

it('is not ready from the moment of its stop, though it still serves, and lives until it has stopped', async () => {
  const stopping = new AbortController()
  const app = fastify()
  healthRoutes(app, async () => [], silentLog, { serves: () => true, stopping: stopping.signal })
  expect((await app.inject('/readyz')).statusCode).toBe(200)
  stopping.abort()
  const response = await app.inject('/readyz')
  expect([response.statusCode, response.json()]).toEqual([503, { status: 'stopping', problems: [] }])
  expect((await app.inject('/healthz')).statusCode).toBe(200)
})

it('reports the running version', async () => {
  const app = fastify()
  healthRoutes(app, async () => [], silentLog)
  expect((await app.inject('/healthz')).json()).toEqual({
    status: 'ok',
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    api: 'v1',
    schema: expect.stringMatching(/^[0-9a-f]{12}$/),
  })
})
