import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { type Caller, createCaller, type Json, newCollection, newOrganization, settled } from '../../support/client.ts'
import { bombFiles } from '../../support/data/bombs.ts'
import { type FileToRead, seedFiles } from '../../support/data/spoiled-files.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const GOOD_FILES = 100
/** What the service's own process may grow by while it reads. */
const MAX_GROWTH_BYTES = 100_000_000
const TIMEOUT_MS = 600_000

describe('Document bombs among good files', () => {
  let mock: MockEngine
  let service: Service
  let caller: Caller
  let collection: Json
  beforeAll(async () => {
    mock = await startMockEngine()
    service = await startEmbedded({ catalog: mockCatalog(mock.url) })
    caller = await newOrganization(createCaller(service, service.key), service, { creditUsd: '10' })
    collection = await newReadingCollection()
  }, TIMEOUT_MS)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
  })

  async function newReadingCollection(): Promise<Json> {
    const created = await newCollection(caller, 'mock-embed')
    expect((await caller.rest('PATCH', `/v1/collections/${created.id}`, { ocr: 'auto' })).body.ocr).toBe('auto')
    return created
  }

  async function attach({ name, bytes }: FileToRead, { id }: Json = collection): Promise<string> {
    const file = await caller.rest('POST', '/v1/files', { file_name: name, content_base64: Buffer.from(bytes).toString('base64') })
    expect([name, file.status]).toEqual([name, 201])
    const document = await caller.rest('POST', `/v1/collections/${id}/documents`, { file_id: file.body.message.id })
    expect([name, document.status]).toEqual([name, 201])
    return document.body.id
  }
  const isReady = async () => (await fetch(new URL('/readyz', service.rest))).status
  const rssBytes = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.processes.get('all')!.pid}/status`, 'utf8'))![1]) * 1_024

  it('every good file becomes ready, and the service keeps its memory low and stays ready', { timeout: TIMEOUT_MS }, async () => {
    const seeds = (await seedFiles()).filter(({ name }) => name.startsWith('made.'))
    const good = Array.from({ length: GOOD_FILES }, (_, index): FileToRead => {
      const seed = seeds[index]
      return seed ?? { name: `${index}.md`, bytes: Buffer.from(`# Number ${index}\n\nThe harbour of Sur has ${index} boats.`) }
    })
    // What harmless files take is not growth: the heap, and buffers of uploads of several megabytes.
    const harmless = [...seeds, { name: 'large.md', bytes: Buffer.from(`${' '.repeat(3_000_000)}# The first file`) }]
    // In another collection, as one has the same bytes once.
    const other = await newReadingCollection()
    for (const file of harmless) await settled(caller, other.id, await attach(file, other))
    const before = rssBytes()
    let most = before
    const statuses = new Set<number>()
    const watch = setInterval(async () => {
      most = Math.max(most, rssBytes())
      statuses.add(await isReady())
    }, 500)
    const bombs = bombFiles()
    const wanted: string[] = []
    const spoiled = new Map<string, string>()
    for (const [index, file] of good.entries()) {
      const bomb = bombs[index / 4]
      if (bomb) spoiled.set(await attach(bomb), bomb.name)
      wanted.push(await attach(file))
    }
    for (const id of wanted) expect(await settled(caller, collection.id, id, TIMEOUT_MS)).toMatchObject({ status: 'ready' })
    const verdicts: string[] = []
    for (const [id, name] of spoiled) {
      const { status, error } = await settled(caller, collection.id, id, TIMEOUT_MS)
      verdicts.push(`${name}: ${error?.code ?? status}`)
      expect(['ready', 'corrupt', 'limit_exceeded', 'timeout', 'empty', 'no_text']).toContain(error?.code ?? status)
    }
    clearInterval(watch)
    console.log([`grown by ${((most - before) / 1e6).toFixed(0)} MB`, ...verdicts].join('\n'))
    expect([...statuses]).toEqual([200])
    expect(most - before).toBeLessThan(MAX_GROWTH_BYTES)
  })
})
