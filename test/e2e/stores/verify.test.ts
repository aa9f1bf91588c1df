import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { addDocument, type Caller, createCaller, type Json, newCollection, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { kis } from '../../support/processes/cli.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

describe('kis verify on embedded stores', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-verify-'))
  const index = join(folder, 'data', 'index.sqlite')
  let mock: MockEngine
  let service: Service
  let key: string
  let caller: Caller
  const start = async () => {
    service = await startEmbedded({ catalog: mockCatalog(mock.url), folder })
    key ??= service.key
    caller = { ...createCaller(service, caller?.key ?? key) }
  }
  beforeAll(async () => {
    mock = await startMockEngine()
    await start()
    caller = await newOrganization(createCaller(service, key), service)
  })
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  const verify = (...args: string[]) => kis(service, key, 'verify', '--json', ...args)
  const parsed = (lines: readonly string[]): Json[] => lines.map((line) => JSON.parse(line))
  const getBalance = async (who: Caller) => (await who.rest('GET', '/v1/wallet')).body.balance_usd

  it("finds what a stale index lacks and has in excess, and repairs it at nobody's expense", async () => {
    const collection = await newCollection(caller, 'mock-embed')
    const found = async () => {
      const { status, body } = await caller.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'letters', mode: 'lexical' })
      expect(status).toBe(200)
      return [...new Set(body.data.map((hit: Json) => hit.document_id))].sort()
    }
    const doomed = await addDocument(caller, collection.id, 'doomed.txt', 'The letters went down with the ship.')
    const intact = await addDocument(caller, collection.id, 'kept.txt', 'The sultan keeps his letters in a chest.')
    // The other parts are read by the test below.
    const verifyIndex = (...args: string[]) => verify('--collection', collection.id, ...args)
    await service.close()
    copyFileSync(index, `${index}.old`)
    await start()
    const later = await addDocument(caller, collection.id, 'later.txt', 'Letters are read aloud on Tuesdays.')
    expect((await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${doomed.id}`)).status).toBe(200)
    expect(await verifyIndex()).toMatchObject({ code: 0, errors: '' })

    await service.close()
    copyFileSync(`${index}.old`, index)
    await start()
    expect(await found()).toEqual([intact.id])
    const said = await verifyIndex()
    expect(said.code).toBe(1)
    expect(parsed(said.lines).filter(({ part }) => part === 'index')).toMatchObject([
      { kind: 'extra', collectionId: collection.id, documentId: doomed.id, found: 1, repaired: false },
      { kind: 'missing', collectionId: collection.id, documentId: later.id, expected: 1, found: 0, repaired: false },
      { collections: 1, documents: 2, missing: 1, incomplete: 0, extra: 1, repairing: 0 },
    ])

    const operator = createCaller(service, key)
    const before = [await getBalance(caller), await getBalance(operator)]
    const repaired = await verifyIndex('--repair')
    expect([repaired.code, parsed(repaired.lines).at(-1)]).toEqual([
      0,
      { part: 'index', collections: 1, documents: 2, chunks: 2, missing: 0, incomplete: 0, extra: 0, repairing: 0 },
    ])
    expect(await found()).toEqual([intact.id, later.id].sort())
    expect(await getBalance(caller)).toBe(before[0])
    expect(await getBalance(operator)).toBe(before[1])
    expect((await verify()).code).toBe(0)
  }, 120_000)

  it('finds corruption of files, ledger and blobs, repairs none of it, and continues with the rest', async () => {
    const collection = await newCollection(caller, 'mock-embed')
    await addDocument(caller, collection.id, 'harbour.txt', 'The harbour is closed in winter.')
    const organizationId = (await caller.rest('GET', '/v1/organization')).body.id
    const sums = async () => (await kis(service, key, 'verify')).lines
    expect(await sums()).toEqual([
      'files: 5 checked, 0 corrupted',
      expect.stringMatching(/^ledger: 2 organizations, \d+ entries, \d+ totals: 0 findings$/),
      expect.stringMatching(/^blobs: \d+ contents of files, \d+ texts: 0 missing, 0 corrupted$/),
      expect.stringMatching(/ 0 missing, 0 incomplete, 0 extra, 0 being repaired$/),
    ])

    await service.close()
    const inFile = (name: string, change: (database: DatabaseSync) => void) => {
      const database = new DatabaseSync(join(folder, 'data', name))
      change(database)
      database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      database.close()
    }
    inFile('billing.sqlite', (billing) => {
      const entries = billing.prepare(`DELETE FROM documents_ledger_entries WHERE doc ->> 'organizationId' = ? AND doc ->> 'sequence' = 2`)
      expect(entries.run(organizationId).changes).toBe(1)
      const totals = billing.prepare(
        `UPDATE documents_usage_totals SET doc = json_set(doc, '$.calls', '99') WHERE doc ->> 'organizationId' = ?`,
      )
      expect(totals.run(organizationId).changes).toBeGreaterThan(0)
    })
    inFile('blobs.sqlite', (blobs) => {
      const text = `SELECT number FROM blob WHERE key GLOB 'doc_*_g[0-9]' ORDER BY number DESC LIMIT 1`
      const corrupt = blobs.prepare(`UPDATE piece SET bytes = zeroblob(length(bytes)) WHERE blob IN (${text})`)
      expect(corrupt.run().changes).toBe(1)
    })
    // An entry of an index of inference that is not what its document says: only the full check compares the two.
    const inference = join(folder, 'data', 'inference.sqlite')
    inFile('inference.sqlite', (database) => {
      database.exec('CREATE TABLE a (id TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID; CREATE INDEX a_text ON a (text)')
      database.exec(`INSERT INTO a VALUES ('spoiled-id', 'spoiled-text')`)
    })
    const bytes = readFileSync(inference)
    const at = bytes.indexOf('spoiled-textspoiled-id')
    expect(at).toBeGreaterThan(0)
    bytes.write('spoilt', at)
    writeFileSync(inference, bytes)
    await start()

    for (const args of [[], ['--repair']]) {
      const { code, lines } = await verify(...args)
      expect(code).toBe(1)
      const said = parsed(lines).filter(({ part }) => part !== 'index')
      expect(said.filter(({ part }) => part === 'files')).toMatchObject([
        { kind: 'damaged', file: 'inference.sqlite', problem: expect.stringContaining('a_text') },
        ...said.filter(({ part, kind }) => part === 'files' && kind).slice(1),
        { files: 5, damaged: 1 },
      ])
      const ledger = said.filter(({ part, kind }) => part === 'ledger' && kind)
      expect(new Set(ledger.map(({ kind, organizationId }) => `${kind} ${organizationId}`))).toEqual(
        new Set([`gap ${organizationId}`, `total ${organizationId}`]),
      )
      const blobs = said.filter(({ part, kind }) => part === 'blobs' && kind)
      expect(blobs).toMatchObject([{ kind: 'damaged', organizationId, detail: 'the SHA-256 of the bytes differs' }])
    }
    expect((await kis(service, key, 'verify', '--collection', collection.id)).code).toBe(0)
  }, 120_000)

  it('explains invalid arguments, a missing scope and an unknown collection', async () => {
    expect(await kis(service, key, 'verify', '--all')).toMatchObject({ code: 2, lines: [] })
    const refused = await kis(service, caller.key, 'verify')
    expect([refused.code, refused.errors]).toEqual([2, 'This API key lacks the scope `operator`.\n'])
    expect((await kis(service, key, 'verify', '--collection', 'col_none')).errors).toMatch(/^No collection with id `col_none`/)
  }, 60_000)
})
