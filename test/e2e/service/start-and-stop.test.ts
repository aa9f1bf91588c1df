import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { balancedWallet, createCaller } from '../../support/client.ts'
import { startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { ServiceProcess, startEmbedded } from '../../support/processes/service.ts'

const CLI = fileURLToPath(new URL('../../../cli/kis.js', import.meta.url))

/** Runs a start that is expected to fail, and gives what it said. */
function failing(args: readonly string[], env: Record<string, string>): Promise<{ code: number; said: string }> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [CLI, ...args],
      { env: { PATH: process.env.PATH, PORT: '0', ...env }, timeout: 30_000 },
      (error, stdout, stderr) => {
        if (error) resolve({ code: Number(error.code), said: stdout + stderr })
        else reject(new Error(`it did not fail: ${stdout}`))
      },
    )
  })
}

describe('Start and stop', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'kis-start-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it('reports every problem of the configuration at once, and starts nothing', async () => {
    const { code, said } = await failing(['start'], {
      KIS_DATA_DIR: join(folder, 'data'),
      KIS_LOG_LEVEL: 'loud',
      KIS_INTROSPECTION: 'maybe',
      KIS_BOOTSTRAP_API_KEY: 'kis_live_wrong',
      KIS_RETRY_BACKOFF_MS: 'soon',
      KIS_MONGODB_URL: 'mongodb://user:s3c/ret@127.0.0.1/kis',
      KIS_CATALOG: join(folder, 'absent.yaml'),
    })
    expect(code).toBe(1)
    const wrong = ['KIS_LOG_LEVEL', 'KIS_INTROSPECTION', 'KIS_BOOTSTRAP_API_KEY', 'KIS_RETRY_BACKOFF_MS', 'KIS_MONGODB_URL', 'absent.yaml']
    for (const name of wrong) expect(said.split('\n').filter((line) => line.includes(name)).length, name).toBe(1)
    expect(said.trim().split('\n')).toHaveLength(wrong.length)
    expect(said).not.toMatch(/^\s+at |s3c/m)
  })

  it('names an unknown variable in the log, and starts', async () => {
    const started = await ServiceProcess.start([], { KIS_DATA_DIR: join(folder, 'data'), KIS_LOG_LEVLE: 'debug' })
    const said = 'KIS_LOG_LEVLE is not a setting of this version and is ignored; did you mean KIS_LOG_LEVEL?'
    await eventually(() => started.errors.includes(said))
    expect(await started.end()).toBe(0)
  })

  it('refuses a separate role without the shared secret, and an unknown role', async () => {
    expect((await failing(['start', 'billing'], { KIS_DATA_DIR: folder })).said).toContain('KIS_SECRET')
    expect(await failing(['start', 'nonsense'], {})).toMatchObject({ code: 2, said: expect.stringContaining('rest-adapter') })
  })

  it('names a port that is in use and its setting, in one line', async () => {
    const occupied = createServer().listen(0, '127.0.0.1')
    await once(occupied, 'listening')
    const port = String((occupied.address() as AddressInfo).port)
    const env = { KIS_DATA_DIR: join(folder, 'data'), KIS_LOG_LEVEL: 'error' }
    for (const [name, other] of [
      ['PORT', {}],
      ['KIS_METRICS_PORT', { PORT: '0' }],
    ] as const) {
      const { code, said } = await failing(['start'], { ...env, ...other, [name]: port })
      expect([code, said.trim().split('\n')]).toEqual([1, [expect.stringMatching(`^Port ${port} .*${name}`)]])
    }
    occupied.close()
  })

  it('refuses a data directory that another process has, which continues undisturbed', async () => {
    const service = await startEmbedded()
    const { code, said } = await failing(['start'], { KIS_DATA_DIR: join(service.folder, 'data') })
    expect([code, said]).toEqual([1, expect.stringMatching(/another process|in use|locked/i)])
    expect((await createCaller(service, service.key).rest('GET', '/v1/models')).status).toBe(200)
    await service.close()
  })

  it('shows the key until its first use, accepts a given one, and preserves everything over a restart', async () => {
    const env = { KIS_DATA_DIR: join(folder, 'data') }
    const first = await ServiceProcess.start([], env)
    await first.end()
    const second = await ServiceProcess.start([], env)
    expect(second.printedKey).toBe(first.printedKey)
    const caller = createCaller({ rest: second.address!, graphql: '' }, second.printedKey!)
    const created = await caller.rest('POST', '/v1/collections', {
      collection_code: 'kept',
      collection_name: 'Kept',
      embedding_model: 'e5-small-ar-en',
    })
    expect(await second.end()).toBe(0)
    const third = await ServiceProcess.start([], env)
    expect(third.printedKey).toBeUndefined()
    const again = createCaller({ rest: third.address!, graphql: '' }, caller.key)
    expect((await again.rest('GET', `/v1/collections/${created.body.id}`)).body).toEqual(created.body)
    await third.end()
  })

  it('serves after SIGTERM for the configured time, while it is not ready; a second signal ends it', async () => {
    const service = await startEmbedded({ env: { KIS_DRAIN_DELAY_MS: '60000' } })
    const running = service.processes.get('all')!
    const ended = running.end()
    const ready = () => fetch(new URL('/readyz', service.rest))
    await eventually(async () => (await ready()).status === 503)
    expect(await (await ready()).json()).toEqual({ status: 'stopping', problems: [] })
    const { status, headers } = await createCaller(service, service.key).rest('GET', '/v1/wallet')
    expect([status, headers.get('x-kis-version')]).toEqual([200, expect.stringMatching(/^\d+\.\d+\.\d+$/)])
    expect(await running.end()).toBe(1)
    await ended
    await service.close()
  })

  it('ends what is in flight on SIGTERM: the stream gets its end, its engine is stopped, the ledger balances', async () => {
    const mock = await startMockEngine()
    const options = { folder, catalog: testCatalog(mock.url), env: { KIS_DRAIN_MS: '300' } }
    const service = await startEmbedded(options)
    const body = JSON.stringify({ model: 'mock-chat', stream: true, messages: [{ role: 'user', content: 'please hang' }] })
    const headers = { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' }
    const response = await fetch(`${service.rest}/v1/chat/completions`, { method: 'POST', headers, body })
    let text = ''
    const reading = (async () => {
      const pieces = response.body!.pipeThrough(new TextDecoderStream()).getReader()
      for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) text += piece.value
    })().catch(() => undefined)
    await eventually(() => text.includes('Hello'))
    expect(await service.processes.get('all')!.end('SIGTERM')).toBe(0)
    await reading
    expect(text).toContain('"code":"service_unavailable"')
    expect(text).not.toContain('[DONE]')
    await eventually(() => mock.abandoned === 1)
    const next = await startEmbedded(options)
    const wallet = await balancedWallet(createCaller(next, service.key))
    expect(wallet.held_usd).toBe('0')
    await next.close()
    await mock[Symbol.asyncDispose]()
  }, 60_000)
})
