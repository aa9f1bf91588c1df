import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { addDocument, balancedWallet, type Caller, createCaller, type Json, newCollection, newOrganization } from '../../support/client.ts'
import { ELASTICSEARCH, testIndices } from '../../support/engines/elasticsearch.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase } from '../../support/engines/mongodb.ts'
import { eventually } from '../../support/eventually.ts'
import { kis, launchKis, runKis } from '../../support/processes/cli.ts'
import { type Service, ServiceProcess, startEmbedded, TEST_SECRET } from '../../support/processes/service.ts'
import { soaking } from '../../support/soak.ts'

/** SQLite compares vectors as bytes, Elasticsearch as floats. Hits whose scores are as near may change places. */
const NEAR_SCORE = 0.005
/** About what an import takes, with the start of its process. */
const IMPORT_MS = 3_000

/** `archive.test.ts` kills imports into a folder each time. */
const RANDOM_KILLS = soaking ? 20 : 0

const NAME = 'Export and import between a data directory and MongoDB with Elasticsearch'

await onEngine('KIS_TEST_MONGODB_URL', NAME, (mongodb) =>
  onEngine(ELASTICSEARCH, NAME, (elasticsearch) => {
    describe(NAME, () => {
      const folder = mkdtempSync(join(tmpdir(), 'kis-move-'))
      const indices = testIndices(elasticsearch)
      const databases: string[] = []
      /** Servers that nothing has used. */
      const newServers = () => {
        const database = newDatabaseName()
        databases.push(database)
        return {
          KIS_MONGODB_URL: withDatabase(mongodb, database),
          KIS_ELASTICSEARCH_URL: elasticsearch,
          KIS_ELASTICSEARCH_PREFIX: indices.newPrefix(),
          KIS_ELASTICSEARCH_REPLICAS: '0',
        }
      }
      type Servers = ReturnType<typeof newServers>
      const run = (env: Record<string, string>, ...args: string[]) => runKis({ KIS_SECRET: TEST_SECRET, ...env }, ...args)
      const launch = (env: Record<string, string>, ...args: string[]) => launchKis({ KIS_SECRET: TEST_SECRET, ...env }, ...args)
      const source = { KIS_DATA_DIR: join(folder, 'data') }
      const archive = join(folder, 'all.kis')

      let mock: MockEngine
      let running: Service | undefined
      let servers: Servers
      /** The operator's key, that of another organization, and what was made with it. */
      let keys: { readonly operator: string; readonly own: string }
      let created: {
        readonly collection: string
        readonly mocked: string
        readonly files: readonly string[]
        readonly agent: string
        readonly run: string
      }
      let money: Json
      let found: Json
      let retained: Json

      const startOn = async (start: () => Promise<Service>): Promise<Caller> => {
        // One is left over if a test before has failed.
        await stop()
        running = await start()
        keys ??= { operator: running.key, own: (await newOrganization(createCaller(running, running.key), running)).key }
        return createCaller(running, keys.own)
      }
      const startInFolder = (where: string) => () =>
        startEmbedded({ catalog: testCatalog(mock.url), folder: where, env: { KIS_SECRET: TEST_SECRET } })
      const stop = async () => {
        await running?.close()
        running = undefined
      }
      beforeAll(async () => {
        mock = await startMockEngine()
      })
      afterAll(async () => {
        await stop()
        await mock?.[Symbol.asyncDispose]()
        await indices.dropAll()
        for (const database of databases) await dropServiceDatabases(mongodb, database)
        rmSync(folder, { recursive: true, force: true })
      })

      const post = async (caller: Caller, path: string, body: unknown): Promise<Json> => {
        const response = await caller.rest('POST', path, body)
        if (response.status >= 300) throw new Error(`POST ${path} gave ${response.status}: ${JSON.stringify(response.body)}`)
        return response.body
      }
      const get = async (caller: Caller, path: string): Promise<Json> => {
        const { status, body } = await caller.rest('GET', path)
        expect([path, status]).toEqual([path, 200])
        return body
      }
      const fill = async (caller: Caller): Promise<typeof created> => {
        const collection = await newCollection(caller)
        const mocked = await newCollection(caller, 'mock-embed')
        const long = Array.from(
          { length: 20 },
          (_, i) => `# Rule ${i}\n\n${`Room ${i} is for guests who pay ${i} dollars. `.repeat(8)}`,
        ).join('\n\n')
        const added = [
          await addDocument(caller, collection.id, 'travel.md', '# Travel policy\nMeals are reimbursed up to 60 dollars a day.', {
            level: 3,
          }),
          await addDocument(caller, collection.id, 'إجازات.md', '# الإجازات\nيحق لكل موظف ثلاثون يوماً من الإجازة السنوية مدفوعة الأجر.'),
          await addDocument(caller, collection.id, 'rules.md', long, { level: 7 }),
          await addDocument(caller, mocked.id, 'chest.txt', 'The sultan keeps his letters in a cedar chest.'),
        ]
        const doomed = await addDocument(caller, mocked.id, 'ship.txt', 'The letters of the sultan went down with the ship.')
        await caller.rest('DELETE', `/v1/collections/${mocked.id}/documents/${doomed.id}`)
        const agent = await post(caller, '/v1/agents', {
          code: 'rules',
          name: 'Rules',
          model: 'extractive',
          collection_ids: [collection.id],
        })
        const run = await post(caller, `/v1/agents/${agent.id}/runs`, { input: 'How much are meals reimbursed a day?', keep_thread: true })
        await chat(caller)
        return { collection: collection.id, mocked: mocked.id, files: added.map(({ file_id }) => file_id), agent: agent.id, run: run.id }
      }
      /** The same call with the same key: answered and paid once. */
      const chat = async (caller: Caller): Promise<string> => {
        const response = await fetch(`${caller.service.rest}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json', 'idempotency-key': 'once' },
          body: JSON.stringify({ model: 'mock-chat', messages: [{ role: 'user', content: 'Good morning' }] }),
        })
        expect(response.status).toBe(200)
        return ((await response.json()) as Json).id
      }
      const readMoney = async (caller: Caller) => ({
        wallet: await balancedWallet(caller),
        entries: (await get(caller, '/v1/wallet/entries?limit=100')).data,
        usage: (await get(caller, '/v1/usage?limit=100')).data,
      })
      const readRetained = async (caller: Caller) => ({
        chat: await chat(caller),
        embedded: mock.embeddings,
        documents: (await get(caller, `/v1/collections/${created.collection}/documents`)).data,
        others: (await get(caller, `/v1/collections/${created.mocked}/documents`)).data,
        run: await get(caller, `/v1/runs/${created.run}`),
        files: await Promise.all(created.files.map((file) => get(caller, `/v1/files/${file}`))),
        texts: await Promise.all(created.files.map((file) => contentOf(caller, file))),
        organizations: (await createCaller(running!, keys.operator).graphql('{ organizations(first: 100) { edges { node { id name } } } }'))
          .data,
      })
      const contentOf = async (caller: Caller, file: string) => {
        const response = await fetch(`${caller.service.rest}/v1/files/${file}/content`, {
          headers: { authorization: `Bearer ${caller.key}` },
        })
        expect(response.status).toBe(200)
        return response.text()
      }
      const search = async (caller: Caller, collection: string, body: object) => {
        const { data } = await post(caller, `/v1/collections/${collection}/search`, { limit: 10, ...body })
        return data.map((hit: Json) => ({ id: hit.chunk_id ?? hit.id, text: hit.text, score: hit.score }))
      }
      const readSearches = async (caller: Caller) => [
        await search(caller, created.collection, { query: 'How much are meals reimbursed a day?' }),
        await search(caller, created.collection, { query: 'كم يوماً مدة الإجازة السنوية؟' }),
        await search(caller, created.collection, { query: 'room for guests who pay 17 dollars', mode: 'lexical' }),
        await search(caller, created.collection, { query: 'where do guests sleep?', mode: 'vector' }),
        await search(caller, created.collection, { query: 'dollars', filter: { 'metadata.level': 3 } }),
        await search(caller, created.mocked, { query: 'letters of the sultan' }),
      ]
      const expectSame = (now: Json, before: Json) => {
        const isNear = (a: Json, b: Json) => Math.abs(a.score - b.score) < NEAR_SCORE
        for (const [i, hits] of before.entries()) {
          expect(now[i]).toHaveLength(hits.length)
          for (const [j, hit] of hits.entries()) {
            expect(isNear(now[i][j], hit)).toBe(true)
            const isAlone = hits.filter((other: Json) => isNear(other, hit)).length === 1
            const same = isAlone ? now[i][j] : now[i].find(({ id }: Json) => id === hit.id)
            if (same) expect([same.id, same.text]).toEqual([hit.id, hit.text])
          }
        }
      }
      /** What was there before the move is there, and nothing was paid again. */
      const expectAll = async (caller: Caller) => {
        expect(await readMoney(caller)).toEqual(money)
        expect(await readRetained(caller)).toEqual(retained)
        expect(await readMoney(caller)).toEqual(money)
        expectSame(await readSearches(caller), found)
        expect(await kis(running!, keys.operator, 'verify')).toMatchObject({ code: 0, errors: '' })
      }
      const settle = async (caller: Caller) => {
        found = await readSearches(caller)
        retained = await readRetained(caller)
        money = await readMoney(caller)
      }
      /** Imports the archive, of which imports were killed. False: one of these had ended. */
      const importAgain = async (env: Record<string, string>) => {
        const { code, errors } = await run(env, 'import', archive)
        if (code !== 0) expect(errors).toContain('not empty')
        return code === 0
      }
      const killImport = async (env: Record<string, string>) => {
        const killed = launch(env, 'import', archive)
        await Promise.race([new Promise((resolve) => setTimeout(resolve, Math.random() * IMPORT_MS)), killed.ended])
        killed.kill()
        await killed.ended
      }

      it('a killed import into servers keeps every role waiting, and the same command completes it', async () => {
        const caller = await startOn(startInFolder(folder))
        created = await fill(caller)
        await settle(caller)
        await stop()
        expect(await run(source, 'export', archive, '--check')).toMatchObject({ code: 0, errors: '' })
        for (let round = 0; round < RANDOM_KILLS; round++) {
          servers = newServers()
          await killImport(servers)
          await importAgain(servers)
        }
        servers = newServers()
        const wrong = { ...servers, KIS_SECRET: 'another secret, long enough to be one' }
        expect(await run(wrong, 'import', archive)).toMatchObject({
          code: 2,
          errors: expect.stringContaining('differs from the secret of the archive'),
        })
        const half = launch(servers, 'import', archive)
        await using client = new MongoClient(mongodb)
        // Killed once they have contents.
        const contents = client.db(`${databases.at(-1)}_knowledge`).collection('contents')
        await eventually(async () => (await contents.findOne({})) !== null, 60_000)
        half.kill()
        await half.ended
        const billing = ServiceProcess.launch(['billing'], { KIS_SECRET: TEST_SECRET, ...servers })
        expect(await run(servers, 'export', join(folder, 'half.kis'))).toMatchObject({
          code: 2,
          errors: expect.stringContaining('has not ended'),
        })
        await eventually(() => billing.lines.some((line) => line.includes('has not ended')), 60_000)
        expect(billing.address).toBeUndefined()
        expect(await billing.end()).toBe(0)
        expect(await importAgain(servers)).toBe(true)
        expect(await importAgain(servers)).toBe(false)
      }, 600_000)

      it('preserves searches, money, keys and records on servers, and pays nothing again', async () => {
        const caller = await startOn(() => startEmbedded({ catalog: testCatalog(mock.url), env: { KIS_SECRET: TEST_SECRET, ...servers } }))
        await expectAll(caller)
        const added = await addDocument(caller, created.mocked, 'tower.txt', 'The tower of the harbour is made of granite.')
        expect(added.status).toBe('ready')
        await settle(caller)
        await stop()
      }, 180_000)

      it('a new data directory has everything after an import back', async () => {
        rmSync(archive)
        const exported = await run(servers, 'export', archive, '--check')
        expect(exported).toMatchObject({
          code: 0,
          errors: '',
          lines: expect.arrayContaining([expect.stringContaining('reads everything twice')]),
        })
        const back = join(folder, 'back')
        const there = { KIS_DATA_DIR: join(back, 'data') }
        for (let round = 0; round < RANDOM_KILLS; round++) {
          await killImport(there)
          await importAgain(there)
          rmSync(back, { recursive: true })
        }
        expect(await importAgain(there)).toBe(true)
        await expectAll(await startOn(startInFolder(back)))
        await stop()
      }, 600_000)
    })
  }),
)
