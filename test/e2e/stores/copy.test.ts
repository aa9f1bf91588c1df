import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { addDocument, balancedWallet, type Caller, type Json, makeCaller, newCollection, newOrganization } from '../../support/client.ts'
import { ELASTICSEARCH, testIndices } from '../../support/engines/elasticsearch.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase } from '../../support/engines/mongodb.ts'
import { eventually } from '../../support/eventually.ts'
import { kis, launchKis } from '../../support/processes/cli.ts'
import { type Service, ServiceProcess, startEmbedded, startFiveProcesses, TEST_SECRET } from '../../support/processes/service.ts'
import { soaking } from '../../support/soak.ts'

/** SQLite compares vectors as bytes, Elasticsearch as floats. Hits whose scores are as near may change places. */
const NEAR_SCORE = 0.005
/** About what a copy takes, with the start of its process. */
const COPY_MS = 3_000

const KILLS = soaking ? 20 : 1

const NAME = 'kis copy between a data folder and MongoDB with Elasticsearch'

await onEngine('KIS_TEST_MONGODB_URL', NAME, (mongodb) =>
  onEngine(ELASTICSEARCH, NAME, (elasticsearch) => {
    describe(NAME, () => {
      const folder = mkdtempSync(join(tmpdir(), 'kis-copy-'))
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
      const copy = (servers: Servers, from: string, to: string, secret = TEST_SECRET) =>
        launchKis({ ...servers, KIS_SECRET: secret }, 'copy', '--from', from, '--to', to)
      const launch = (args: readonly string[], env: Record<string, string>) =>
        ServiceProcess.launch(args, { KIS_SECRET: TEST_SECRET, ...env })
      const source = `embedded:${join(folder, 'data')}`

      let mock: MockEngine
      let running: Service | undefined
      let servers: Servers
      /** The operator's key, that of another organization, and what was made with it. */
      let keys: { readonly operator: string; readonly own: string }
      let made: {
        readonly collection: string
        readonly mocked: string
        readonly files: readonly string[]
        readonly agent: string
        readonly run: string
      }
      let money: Json
      let found: Json
      let kept: Json

      const startOn = async (start: () => Promise<Service>): Promise<Caller> => {
        // One is left over if a test before has failed.
        await stop()
        running = await start()
        keys ??= { operator: running.key, own: (await newOrganization(makeCaller(running, running.key), running)).key }
        return makeCaller(running, keys.own)
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
        const answer = await caller.rest('POST', path, body)
        if (answer.status >= 300) throw new Error(`POST ${path} gave ${answer.status}: ${JSON.stringify(answer.body)}`)
        return answer.body
      }
      const get = async (caller: Caller, path: string): Promise<Json> => {
        const { status, body } = await caller.rest('GET', path)
        expect([path, status]).toEqual([path, 200])
        return body
      }
      const fill = async (caller: Caller): Promise<typeof made> => {
        const collection = await newCollection(caller)
        const mocked = await newCollection(caller, 'mock-embed')
        const long = Array.from(
          { length: 60 },
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
        const answer = await fetch(`${caller.service.rest}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json', 'idempotency-key': 'once' },
          body: JSON.stringify({ model: 'mock-chat', messages: [{ role: 'user', content: 'Good morning' }] }),
        })
        expect(answer.status).toBe(200)
        return ((await answer.json()) as Json).id
      }
      const readMoney = async (caller: Caller) => ({
        wallet: await balancedWallet(caller),
        entries: (await get(caller, '/v1/wallet/entries?limit=100')).data,
        usage: (await get(caller, '/v1/usage?limit=100')).data,
      })
      const readKept = async (caller: Caller) => ({
        chat: await chat(caller),
        embedded: mock.embeddings,
        documents: (await get(caller, `/v1/collections/${made.collection}/documents`)).data,
        others: (await get(caller, `/v1/collections/${made.mocked}/documents`)).data,
        run: await get(caller, `/v1/runs/${made.run}`),
        files: await Promise.all(made.files.map((file) => get(caller, `/v1/files/${file}`))),
        texts: await Promise.all(made.files.map((file) => contentOf(caller, file))),
        organizations: (await makeCaller(running!, keys.operator).graphql('{ organizations(first: 100) { edges { node { id name } } } }'))
          .data,
      })
      const contentOf = async (caller: Caller, file: string) => {
        const answer = await fetch(`${caller.service.rest}/v1/files/${file}/content`, {
          headers: { authorization: `Bearer ${caller.key}` },
        })
        expect(answer.status).toBe(200)
        return answer.text()
      }
      const search = async (caller: Caller, collection: string, body: object) => {
        const { data } = await post(caller, `/v1/collections/${collection}/search`, { limit: 10, ...body })
        return data.map((hit: Json) => ({ id: hit.chunk_id ?? hit.id, text: hit.text, score: hit.score }))
      }
      const readSearches = async (caller: Caller) => [
        await search(caller, made.collection, { query: 'How much are meals reimbursed a day?' }),
        await search(caller, made.collection, { query: 'كم يوماً مدة الإجازة السنوية؟' }),
        await search(caller, made.collection, { query: 'room for guests who pay 17 dollars', mode: 'lexical' }),
        await search(caller, made.collection, { query: 'where do guests sleep?', mode: 'vector' }),
        await search(caller, made.collection, { query: 'dollars', filter: { 'metadata.level': 3 } }),
        await search(caller, made.mocked, { query: 'letters of the sultan' }),
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
      /** What was there before the copy is there, and nothing was paid again. */
      const expectAll = async (caller: Caller) => {
        expect(await readMoney(caller)).toEqual(money)
        expect(await readKept(caller)).toEqual(kept)
        expect(await readMoney(caller)).toEqual(money)
        expectSame(await readSearches(caller), found)
        expect(await kis(running!, keys.operator, 'verify')).toMatchObject({ code: 0, errors: '' })
      }
      const settle = async (caller: Caller) => {
        found = await readSearches(caller)
        kept = await readKept(caller)
        money = await readMoney(caller)
      }
      /** Whether a copy to the servers has ended. */
      const isReleased = async () => {
        await using client = new MongoClient(mongodb)
        const mark = await client
          .db(`${databases.at(-1)}_billing`)
          .collection<Json>('installation')
          .findOne({})
        return mark !== null && !('copying' in mark)
      }
      const expectCopied = async ({ ended }: ReturnType<typeof copy>) => {
        const { code, lines, errors } = await ended
        expect({ code, errors, different: lines.filter((line) => line.includes('DIFFERENT')) }).toEqual({
          code: 0,
          errors: '',
          different: [],
        })
        const equal = lines.filter((line) => line.endsWith('equal')).map((line) => line.split(/\s{2,}/)[0])
        expect(equal).toEqual(
          expect.arrayContaining([
            'billing wallets',
            'billing ledger_entries',
            'billing api_keys',
            'contents of files and texts',
            'passages of the index',
          ]),
        )
        expect(lines).toContainEqual(expect.stringMatching(/^ledger: 2 organizations, \d+ entries, \d+ totals: 0 findings$/))
      }

      it('refuses a source in use, another secret, and arguments that name no two places', async () => {
        const caller = await startOn(startInFolder(folder))
        made = await fill(caller)
        servers = newServers()
        expect(await copy(servers, source, 'servers').ended).toMatchObject({ code: 2, errors: expect.stringContaining('must be stopped') })
        await settle(caller)
        await stop()
        const refused = [
          [copy(servers, source, 'servers', 'another secret, long enough to be one'), 'made with another secret'],
          [copy(servers, `embedded:${join(folder, 'none')}`, 'servers'), 'is missing'],
          [copy(servers, 'servers', `embedded:${join(folder, 'new')}`), 'has no data of the service'],
          [copy(servers, source, `embedded:${join(folder, 'new')}`), 'kis backup'],
        ] as const
        for (const [{ ended }, why] of refused) expect(await ended).toMatchObject({ code: 2, errors: expect.stringContaining(why) })
        expect(existsSync(join(folder, 'new'))).toBe(false)
      }, 120_000)

      it(`${KILLS} kills of a copy to servers: nothing starts on what is half there, and the same command ends right`, async () => {
        for (let round = 0; round < KILLS; round++) {
          servers = newServers()
          const killed = copy(servers, source, 'servers')
          await Promise.race([new Promise((resolve) => setTimeout(resolve, Math.random() * COPY_MS)), killed.ended])
          killed.kill()
          await killed.ended
          // Unless it was killed when all was done.
          if (!(await isReleased())) await expectCopied(copy(servers, source, 'servers'))
          expect(await copy(servers, source, 'servers').ended).toMatchObject({ code: 2, errors: expect.stringContaining('already') })
        }
      }, 600_000)

      it('gives roles on servers the same searches, money, keys and records, and pays nothing again', async () => {
        const caller = await startOn(() => startFiveProcesses({ catalog: testCatalog(mock.url), env: servers }))
        // It looks for signs of life for some seconds.
        const refused = copy(servers, 'servers', `embedded:${join(folder, 'new')}`)
        await expectAll(caller)
        const added = await addDocument(caller, made.mocked, 'tower.txt', 'The tower of the harbour is made of granite.')
        expect(added.status).toBe('ready')
        expect(await refused.ended).toMatchObject({ code: 2, errors: expect.stringContaining('uses the source') })
        expect(existsSync(join(folder, 'new'))).toBe(false)
        await settle(caller)
        await stop()
      }, 180_000)

      it(`${KILLS} kills of a copy back: nothing starts on what is half there, and the new folder has everything`, async () => {
        const back = join(folder, 'back')
        for (let round = 0; round < KILLS; round++) {
          rmSync(back, { recursive: true, force: true })
          const data = join(back, 'data')
          const killed = copy(servers, 'servers', `embedded:${data}`)
          await Promise.race([new Promise((resolve) => setTimeout(resolve, Math.random() * COPY_MS)), killed.ended])
          killed.kill()
          await killed.ended
          const isMarked = existsSync(join(data, 'copying'))
          if (isMarked) {
            const refused = launch([], { KIS_DATA_DIR: data })
            await expect(refused.ready()).rejects.toThrow(/A copy into .* has not ended/)
            expect(await launchKis({ KIS_DATA_DIR: data }, 'backup', join(folder, 'a.kis')).ended).toMatchObject({ code: 2 })
          }
          if (isMarked || !existsSync(join(data, 'billing.sqlite'))) await expectCopied(copy(servers, 'servers', `embedded:${data}`))
        }
        await expectAll(await startOn(startInFolder(back)))
        await stop()
      }, 600_000)

      it('a target that a copy has begun keeps every role waiting, and gets what the source has changed since', async () => {
        servers = newServers()
        const half = copy(servers, source, 'servers')
        await using client = new MongoClient(mongodb)
        // Killed once the target has documents.
        const contents = client.db(`${databases.at(-1)}_knowledge`).collection('contents')
        await eventually(async () => (await contents.findOne({})) !== null, 60_000)
        half.kill()
        await half.ended
        const billing = launch(['billing'], servers)
        await eventually(() => billing.lines.some((line) => line.includes('has not ended')), 60_000)
        expect(billing.address).toBeUndefined()
        expect(await billing.end()).toBe(0)
        const caller = await startOn(startInFolder(folder))
        const path = `/v1/collections/${made.collection}/documents`
        const [first] = (await get(caller, path)).data
        expect((await caller.rest('DELETE', `${path}/${first.id}`)).status).toBeLessThan(300)
        await addDocument(caller, made.mocked, 'late.txt', 'It came late.')
        await settle(caller)
        await stop()
        await expectCopied(copy(servers, source, 'servers'))
      }, 180_000)
    })
  }),
)
