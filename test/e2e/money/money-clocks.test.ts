import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { balancedWallet, type Caller, createCaller, type Json, newOrganization } from '../../support/client.ts'
import { METERED_INPUT_TOKENS, MeteredEngine, type Script } from '../../support/engines/metered-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const HOUR_MS = 3_600_000
/** Longer than the reaper waits between two looks. */
const LOOKED_MS = 8_000
/** The service's own promise. */
const REVOKED_MS = 5_000

/** In one process on SQLite nothing but the machine's clock says what time it is. */
describe('Machine clock changes during calls', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-clock-'))
  const file = join(folder, 'wrong-ms')
  let engine: MeteredEngine
  let service: Service
  let caller: Caller
  beforeAll(async () => {
    engine = await MeteredEngine.start()
    service = await startEmbedded({
      catalog: mockCatalog(engine.url),
      folder,
      env: { NODE_OPTIONS: `--import=${new URL('../../support/processes/set-clock.mjs', import.meta.url)}`, KIS_TEST_CLOCK_FILE: file },
    })
    caller = await newOrganization(createCaller(service, service.key), service)
  })
  afterAll(async () => {
    await service?.close()
    await engine?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  async function setClock(wrongMs: number): Promise<void> {
    writeFileSync(file, String(wrongMs))
    process.kill(service.processes.get('all')!.pid, 'SIGUSR2')
    await eventually(() => !existsSync(file))
  }
  const send = (script: Script) =>
    caller.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: JSON.stringify(script) }] })

  for (const { name, wrongMs } of [
    { name: 'an hour ahead', wrongMs: HOUR_MS },
    { name: 'two hours back', wrongMs: -HOUR_MS },
    { name: 'right again', wrongMs: 0 },
  ]) {
    it(`${name}: the call in flight preserves its hold and is charged by its use, and others start`, async () => {
      const id = `under-way-${wrongMs}`
      const underWay = send({ id, pieces: 5, usage: 'end', allowed: 0 })
      await eventually(() => engine.calls.get(id)?.requests === 1)
      await setClock(wrongMs)
      const { status, body } = await send({ id: `later-${wrongMs}`, pieces: 5, usage: 'end' })
      expect([status, body.error]).toEqual([200, undefined])
      await new Promise((resolve) => setTimeout(resolve, LOOKED_MS))
      engine.calls.get(id)!.allow(6)
      expect((await underWay).status).toBe(200)
      const records: Json[] = (await caller.rest('GET', '/v1/usage?limit=100')).body.data
      for (const record of records)
        expect(record).toMatchObject({ source: 'provider', input_tokens: METERED_INPUT_TOKENS, output_tokens: 5 })
      expect(records).toHaveLength([...engine.calls.keys()].length)
      await balancedWallet(caller)
    }, 120_000)
  }

  it('an hour back: a revoked key is refused within 5 s', async () => {
    const { body: key } = await caller.rest('POST', '/v1/keys', { name: 'short-lived', scopes: ['inference'] })
    const status = async () => (await createCaller(service, key.key).rest('GET', '/v1/models')).status
    expect(await status()).toBe(200)
    await setClock(-HOUR_MS)
    expect((await caller.rest('DELETE', `/v1/keys/${key.id}`)).status).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, REVOKED_MS))
    expect(await status()).toBe(401)
  }, 60_000)
})
