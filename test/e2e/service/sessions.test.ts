import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { testCatalog } from '../../support/catalog.ts'
import { type Caller, createCaller, type Json } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { type DistributedService, type Service, startEmbedded, startFiveProcesses } from '../../support/processes/service.ts'

const OWN = { 'sec-fetch-site': 'same-origin' }
const CATALOG = testCatalog('http://127.0.0.1:9')
/** The promise is 5 s. The rest is for a busy machine. */
const ENDED_MS = 20_000

const post = (url: string, body: object, headers: Record<string, string>) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) })

/** The answer of `/graphql` to a page of the service with this cookie. */
async function queryAs(
  graphql: string,
  cookie: string,
  query: string,
  headers: Record<string, string> = OWN,
): Promise<{ status: number; body: Json }> {
  const response = await post(graphql, { query }, { cookie, ...headers })
  return { status: response.status, body: await response.json() }
}

const status = async (graphql: string, cookie: string) => (await queryAs(graphql, cookie, '{ viewer { id } }')).status

/** A socket of the portal. `closed` gives the code of its end. */
async function openSocket(graphql: string, cookie: string) {
  const socket = new WebSocket(graphql.replace('http', 'ws'), 'graphql-transport-ws', {
    headers: { cookie, origin: new URL(graphql).origin },
  })
  const closed = new Promise<number>((resolve) => socket.on('close', resolve))
  await new Promise((resolve, reject) => {
    socket.on('open', () => socket.send('{"type":"connection_init"}'))
    socket.on('message', resolve)
    socket.on('close', () => reject(new Error('refused')))
  })
  return { socket, closed }
}

async function createKey(caller: Caller, scopes: readonly string[] = ['inference']) {
  const { body } = await caller.rest('POST', '/v1/keys', { name: 'person', scopes })
  return { id: body.id as string, key: body.key as string }
}

describe('Browser sessions', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-sessions-'))
  let service: Service
  let operator: Caller
  beforeAll(async () => {
    service = await startEmbedded({ catalog: CATALOG, folder })
    operator = createCaller(service, service.key)
  }, 90_000)
  afterAll(async () => {
    await service?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('act for a key in GraphQL, at /v1 and on sockets, for pages of the service only', async () => {
    const { id, key } = await createKey(operator)
    const session = await createCaller(service, key).signIn()
    const seen = await queryAs(
      service.graphql,
      session.cookie,
      '{ viewer { id } viewerSession { id isCurrent } sessions { edges { node { id userAgent apiKey { id } } } } }',
    )
    expect(seen.body.data).toEqual({
      viewer: { id },
      viewerSession: { id: session.id, isCurrent: true },
      sessions: { edges: [{ node: { id: session.id, userAgent: 'node', apiKey: { id } } }] },
    })
    const { socket } = await openSocket(service.graphql, session.cookie)
    socket.terminate()
    const rest = (headers: Record<string, string>) =>
      fetch(`${service.rest}/v1/models`, { headers: { cookie: session.cookie, ...headers } })
    expect((await rest(OWN)).status).toBe(200)
    const { cookie } = session
    for (const headers of [{}, { origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'none' }]) {
      const response = await rest(headers)
      expect([headers, response.status, response.headers.get('access-control-allow-credentials')]).toEqual([headers, 401, null])
      expect((await queryAs(service.graphql, cookie, '{ viewer { id } }', headers)).status).toBe(401)
    }
    expect((await rest({ ...OWN, authorization: 'Bearer kis_live_wrong' })).status).toBe(401)
    // As the reference at `/docs` sends it.
    expect((await rest({ ...OWN, authorization: 'Bearer' })).status).toBe(200)
    const mcp = await post(
      `${service.rest}/mcp`,
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      { ...OWN, cookie, accept: 'application/json, text/event-stream' },
    )
    expect(mcp.status).toBe(401)
    const token = cookie.split('=')[1]!
    expect((await fetch(`${service.rest}/v1/models`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(401)
    expect(
      (
        await fetch(service.graphql, {
          method: 'POST',
          headers: { cookie, ...OWN, 'content-type': 'text/plain' },
          body: '{"query":"{ viewer { id } }"}',
        })
      ).ok,
    ).toBe(false)
  })

  it('survive a restart, and end with their key within 5 s, on sockets too', async () => {
    const { id, key } = await createKey(operator)
    const { cookie } = await createCaller(service, key).signIn()
    const operatorKey = service.key
    await service.close()
    service = { ...(await startEmbedded({ catalog: CATALOG, folder })), key: operatorKey }
    operator = createCaller(service, operatorKey)
    expect(await status(service.graphql, cookie)).toBe(200)
    const { closed } = await openSocket(service.graphql, cookie)
    await operator.rest('DELETE', `/v1/keys/${id}`)
    await eventually(async () => (await status(service.graphql, cookie)) === 401, ENDED_MS)
    expect(await closed).toBe(4401)
  }, 90_000)

  it('are listed and ended over REST', async () => {
    const { key } = await createKey(operator)
    const person = createCaller(service, key)
    const [first, second] = [await person.signIn(), await person.signIn()]
    const { body } = await person.rest('GET', '/v1/sessions')
    expect(body.data.map((each: Json) => [each.id, each.object, each.is_current])).toEqual([
      [second.id, 'session', false],
      [first.id, 'session', false],
    ])
    expect((await person.rest('DELETE', `/v1/sessions/${first.id}`)).body).toEqual({ id: first.id, object: 'session', deleted: true })
    expect((await person.rest('DELETE', `/v1/sessions/${first.id}`)).status).toBe(404)
    await eventually(async () => (await status(service.graphql, first.cookie)) === 401, ENDED_MS)
    expect(await status(service.graphql, second.cookie)).toBe(200)
  })

  it('are not opened with a wrong key, nor for another site', async () => {
    const session = new URL('/session', service.graphql).href
    const wrong = await post(session, { api_key: `kis_live_${'x'.repeat(36)}` }, OWN)
    expect([wrong.status, wrong.headers.getSetCookie()]).toEqual([401, []])
    const crossOrigin = await post(session, { api_key: service.key }, { origin: 'https://evil.example' })
    expect([crossOrigin.status, crossOrigin.headers.getSetCookie()]).toEqual([403, []])
    const form = await fetch(session, { method: 'POST', headers: OWN, body: new URLSearchParams({ api_key: service.key }) })
    expect([form.status, form.headers.getSetCookie()]).toEqual([400, []])
  })
})

describe('Sessions of two gateways', () => {
  let service: DistributedService
  let gateways: readonly string[]
  beforeAll(async () => {
    service = await startFiveProcesses({ catalog: CATALOG, replicas: { gateway: 2 } })
    gateways = ['gateway-1', 'gateway-2'].map((name) => `${service.processes.get(name)!.address}/graphql`)
  }, 120_000)
  afterAll(() => service?.close())

  it('are valid at both and at the REST adapter, and end at both', async () => {
    const { id, cookie } = await createCaller({ rest: service.rest, graphql: gateways[0]! }, service.key).signIn()
    for (const gateway of gateways) expect(await status(gateway, cookie)).toBe(200)
    const models = () => fetch(`${service.rest}/v1/models`, { headers: { cookie, ...OWN } })
    expect((await models()).status).toBe(200)
    const sockets = await Promise.all(gateways.map((gateway) => openSocket(gateway, cookie)))
    const ended = await queryAs(gateways[1]!, cookie, `mutation { revokeSession(id: "${id}") { session { id } } }`)
    expect(ended.body.data.revokeSession.session.id).toBe(id)
    expect(await Promise.all(sockets.map(({ closed }) => closed))).toEqual([4401, 4401])
    for (const gateway of gateways) await eventually(async () => (await status(gateway, cookie)) === 401, ENDED_MS)
    await eventually(async () => (await models()).status === 401, ENDED_MS)
  }, 90_000)
})
