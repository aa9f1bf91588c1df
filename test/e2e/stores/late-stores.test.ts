import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { afterAll, describe, expect, it } from 'vitest'
import { apiKeyFrom } from '../../../subgraphs/billing/accounts/domain/api-key.ts'
import { mockCatalog } from '../../support/catalog.ts'
import { addDocument, balancedWallet, type Caller, createCaller, newCollection } from '../../support/client.ts'
import { ELASTICSEARCH, testIndices } from '../../support/engines/elasticsearch.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { startMockEngine } from '../../support/engines/mock-engine.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase, withUser } from '../../support/engines/mongodb.ts'
import { MongoProxy, WRONG_PASSWORD } from '../../support/engines/mongodb-proxy.ts'
import { TcpProxy } from '../../support/engines/tcp-proxy.ts'
import { eventually } from '../../support/eventually.ts'
import { freePorts, ServiceProcess, TEST_SECRET } from '../../support/processes/service.ts'

const REFUSED = { status: 503, body: { error: { code: 'service_unavailable' } } }
/** What a first try of a driver, a wait and the next try take at most, on a busy machine. */
const RETURN_MS = 60_000

async function readiness(address: string) {
  const response = await fetch(`${address}/readyz`)
  const { problems } = (await response.json()) as { problems: string[] }
  return { status: response.status, problems }
}

/** The newest line that tells what the process waits for. */
const listWaiting = ({ lines }: ServiceProcess) => lines.filter((line) => line.startsWith('waiting for ')).at(-1) ?? ''

const chat = (caller: Caller) =>
  caller.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: 'Good morning' }] })

/** A folder, and what is started for it, which all ends with the stack. */
function placeOf(stack: AsyncDisposableStack) {
  const folder = mkdtempSync(join(tmpdir(), 'kis-late-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  return {
    folder,
    /** Launched on a port that is known before it is ready. */
    async launch(role: string, env: Readonly<Record<string, string>>, port?: number) {
      port ??= (await freePorts(1))[0]!
      const own = { KIS_DATA_DIR: join(folder, role), PORT: String(port) }
      const launched = ServiceProcess.launch(role === 'all' ? [] : [role], { ...own, ...env })
      stack.defer(async () => void (await launched.end('SIGKILL')))
      const address = `http://127.0.0.1:${port}`
      await eventually(async () => (await fetch(`${address}/healthz`).catch(() => undefined))?.status === 200, RETURN_MS)
      return { launched, address }
    },
  }
}

// They mostly wait, each in a place of its own.
describe.concurrent('Start before its dependencies', () => {
  it('waits for a data directory that cannot be created, and hides its secret in messages', async () => {
    await using stack = new AsyncDisposableStack()
    const { folder, launch } = placeOf(stack)
    writeFileSync(join(folder, 'mount'), '')
    const env = { KIS_DATA_DIR: join(folder, 'mount', 'data'), KIS_SECRET: TEST_SECRET }
    const { launched, address } = await launch('all', env)
    // Each file has its own first try.
    const others = ['inference', 'knowledge', 'blobs', 'index'].map((file) => new RegExp(`${file}\\.sqlite cannot be created`))
    const wanted = [/the folder of .*billing\.sqlite cannot be created: ENOTDIR/, ...others]
    await eventually(() => wanted.every((like) => like.test(listWaiting(launched))), RETURN_MS)
    expect((await readiness(address)).status).toBe(503)
    rmSync(join(folder, 'mount'))
    await launched.ready()
    expect(launched.address).toBe(address)
    // An answer holds for half a second.
    await eventually(async () => (await readiness(address)).status === 200)
    expect(await createCaller({ rest: address, graphql: '' }, launched.printedKey!).rest('GET', '/v1/wallet')).toMatchObject({
      status: 200,
    })
    expect(launched.lines.join('\n') + launched.errors).not.toContain(TEST_SECRET)
    expect(await launched.end()).toBe(0)
  }, 120_000)

  it.each(['knowledge', 'inference'])(
    'names billing, with its address, while %s waits for it',
    async (role) => {
      await using stack = new AsyncDisposableStack()
      const billing = `http://127.0.0.1:${(await freePorts(1))[0]}`
      const env = { KIS_SECRET: TEST_SECRET, KIS_BILLING_URL: billing, KIS_KNOWLEDGE_URL: billing, KIS_INFERENCE_URL: billing }
      const { launched, address } = await placeOf(stack).launch(role, { ...env, KIS_LOG_LEVEL: 'info' })
      const waiting = `billing: ${billing} does not respond: connect ECONNREFUSED ${billing.slice('http://'.length)}`
      await eventually(() => listWaiting(launched) === `waiting for ${waiting}`, RETURN_MS)
      expect(await readiness(address)).toEqual({ status: 503, problems: ['billing'] })
      await eventually(() => launched.errors.includes(waiting))
      expect(launched.errors).not.toMatch(/document store|"stack"/)
    },
    120_000,
  )

  it('ends immediately and in order on SIGTERM', async () => {
    await using stack = new AsyncDisposableStack()
    const { launched } = await placeOf(stack).launch('all', { KIS_MONGODB_URL: 'mongodb://user:s3cret@127.0.0.1:1/kis' })
    await eventually(() => /MongoDB cannot be reached: connect ECONNREFUSED 127\.0\.0\.1:1/.test(listWaiting(launched)), RETURN_MS)
    expect(await launched.end('SIGTERM')).toBe(0)
    expect(launched.lines.join('\n') + launched.errors).not.toContain('s3cret')
    expect(launched.address).toBeUndefined()
  }, 120_000)
})

await onEngine('KIS_TEST_MONGODB_URL', 'Start before MongoDB and Elasticsearch', (mongodb) =>
  onEngine(ELASTICSEARCH, 'Start before MongoDB and Elasticsearch', (elasticsearch) => {
    describe.concurrent('Start before MongoDB and Elasticsearch', () => {
      const { newPrefix, dropAll } = testIndices(elasticsearch)
      afterAll(dropAll)

      async function newPlace(stack: AsyncDisposableStack) {
        const place = placeOf(stack)
        const database = newDatabaseName()
        const prefix = newPrefix()
        stack.defer(() => dropServiceDatabases(mongodb, database))
        const mongodbProxy = stack.use(await MongoProxy.start(mongodb))
        const elasticsearchProxy = stack.use(await TcpProxy.start(elasticsearch))
        const mock = stack.use(await startMockEngine())
        const env: Record<string, string> = {
          KIS_CATALOG: join(place.folder, 'catalog.yaml'),
          KIS_SECRET: TEST_SECRET,
          KIS_RETRY_BACKOFF_MS: '20',
          KIS_MONGODB_URL: withDatabase(mongodbProxy.through(mongodb), database),
          KIS_ELASTICSEARCH_URL: elasticsearchProxy.url,
          KIS_ELASTICSEARCH_PREFIX: prefix,
          KIS_ELASTICSEARCH_REPLICAS: '0',
        }
        writeFileSync(env.KIS_CATALOG!, mockCatalog(mock.url))
        return { ...place, database, prefix, mongodbProxy, elasticsearchProxy, env }
      }

      it('reports all missing stores at once, refuses with a retry delay, and serves as each becomes available', async () => {
        await using stack = new AsyncDisposableStack()
        const { launch, mongodbProxy, elasticsearchProxy, env } = await newPlace(stack)
        await mongodbProxy.stop()
        await elasticsearchProxy.stop()
        const { launched, address } = await launch('all', env)
        const nobody = createCaller({ rest: address, graphql: '' }, apiKeyFrom(randomBytes(32)))
        await eventually(
          () =>
            listWaiting(launched).startsWith('waiting for document store: MongoDB cannot be reached: connect ECONNREFUSED') &&
            listWaiting(launched).includes('; chunk index: Elasticsearch does not respond as such: ConnectionError'),
          RETURN_MS,
        )
        expect(await readiness(address)).toMatchObject({
          status: 503,
          problems: expect.arrayContaining(['document store', 'chunk index']),
        })
        const refused = await nobody.rest('GET', '/v1/wallet')
        expect(refused).toMatchObject(REFUSED)
        expect([Number(refused.headers.get('retry-after')) > 0, refused.headers.get('x-should-retry')]).toEqual([true, 'true'])

        await mongodbProxy.resume()
        // What MongoDB alone is needed for works: this key is known not to be one.
        await eventually(async () => (await nobody.rest('GET', '/v1/wallet')).status === 401, RETURN_MS)
        await eventually(() => /^waiting for chunk index: [^;]*$/.test(listWaiting(launched)), RETURN_MS)
        expect([launched.address, launched.printedKey]).toEqual([undefined, undefined])

        await elasticsearchProxy.resume()
        await launched.ready()
        expect(launched.lines.slice(-2)).toEqual([expect.stringContaining('kis_live_'), `ready ${address}`])
        expect((await readiness(address)).status).toBe(200)
        const operator = createCaller({ rest: address, graphql: '' }, launched.printedKey!)
        expect((await chat(operator)).status).toBe(200)
        const collection = await newCollection(operator, 'mock-embed')
        expect(await addDocument(operator, collection.id, 'a.txt', 'The sultan keeps his letters.')).toMatchObject({ status: 'ready' })
        await balancedWallet(operator)
        expect(await launched.end()).toBe(0)
      }, 180_000)

      it('waits for a MongoDB that is too old and an Elasticsearch with foreign indices, then for conflicting indexes', async () => {
        await using stack = new AsyncDisposableStack()
        const { launch, mongodbProxy, env, database, prefix } = await newPlace(stack)
        mongodbProxy.wireVersion = 8
        const put = (body: unknown) =>
          fetch(`${elasticsearch}/${prefix}-collections`, {
            method: 'PUT',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(body),
          })
        expect((await put({ mappings: { properties: { title: { type: 'text' } } }, settings: { number_of_replicas: 0 } })).status).toBe(200)
        await using client = new MongoClient(mongodb)
        const files = client.db(`${database}_knowledge`).collection('files')
        await files.createIndex({ other: 1 }, { name: 'organizationId_1__id_1' })
        const { launched } = await launch('all', env)
        await eventually(() => {
          const said = listWaiting(launched)
          return /requires at least 9 \(MongoDB 4\.4\)/.test(said) && /a mapping that is not this service's: dynamic/.test(said)
        }, RETURN_MS)
        mongodbProxy.wireVersion = null
        await eventually(
          () => /the index organizationId_1__id_1 of files is .*; drop it.*chunk index: in Elasticsearch index/.test(listWaiting(launched)),
          RETURN_MS,
        )
        await files.dropIndex('organizationId_1__id_1')
        await fetch(`${elasticsearch}/${prefix}-collections`, { method: 'DELETE' })
        await launched.ready()
        expect((await readiness(launched.address!)).status).toBe(200)
        await newCollection(createCaller({ rest: launched.address!, graphql: '' }, launched.printedKey!), 'mock-embed')
      }, 180_000)

      it('waits with wrong credentials, and does not show them', async () => {
        await using stack = new AsyncDisposableStack()
        const { launch, mongodbProxy, env } = await newPlace(stack)
        mongodbProxy.refusal = WRONG_PASSWORD
        env.KIS_MONGODB_URL = withUser(env.KIS_MONGODB_URL!, 'kis:s3cret')
        const { launched, address } = await launch('billing', env)
        await eventually(
          () => listWaiting(launched).includes('document store: MongoDB does not accept the user of the URL: Auth'),
          RETURN_MS,
        )
        expect((await readiness(address)).status).toBe(503)
        expect(JSON.stringify(await readiness(address)) + launched.lines.join('\n') + launched.errors).not.toContain('s3cret')
        expect(await launched.end()).toBe(0)
      }, 120_000)

      it('of five processes in the wrong order ends with all ready, and entry points report lost stores', async () => {
        await using stack = new AsyncDisposableStack()
        const { launch, mongodbProxy, elasticsearchProxy, env } = await newPlace(stack)
        await mongodbProxy.stop()
        await elasticsearchProxy.stop()
        const roles = ['billing', 'knowledge', 'inference', 'gateway', 'rest-adapter'] as const
        const ports = await freePorts(roles.length)
        const roleAddress = (role: (typeof roles)[number]) => `http://127.0.0.1:${ports[roles.indexOf(role)]}`
        for (const role of roles.slice(0, 4)) env[`KIS_${role.toUpperCase()}_URL`] = roleAddress(role)
        const launched = new Map<string, ServiceProcess>()
        for (const [i, role] of [...roles.entries()].reverse()) {
          launched.set(role, (await launch(role, env, ports[i])).launched)
          if (role === 'gateway')
            await eventually(() => listWaiting(launched.get('gateway')!) === 'waiting for billing; knowledge; inference', RETURN_MS)
        }
        await eventually(
          () => /^waiting for document store: MongoDB cannot be reached/.test(listWaiting(launched.get('billing')!)),
          RETURN_MS,
        )
        await mongodbProxy.resume()
        await elasticsearchProxy.resume()
        for (const each of launched.values()) await each.ready()
        const service = { rest: roleAddress('rest-adapter'), graphql: `${roleAddress('gateway')}/graphql` }
        const operator = createCaller(service, launched.get('billing')!.printedKey!)
        expect((await chat(operator)).status).toBe(200)
        const collection = await newCollection(operator, 'mock-embed')
        expect(await addDocument(operator, collection.id, 'a.txt', 'The sultan keeps his letters.')).toMatchObject({ status: 'ready' })

        const addresses = (['gateway', 'rest-adapter'] as const).map(roleAddress)
        const said = () => Promise.all(addresses.map(readiness))
        await elasticsearchProxy.stop()
        await eventually(
          async () => (await said()).every(({ status, problems }) => status === 200 && problems.join() === "knowledge's chunk index"),
          RETURN_MS,
        )
        await mongodbProxy.stop()
        // Billing alone makes 503 of it, and knowledge may notice later.
        const lost = ["billing's document store", "knowledge's document store"]
        await eventually(
          async () => (await said()).every(({ status, problems }) => status === 503 && lost.every((part) => problems.includes(part))),
          RETURN_MS,
        )
        await mongodbProxy.resume()
        await elasticsearchProxy.resume()
        await eventually(async () => (await said()).every(({ status, problems }) => status === 200 && problems.length === 0), RETURN_MS)
        expect((await chat(operator)).status).toBe(200)
        for (const each of launched.values()) expect(await each.end()).toBe(0)
      }, 300_000)
    })
  }),
)
