import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { agentCatalog, says, script } from '../../support/agents.ts'
import { balancedWallet, type Caller, createCaller, type Json, newOrganization } from '../../support/client.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { TestMcpServer } from '../../support/engines/mcp-server.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase } from '../../support/engines/mongodb.ts'
import { VendorCloud } from '../../support/engines/vendor-cloud.ts'
import { type ReceiverEndpoint, WebhookReceiver } from '../../support/engines/webhook-receiver.ts'
import { eventually } from '../../support/eventually.ts'
import { launchKis } from '../../support/processes/cli.ts'
import { type Service, ServiceProcess, startEmbedded, TEST_SECRET } from '../../support/processes/service.ts'
import { soaking } from '../../support/soak.ts'

const HEADER = 'Bearer of a secret'
const NEW_SECRET = 'the next secret for tests, long enough to be one'
const KILLS = soaking ? 20 : 1
/** Versions of one agent, which are all sealed anew. */
const VERSIONS = 20

/** Where the data and the secret are. */
interface Stores {
  /** Of every process, but for the secret. */
  readonly env: Readonly<Record<string, string>>
  /** Of the processes before a rotation, of its command, and of the processes after it. */
  readonly before: Readonly<Record<string, string>>
  readonly rotating: Readonly<Record<string, string>>
  readonly after: Readonly<Record<string, string>>
}

function suite(name: string, { env, before, rotating, after }: Stores, drop: () => Promise<unknown> = async () => undefined): void {
  describe.concurrent(`Secret rotation on ${name}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'kis-rotation-'))
    const data = join(folder, 'data')
    let cloud: VendorCloud
    let tools: TestMcpServer
    let receiver: WebhookReceiver
    let service: Service
    let tenant: Caller
    let agent: Json
    let cookie: string
    let endpoint: ReceiverEndpoint
    let webhook: string

    const environment = () => ({ ...env, KIS_EGRESS_ALLOW: `${tools.hostAndPort},${receiver.host}` })
    const start = async (secret: Readonly<Record<string, string>>) => {
      service = await startEmbedded({ folder, catalog: agentCatalog(cloud), env: { ...environment(), ...secret } })
      if (tenant) tenant = createCaller(service, tenant.key)
    }
    const COMMAND = [{ ...env, ...rotating, KIS_DATA_DIR: data }, 'secret', 'rotate'] as const
    const refused = async (secret: Readonly<Record<string, string>>) => {
      const launched = ServiceProcess.launch([], {
        ...environment(),
        ...secret,
        KIS_DATA_DIR: data,
        KIS_CATALOG: join(folder, 'catalog.yaml'),
      })
      await eventually(() => launched.hasEnded, 60_000)
      return launched.errors
    }

    beforeAll(async () => {
      cloud = await VendorCloud.start()
      tools = await TestMcpServer.start()
      receiver = await WebhookReceiver.start()
      await start(before)
      tenant = await newOrganization(createCaller(service, service.key), service)
      cookie = (await tenant.signIn()).cookie
      const mcp_servers = [{ name: 'crm', url: tools.toUrl('good'), headers: { authorization: HEADER } }]
      agent = (await tenant.rest('POST', '/v1/agents', { code: 'clerk', name: 'Clerk', model: 'scripted', mcp_servers })).body
      for (let i = 0; i < VERSIONS; i++) await tenant.rest('PATCH', `/v1/agents/${agent.id}`, { name: `Clerk ${i}` })
      endpoint = receiver.at('/pinged')
      const { body } = await tenant.rest('POST', '/v1/webhooks', { url: endpoint.url, event_types: ['agent_run.completed'] })
      endpoint.secret = body.secret
      webhook = body.id
    }, 120_000)
    afterAll(async () => {
      await service?.close()
      await receiver?.[Symbol.asyncDispose]()
      await tools?.[Symbol.asyncDispose]()
      await cloud?.[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
      await drop()
    })

    /** The key, a session, an agent with its headers, and a webhook with the secret of its first day. */
    async function allWorks(): Promise<void> {
      expect((await tenant.rest('GET', '/v1/models')).status).toBe(200)
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
      endpoint.received.length = 0
      expect((await tenant.rest('POST', `/v1/webhooks/${webhook}/ping`)).status).toBe(200)
      await eventually(() => endpoint.accepted.length > 0 || endpoint.faults.length > 0)
      expect(endpoint.faults).toEqual([])
    }

    it(`is refused while the service runs, survives ${KILLS} kills, and preserves everything that works`, async () => {
      await allWorks()
      const begun = performance.now()
      expect(await launchKis(...COMMAND).ended).toMatchObject({ code: 2, errors: expect.stringMatching(/in use|uses the database/) })
      // Most of it is the start of the program.
      const loadMs = performance.now() - begun
      await allWorks()
      await service.close()
      const secretFile = join(data, 'secret')
      const old = before.KIS_SECRET ?? readFileSync(secretFile, 'utf8')
      if (!before.KIS_SECRET) {
        // As a kill leaves it right after the beginning.
        writeFileSync(`${secretFile}.next`, NEW_SECRET)
        expect(await refused(before)).toContain('A rotation of the secret has not ended. Run `kis secret rotate` again')
      }
      for (let kill = 0; kill < KILLS; kill++) {
        const { ended, kill: end } = launchKis(...COMMAND)
        const timer = setTimeout(end, loadMs * (0.7 + 0.6 * Math.random()))
        await ended
        clearTimeout(timer)
      }
      expect(await launchKis(...COMMAND).ended).toMatchObject({ code: 0, errors: '', lines: [expect.stringMatching(/start the service/i)] })
      if (!before.KIS_SECRET) expect(readFileSync(secretFile, 'utf8')).not.toBe(old)
      expect(await refused({ KIS_SECRET: old })).toContain('was created with another secret')
      await start(after)
      await allWorks()
      await balancedWallet(tenant)
    }, 240_000)
  })
}

suite('SQLite', { env: {}, before: {}, rotating: {}, after: {} })
await onEngine('KIS_TEST_MONGODB_URL', 'Secret rotation on MongoDB', (url) => {
  const database = newDatabaseName()
  const secrets = {
    before: { KIS_SECRET: TEST_SECRET },
    rotating: { KIS_SECRET: TEST_SECRET, KIS_NEW_SECRET: NEW_SECRET },
    after: { KIS_SECRET: NEW_SECRET },
  }
  suite('MongoDB', { env: { KIS_MONGODB_URL: withDatabase(url, database) }, ...secrets }, () => dropServiceDatabases(url, database))
})
