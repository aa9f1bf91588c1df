import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testCatalog } from '../support/catalog.ts'
import { kis } from '../support/cli.ts'
import { addDocument, type Caller, callerOf, type Json, newCollection, newOrganization } from '../support/client.ts'
import { type MockEngine, startMockEngine } from '../support/mock-engine.ts'
import { type Service, startEmbedded } from '../support/service.ts'

describe('kis verify on the embedded index', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-verify-'))
  const index = join(folder, 'data', 'index.sqlite')
  let mock: MockEngine
  let service: Service
  let key: string
  let caller: Caller
  const start = async () => {
    service = await startEmbedded({ catalog: testCatalog(mock.url), folder })
    key ??= service.key
    caller = { ...callerOf(service, caller?.key ?? key) }
  }
  beforeAll(async () => {
    mock = await startMockEngine()
    await start()
    caller = await newOrganization(callerOf(service, key), service)
  })
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  const verify = (...args: string[]) => kis(service, key, 'verify', '--json', ...args)
  const parsed = (lines: readonly string[]): Json[] => lines.map((line) => JSON.parse(line))
  const balanceOf = async (who: Caller) => (await who.rest('GET', '/v1/wallet')).body.balance_usd

  it('finds what a stale index lacks and has too much, and repairs it at nobody’s expense', async () => {
    const collection = await newCollection(caller, 'mock-embed')
    const found = async () => {
      const { status, body } = await caller.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'letters', mode: 'lexical' })
      expect(status).toBe(200)
      return [...new Set(body.data.map((hit: Json) => hit.document_id))].sort()
    }
    const doomed = await addDocument(caller, collection.id, 'doomed.txt', 'The letters went down with the ship.')
    const kept = await addDocument(caller, collection.id, 'kept.txt', 'The sultan keeps his letters in a chest.')
    await service.close()
    copyFileSync(index, `${index}.old`)
    await start()
    const later = await addDocument(caller, collection.id, 'later.txt', 'Letters are read aloud on Tuesdays.')
    expect((await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${doomed.id}`)).status).toBe(200)
    expect(await verify()).toMatchObject({ code: 0, errors: '' })

    await service.close()
    copyFileSync(`${index}.old`, index)
    await start()
    expect(await found()).toEqual([kept.id])
    const said = await verify()
    expect(said.code).toBe(1)
    expect(parsed(said.lines)).toMatchObject([
      { kind: 'extra', collectionId: collection.id, documentId: doomed.id, found: 1, repaired: false },
      { kind: 'missing', collectionId: collection.id, documentId: later.id, expected: 1, found: 0, repaired: false },
      { collections: 1, documents: 2, missing: 1, incomplete: 0, extra: 1, repairing: 0 },
    ])

    const operator = callerOf(service, key)
    const before = [await balanceOf(caller), await balanceOf(operator)]
    const repaired = await verify('--repair')
    expect([repaired.code, parsed(repaired.lines).at(-1)]).toEqual([
      0,
      { collections: 1, documents: 2, chunks: 2, missing: 0, incomplete: 0, extra: 0, repairing: 0 },
    ])
    expect(await found()).toEqual([kept.id, later.id].sort())
    expect(await balanceOf(caller)).toBe(before[0])
    expect(await balanceOf(operator)).toBe(before[1])
    expect((await verify()).code).toBe(0)
  }, 120_000)

  it('says what it cannot do', async () => {
    expect(await kis(service, key, 'verify', '--all')).toMatchObject({ code: 2, lines: [] })
    const refused = await kis(service, caller.key, 'verify')
    expect([refused.code, refused.errors]).toEqual([2, 'This API key lacks the scope `operator`.\n'])
    expect((await kis(service, key, 'verify', '--collection', 'col_none')).errors).toMatch(/^No collection with id `col_none`/)
  }, 60_000)
})
