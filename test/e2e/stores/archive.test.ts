import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import {
  balancedWallet,
  base64,
  type Caller,
  createCaller,
  type Json,
  nano,
  newCollection,
  newOrganization,
  settled,
} from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { kis, launchKis, runKis } from '../../support/processes/cli.ts'
import { clockWrongBy, type Service, startEmbedded } from '../../support/processes/service.ts'
import { full } from '../../support/soak.ts'

/** An open hold of a process that is gone is resolved by billing within this. */
const HOLDS_END_MS = 75_000

/** Between two calls of one who loads the service. */
const PAUSE_MS = 50

/** Chats and documents that go on until they are stopped. */
interface Load {
  /** Chats that were answered, and documents that were taken, so far. */
  acknowledged(): { readonly chats: number; readonly documents: readonly string[] }
  end(): Promise<void>
}

function startLoad(caller: Caller, collectionId: string): Load {
  let isOver = false
  let chats = 0
  let next = 0
  const documents: string[] = []
  const chat = async () => {
    while (!isOver) {
      const request = { model: 'mock-chat', messages: [{ role: 'user', content: `hi ${next++}` }] }
      const response = await caller.rest('POST', '/v1/chat/completions', request).catch(() => undefined)
      if (response?.status === 200) chats++
      await sleep(PAUSE_MS)
    }
  }
  const upload = async () => {
    while (!isOver) {
      const name = `document ${next++}`
      const text = Array.from({ length: 40 }, (_, i) => `${name} speaks of matter ${i}.`).join('\n\n')
      const add = async () => {
        const file = await caller.rest('POST', '/v1/files', { file_name: `${name}.txt`, content_base64: base64(text) })
        return caller.rest('POST', `/v1/collections/${collectionId}/documents`, { file_id: file.body.message.id })
      }
      const response = await add().catch(() => undefined)
      if (response?.status === 201) documents.push(response.body.id)
      await sleep(PAUSE_MS)
    }
  }
  const work = Promise.all([chat(), chat(), chat(), chat(), upload(), upload()])
  return {
    acknowledged: () => ({ chats, documents: [...documents] }),
    async end() {
      isOver = true
      await work
    },
  }
}

async function usage(caller: Caller): Promise<Json[]> {
  const records: Json[] = []
  for (let after = ''; ; ) {
    const { body } = await caller.rest('GET', `/v1/usage?limit=100${after && `&after=${after}`}`)
    records.push(...body.data)
    if (!body.has_more) return records
    after = body.last_id
  }
}

describe('kis export and kis import of all data', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-backup-'))
  const data = join(folder, 'data')
  const passphrase = join(folder, 'passphrase')
  const env = { KIS_DATA_DIR: data, KIS_BACKUP_PASSPHRASE_FILE: passphrase }
  const run = (...args: string[]) => runKis(env, ...args)
  let mock: MockEngine
  let service: Service
  let key: string
  let clock: Readonly<Record<string, string>> = {}
  const start = async () => {
    service = await startEmbedded({ catalog: mockCatalog(mock.url), folder, env: clock })
    key ??= service.key
  }
  const kill = () => service.processes.get('all')!.end('SIGKILL')
  beforeAll(async () => {
    writeFileSync(passphrase, 'correct horse battery staple\n')
    mock = await startMockEngine()
    await start()
  }, 60_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  it('an export under load restores every acknowledged write, to the cent, when the data directory is lost', async () => {
    const { key: own } = await newOrganization(createCaller(service, key), service)
    const collection = await newCollection(createCaller(service, own), 'mock-embed')
    const load = startLoad(createCaller(service, own), collection.id)
    const archive = join(folder, 'archive.kis')
    await eventually(() => load.acknowledged().chats > 20 && load.acknowledged().documents.length > 3, 30_000)
    const before = load.acknowledged()
    const exported = await run('export', archive, '--with-secret', '--check')
    expect(exported).toMatchObject({
      code: 0,
      errors: '',
      lines: [expect.stringContaining('contents, as of'), expect.stringContaining('is complete')],
    })
    expect(statSync(archive).mode & 0o077).toBe(0)
    await kill()
    await load.end()

    expect(await run('import', archive)).toMatchObject({ code: 2, errors: expect.stringContaining('not empty') })
    rmSync(data, { recursive: true })
    expect(await run('import', archive, '--check')).toMatchObject({ code: 0, errors: '' })
    expect(existsSync(data)).toBe(false)
    expect(await run('import', archive)).toMatchObject({
      code: 0,
      errors: '',
      lines: [expect.any(String), expect.stringContaining('kis verify')],
    })
    expect(
      readdirSync(data)
        .filter((name) => !name.endsWith('.lock'))
        .sort(),
    ).toEqual(['billing.sqlite', 'blobs.sqlite', 'index.sqlite', 'inference.sqlite', 'knowledge.sqlite', 'secret'])

    // As a minute later: nobody waits for the holds of the process that was killed.
    clock = clockWrongBy(60_000)
    await start()
    const caller = createCaller(service, own)
    for (const id of before.documents) expect(await settled(caller, collection.id, id)).toMatchObject({ status: 'ready', error: null })
    await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0', HOLDS_END_MS)
    const { balance_usd } = await balancedWallet(caller)
    const records = await usage(caller)
    expect(records.filter(({ operation, source }) => operation !== 'embedding' && source === 'provider').length).toBeGreaterThanOrEqual(
      before.chats,
    )
    expect(nano(balance_usd)).toBe(nano('10') - records.reduce((sum, { amount_usd }) => sum + nano(amount_usd), 0n))
    expect(await kis(service, key, 'verify')).toMatchObject({ code: 0, errors: '' })
  }, 300_000)

  it(`${full(20)} kills of an export leave the service unchanged, no archive or a whole one, and the next export succeeds`, async () => {
    const { key: own } = await newOrganization(createCaller(service, key), service)
    const collection = await newCollection(createCaller(service, own), 'mock-embed')
    const load = startLoad(createCaller(service, own), collection.id)
    const began = performance.now()
    expect((await launchKis(env, 'export', join(folder, 'whole.kis')).ended).code).toBe(0)
    const durationMs = performance.now() - began
    for (let round = 0; round < full(20); round++) {
      const archive = join(folder, `killed-${round}.kis`)
      const exporting = launchKis(env, 'export', archive)
      await sleep(Math.random() * durationMs)
      // Every other time the service goes first, so that the export is the last that has the files open.
      if (round % 2 === 1) await kill()
      exporting.kill()
      await exporting.ended
      if (round % 2 === 1) await start()
      if (existsSync(archive)) rmSync(archive)
      expect(await run('export', archive)).toMatchObject({ code: 0, errors: '' })
      expect((await run('import', archive, '--check')).code).toBe(0)
      expect(readdirSync(folder).filter((name) => name.includes('.part'))).toEqual([])
      expect((await createCaller(service, own).rest('GET', '/v1/wallet')).status).toBe(200)
    }
    await load.end()
  }, 600_000)

  it(`${full(20)} kills of an import: the service refuses an incomplete one, and a repeated import completes`, async () => {
    const archive = join(folder, 'imported.kis')
    expect((await run('export', archive, '--with-secret')).code).toBe(0)
    await service.close()
    const began = performance.now()
    expect((await launchKis({ ...env, KIS_DATA_DIR: join(folder, 'timed') }, 'import', archive).ended).code).toBe(0)
    const durationMs = performance.now() - began
    for (let round = 0; round < full(20); round++) {
      rmSync(data, { recursive: true })
      const importing = launchKis(env, 'import', archive)
      await Promise.race([sleep(Math.random() * durationMs), importing.ended])
      importing.kill()
      await importing.ended
      const isHalf = await isHalfImported(data)
      if (isHalf) {
        const refused = await launchKis({ ...env, PORT: '0', KIS_PORTAL: 'off' }, 'start').ended
        expect(refused).toMatchObject({ code: 1, errors: expect.stringContaining('has not ended') })
        expect(await run('export', join(folder, 'half.kis'))).toMatchObject({ code: 2, errors: expect.stringContaining('has not ended') })
      }
      const again = await run('import', archive)
      // It was killed when all was done.
      if (again.code !== 0) expect([isHalf, again.errors]).toEqual([false, expect.stringContaining('not empty')])
    }
    await start()
    expect(await kis(service, key, 'verify')).toMatchObject({ code: 0, errors: '' })
  }, 600_000)
})

/** Whether an import into the folder has not ended. */
async function isHalfImported(data: string): Promise<boolean> {
  const file = join(data, 'billing.sqlite')
  if (!existsSync(file)) return false
  using database = new DatabaseSync(file, { readOnly: true })
  const { there } = database.prepare("SELECT count(*) AS there FROM sqlite_schema WHERE name = 'documents_imports'").get() as {
    there: number
  }
  return there > 0 && database.prepare('SELECT 1 FROM documents_imports').get() !== undefined
}
