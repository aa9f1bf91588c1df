import fastify from 'fastify'
import { expect, it } from 'vitest'
import { type Log, silentLog } from '../process/log.ts'
import { healthRoutes } from './health.ts'

it('names the parts that are away to whoever asks, and tells the log alone where they are', async () => {
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
    const answer = await app.inject('/readyz')
    expect([answer.statusCode, answer.json()]).toEqual([
      503,
      { status: 'not ready', problems: ['document store', 'chunk index', 'billing'] },
    ])
  }
  expect(logged).toEqual([{ problems: found }])
  found.length = 0
  const ready = await app.inject('/readyz')
  expect([ready.statusCode, ready.json()]).toEqual([200, { status: 'ready', problems: [] }])
})

it('is ready with a part away when the rest serves, and says so', async () => {
  const found = ['inference']
  const app = fastify()
  healthRoutes(
    app,
    async () => found,
    silentLog,
    ({ length }) => length < 2,
  )
  const degraded = await app.inject('/readyz')
  expect([degraded.statusCode, degraded.json()]).toEqual([200, { status: 'degraded', problems: ['inference'] }])
  found.push('billing')
  expect((await app.inject('/readyz')).statusCode).toBe(503)
})

it('looks once for all who ask meanwhile, and again for who asks later', async () => {
  const app = fastify()
  let looks = 0
  const { promise, resolve } = Promise.withResolvers<void>()
  healthRoutes(
    app,
    async () => {
      looks++
      await promise
      return []
    },
    silentLog,
  )
  const asked = Array.from({ length: 50 }, () => app.inject('/readyz'))
  for (let turn = 0; turn < 5; turn++) await new Promise((next) => setImmediate(next))
  resolve()
  for (const answer of await Promise.all(asked)) expect(answer.statusCode).toBe(200)
  expect(looks).toBe(1)
  expect((await app.inject('/readyz')).statusCode).toBe(200)
  expect(looks).toBe(2)
})
