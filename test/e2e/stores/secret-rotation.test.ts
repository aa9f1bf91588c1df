import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { agentCatalog, says, script } from '../../support/agents.ts'
import { balancedWallet, type Caller, type Json, makeCaller, newOrganization } from '../../support/client.ts'
import { TestMcpServer } from '../../support/engines/mcp-server.ts'
import { VendorCloud } from '../../support/engines/vendor-cloud.ts'
import { type Place, WebhookReceiver } from '../../support/engines/webhook-receiver.ts'
import { eventually } from '../../support/eventually.ts'
import { kis, launchKis } from '../../support/processes/cli.ts'
import { freePorts, type Service, ServiceProcess, startEmbedded } from '../../support/processes/service.ts'
import { soaking } from '../../support/soak.ts'

const HEADER = 'Bearer of a secret'
const KILLS = soaking ? 20 : 2
/** From the line `ready` to the kill: the job takes about so long. */
const KILLED_WITHIN_MS = 150
const ENDPOINTS = 12

describe('a rotation of the secret of an embedded service', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-rotation-'))
  const data = join(folder, 'data')
  const previous = join(data, 'secret.previous')
  let cloud: VendorCloud
  let tools: TestMcpServer
  let receiver: WebhookReceiver
  let env: Record<string, string>
  let service: Service
  let operatorKey: string
  let tenant: Caller
  let used: Caller
  let idle: Caller
  let cookie: string
  let agent: Json
  let places: { readonly id: string; readonly place: Place }[]

  const start = async () => {
    service = await startEmbedded({ folder, catalog: agentCatalog(cloud), env })
    operatorKey ??= service.key
    tenant = tenant && makeCaller(service, tenant.key)
    used = used && makeCaller(service, used.key)
    idle = idle && makeCaller(service, idle.key)
  }
  const restart = async () => {
    await service.close()
    await start()
  }
  const secret = (...args: readonly string[]) => launchKis({ KIS_DATA_DIR: data }, 'secret', ...args).ended
  const newKey = async (name: string) =>
    makeCaller(service, (await tenant.rest('POST', '/v1/keys', { name, scopes: ['inference'] })).body.key)

  beforeAll(async () => {
    cloud = await VendorCloud.start()
    tools = await TestMcpServer.start()
    receiver = await WebhookReceiver.start()
    env = { KIS_EGRESS_ALLOW: `${tools.hostAndPort},${receiver.host}` }
    await start()
    tenant = await newOrganization(makeCaller(service, operatorKey), service)
    used = await newKey('used')
    idle = await newKey('idle')
    cookie = (await used.signIn()).cookie
    const mcp_servers = [{ name: 'crm', url: tools.toUrl('good'), headers: { authorization: HEADER } }]
    agent = (await tenant.rest('POST', '/v1/agents', { code: 'clerk', name: 'Clerk', model: 'scripted', mcp_servers })).body
    places = await Promise.all(
      Array.from({ length: ENDPOINTS }, async (_, i) => {
        const place = receiver.at(`/${i}`)
        const { body } = await tenant.rest('POST', '/v1/webhooks', { url: place.url, event_types: ['agent_run.completed'] })
        place.secret = body.secret
        expect(body.secret).toMatch(/^whsec_/)
        return { id: body.id as string, place }
      }),
    )
  }, 120_000)
  afterAll(async () => {
    await service?.close()
    await receiver?.[Symbol.asyncDispose]()
    await tools?.[Symbol.asyncDispose]()
    await cloud?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  /** The used key, a session, an agent with its headers, and a webhook with the secret of its first day. */
  async function allWorks(): Promise<void> {
    expect((await used.rest('GET', '/v1/models')).status).toBe(200)
    const session = await fetch(service.graphql, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', cookie },
      body: '{"query":"{ viewer { id } }"}',
    })
    expect(session.status).toBe(200)
    tools.headers.length = 0
    script(cloud, says('Hello.'))
    const { body: run } = await tenant.rest('POST', `/v1/agents/${agent.id}/runs`, { input: 'Hello?' })
    expect(run.status).toBe('completed')
    expect(new Set(tools.headers.map(({ authorization }) => authorization))).toEqual(new Set([HEADER]))
    for (const { id, place } of places) {
      place.received.length = 0
      expect((await tenant.rest('POST', `/v1/webhooks/${id}/ping`)).status).toBe(200)
      await eventually(() => place.taken.length > 0 || place.faults.length > 0)
      expect(place.faults).toEqual([])
    }
  }
  const left = async (code: number) => {
    const shown = await kis(service, operatorKey, 'secret', '--json')
    expect(shown.code, shown.errors).toBe(code)
    return JSON.parse(shown.lines[0]!)
  }

  it('keeps all that works working: before, between and after; and ends when the last key was used', async () => {
    await allWorks()
    expect(await left(0)).toMatchObject({ billing: { state: 'NONE' }, inference: { state: 'NONE' } })
    const first = readFileSync(join(data, 'secret'), 'utf8')
    expect((await secret('rotate')).code).toBe(0)
    expect(readFileSync(previous, 'utf8')).toBe(first)
    expect(await secret('rotate')).toMatchObject({ code: 2, errors: expect.stringContaining('A rotation is under way') })
    await allWorks()
    await restart()
    await allWorks()
    await eventually(async () => {
      const { billing, inference, keys } = await left(1)
      const [, ...others] = billing.parts
      return inference.state === 'MOVED' && keys.length === 1 && others.length > 0 && others.every((part: Json) => part.left === 0)
    }, 60_000)
    expect(await left(1)).toMatchObject({
      billing: { state: 'MOVING', parts: [{ left: 1 }, { left: 0 }, { kind: 'WEBHOOK_ENDPOINTS', current: ENDPOINTS, left: 0 }] },
      keys: [{ name: 'idle', lastUsedAt: null }],
    })
    const archive = ['export', join(folder, 'archive.kis')]
    const passphrase = { KIS_DATA_DIR: data, KIS_BACKUP_PASSPHRASE: 'long enough to be one' }
    const withSecret = await launchKis(passphrase, ...archive, '--with-secret').ended
    expect(withSecret).toMatchObject({ code: 2, errors: expect.stringContaining('The secret is being rotated') })
    expect((await launchKis(passphrase, ...archive).ended).code).toBe(0)

    await service.close()
    renameSync(previous, `${previous}.aside`)
    const early = ServiceProcess.launch([], { ...env, KIS_DATA_DIR: data })
    await eventually(() => early.hasEnded, 60_000)
    expect(early.errors).toMatch(/billing\.sqlite was made with another secret.* KIS_SECRET_PREVIOUS until `kis secret` says/)
    renameSync(`${previous}.aside`, previous)

    // The service goes on without a file that it cannot open, and that has not taken the new secret yet.
    const blobs = new DatabaseSync(join(data, 'blobs.sqlite'))
    blobs.exec('BEGIN IMMEDIATE')
    const [port] = await freePorts(1)
    const graphql = `http://127.0.0.1:${port}/graphql`
    const waiting = ServiceProcess.launch([], { ...env, KIS_DATA_DIR: data, KIS_CATALOG: join(folder, 'catalog.yaml'), PORT: String(port) })
    try {
      const asked = () => makeCaller({ ...service, graphql }, idle.key).graphql('{ models { id } }')
      await eventually(async () => (await asked().catch(() => null))?.data?.models !== undefined, 60_000)
      await eventually(async () => (await kis({ graphql }, operatorKey, 'secret', '--json')).code === 0, 60_000)
      expect(existsSync(previous)).toBe(true)
      blobs.exec('ROLLBACK')
      await eventually(() => !existsSync(previous), 30_000)
    } finally {
      blobs.close()
      await waiting.end()
    }
    await start()
    expect(await left(0)).toMatchObject({ billing: { state: 'NONE' }, inference: { state: 'NONE' } })
    await allWorks()
    expect((await idle.rest('GET', '/v1/models')).status).toBe(200)
    await balancedWallet(tenant)
  }, 400_000)

  it(`survives ${KILLS} kills at random moments, and revokes what nobody uses when it is told to`, async () => {
    const unused = await newKey('unused')
    await service.close()
    expect((await secret('rotate')).code).toBe(0)
    for (let kill = 0; kill < KILLS; kill++) {
      const killed = await ServiceProcess.start([], { ...env, KIS_DATA_DIR: data, KIS_CATALOG: join(folder, 'catalog.yaml') })
      await new Promise((resolve) => setTimeout(resolve, Math.random() * KILLED_WITHIN_MS))
      await killed.end('SIGKILL')
    }
    await start()
    await allWorks()
    expect((await idle.rest('GET', '/v1/models')).status).toBe(200)
    await eventually(async () => (await left(1)).keys.length === 1, 30_000)
    expect((await kis(service, operatorKey, 'secret', 'finish')).code).toBe(2)
    const finished = await kis(service, operatorKey, 'secret', 'finish', '--without-unused-keys')
    expect(finished.lines[0], finished.errors).toBe('revoked 1 keys and 0 invitations')
    await eventually(() => !existsSync(previous), 30_000)
    await restart()
    await allWorks()
    expect((await makeCaller(service, unused.key).rest('GET', '/v1/models')).status).toBe(401)
    const { body } = await tenant.rest('GET', '/v1/keys?limit=100')
    expect(body.data.find(({ name }: Json) => name === 'unused').revoked_at).not.toBeNull()
    await balancedWallet(tenant)
  }, 400_000)
})
