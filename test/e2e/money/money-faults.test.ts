import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { audit } from '../../../subgraphs/billing/test-support/audit.ts'
import { openCollections } from '../../../subgraphs/billing/use-cases/tables.ts'
import { openSqliteDocumentStore } from '../../../subgraphs/common/adapters/sqlite/documents/document-store.ts'
import { silentLog } from '../../../subgraphs/common/process/log.ts'
import { BillingTap } from '../../support/billing-tap.ts'
import { balancedWallet, type Caller, createCaller, type Json, nano, newOrganization } from '../../support/client.ts'
import { METERED_INPUT_TOKENS, MeteredEngine, type Script } from '../../support/engines/metered-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type DistributedService, freePorts, startFiveProcesses } from '../../support/processes/service.ts'
import { full, soaking } from '../../support/soak.ts'

/** A hold lasts 45 s, the reaper looks every 5 s; the rest is for a busy machine. */
const HOLDS_END_MS = 90_000
/** Of every model here, in nano-USD a token. */
const INPUT = 1_000n
const OUTPUT = 2_000n
const LOST_SHARE = 0.3
/** As long as scenario 6 asks; else until the refusals have come, which is what matters. */
const STOPPED_MS = soaking ? 20_000 : 0

/** One vendor under several names, because each engine remembers its failures. */
const ENGINES = ['works', 'refuses', 'hangs', 'babbles', 'boasts'] as const
const createCatalog = (url: string) => `
engines:
${ENGINES.map((name) => `  ${name}: { kind: openai, base_url: "${url}", badge: cloud, first_byte_seconds: ${name === 'hangs' ? 1 : 60} }`).join('\n')}
models:
${ENGINES.map((name) => `  - { id: ${name}, engine: ${name}, kind: chat, max_output_tokens: 1000, price: { input: "1", output: "2" } }`).join('\n')}
`

type Organization = Caller & { readonly organizationId: string }

/** Five processes; what inference says to billing, and billing to inference, goes through a tap. */
describe('Billing under faults', () => {
  let engine: MeteredEngine
  let tap: BillingTap
  let service: DistributedService
  const folder = mkdtempSync(join(tmpdir(), 'kis-faults-'))
  const organizations: Organization[] = []
  beforeAll(async () => {
    engine = await MeteredEngine.start()
    const [billingPort, tapPort] = (await freePorts(2)) as [number, number]
    tap = await BillingTap.start(tapPort, `http://127.0.0.1:${billingPort}`)
    service = await startFiveProcesses({
      catalog: createCatalog(engine.url),
      folder,
      ports: { billing: [billingPort] },
      createEnv: (name): Record<string, string> => (name === 'inference-1' ? { KIS_BILLING_URL: tap.url } : {}),
    })
  }, 120_000)
  afterEach(() => {
    tap.intercept = null
  })
  afterAll(async () => {
    await service?.close()
    await tap?.[Symbol.asyncDispose]()
    await engine?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  async function organization(creditUsd = '10'): Promise<Organization> {
    const created = await newOrganization(createCaller(service, service.key), service, { creditUsd })
    organizations.push(created)
    return created
  }
  const createRequest = (script: Script, model = 'works') => ({
    model,
    messages: [{ role: 'user' as const, content: JSON.stringify(script) }],
  })
  const records = async (caller: Caller): Promise<Json[]> => (await caller.rest('GET', '/v1/usage?limit=100')).body.data
  const nothingHeld = (caller: Caller) =>
    eventually(async () => nano((await caller.rest('GET', '/v1/wallet')).body.held_usd) === 0n, HOLDS_END_MS)
  const spent = async (caller: Caller) => nano('10') - nano((await balancedWallet(caller)).balance_usd)

  /** Streams; gives the pieces that have come, and the failure at the end if there is one. */
  async function stream(caller: Caller, script: Script, { model = 'works', onPiece = (_read: number): void => undefined } = {}) {
    let read = 0
    try {
      for await (const { choices } of await caller.openai.chat.completions.create({ ...createRequest(script, model), stream: true })) {
        if (!choices[0]?.delta.content) continue
        onPiece(++read)
      }
    } catch (failure) {
      return { read, failure: failure as { readonly status?: number; readonly code?: string } }
    }
    return { read, failure: null }
  }

  it(`${LOST_SHARE * 100} % of responses of billing are lost: each of ${full(1_000)} calls that reached the engine is charged once, no other is, and no hold remains`, async () => {
    const caller = await organization()
    tap.intercept = (_exchange, phase) => (phase === 'answer' && Math.random() < LOST_SHARE ? 'lose' : 'pass')
    const callsBefore = engine.calls.size
    let next = 0
    let okCount = 0
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        while (next < full(1_000)) {
          const number = next++
          const script = { id: `lossy-${number}`, pieces: 3, usage: 'end' } as const
          const isStream = number % 2 === 0
          const failure = isStream
            ? (await stream(caller, script)).failure
            : await caller.openai.chat.completions.create(createRequest(script)).then(
                () => null,
                (error) => error,
              )
          if (failure === null) okCount++
          else expect(failure).toMatchObject({ status: 503, code: 'service_unavailable' })
        }
      }),
    )
    await nothingHeld(caller)
    tap.intercept = null
    const callIds = [...engine.calls.keys()].slice(callsBefore)
    expect(okCount).toBeGreaterThan(0)
    expect(callIds).toHaveLength(okCount)
    for (const id of callIds) expect(engine.calls.get(id)!.requests, id).toBe(1)
    expect(await spent(caller)).toBe(BigInt(okCount) * (BigInt(METERED_INPUT_TOKENS) * INPUT + 3n * OUTPUT))
  }, 600_000)

  it('billing is stopped: new calls are refused immediately, running streams continue, and are charged when it resumes', async () => {
    const caller = await organization()
    const running = [1, 2, 3].map((number) => {
      const id = `running-${number}`
      let read = 0
      const onPiece = (count: number) => {
        read = count
      }
      const ended = stream(caller, { id, pieces: 200, usage: 'end', allowed: 10 }, { onPiece })
      return { id, ended, read: () => read }
    })
    await eventually(() => running.every(({ read }) => read() === 10))
    const billing = service.processes.get('billing-1')!.pid
    process.kill(billing, 'SIGSTOP')
    const stoppedAt = performance.now()
    try {
      // One after the other: those that a cached key lets through to inference, and those that fail at the key.
      for (let i = 0; i < 3 || performance.now() - stoppedAt < STOPPED_MS; i++) {
        const refusals = await Promise.all(
          [true, false].map((isStream) =>
            caller.rest('POST', '/v1/chat/completions', {
              ...createRequest({ id: `refused-${i}`, pieces: 1, usage: 'end' }),
              stream: isStream,
            }),
          ),
        )
        for (const { status, headers, body } of refusals) {
          expect([status, body.error?.code]).toEqual([503, 'service_unavailable'])
          expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
        }
      }
      for (const { id } of running) engine.calls.get(id)!.allow(200)
      await eventually(() => running.every(({ read }) => read() === 200))
    } finally {
      process.kill(billing, 'SIGCONT')
    }
    // The next ping of each role notices it.
    await eventually(async () => (await caller.rest('GET', '/v1/wallet')).status === 200, 10_000)
    for (const { id } of running) engine.calls.get(id)!.allow(201)
    for (const { ended } of running) expect(await ended).toEqual({ read: 200, failure: null })
    await nothingHeld(caller)
    expect([...engine.calls.keys()].filter((id) => id.startsWith('refused'))).toEqual([])
    const charges = await records(caller)
    expect(charges).toHaveLength(running.length)
    for (const record of charges)
      expect(record).toMatchObject({ source: 'provider', input_tokens: METERED_INPUT_TOKENS, output_tokens: 200 })
    expect(await spent(caller)).toBe(3n * (BigInt(METERED_INPUT_TOKENS) * INPUT + 200n * OUTPUT))
  }, 300_000)

  it('an engine refuses everything: it is soon skipped, and nobody pays', async () => {
    const caller = await organization()
    const calls = full(300)
    const ids = Array.from({ length: calls }, (_, i) => `refusing-${i}`)
    for (const id of ids) {
      const { status } = await caller.rest(
        'POST',
        '/v1/chat/completions',
        createRequest({ id, pieces: 1, usage: 'end', fails: 'refuses' }, 'refuses'),
      )
      expect(status).toBeGreaterThanOrEqual(500)
    }
    const attempts = ids.reduce((sum, id) => sum + (engine.calls.get(id)?.requests ?? 0), 0)
    expect(attempts).toBeGreaterThan(0)
    expect(attempts).toBeLessThanOrEqual(calls * 1.1)
    await nothingHeld(caller)
    expect([await records(caller), await spent(caller)]).toEqual([[], 0n])
  }, 120_000)

  it('an engine hangs before its first byte: the call ends, and its input is paid', async () => {
    const caller = await organization()
    const { failure } = await stream(caller, { id: 'hanging', pieces: 1, usage: 'end', allowed: 0 }, { model: 'hangs' })
    expect(failure).toMatchObject({ code: 'engine_timeout' })
    await eventually(() => engine.calls.get('hanging')!.closedAt !== null)
    await nothingHeld(caller)
    expect(await records(caller)).toMatchObject([{ model: 'hangs', output_tokens: 0, source: 'counted' }])
    expect(await spent(caller)).toBeGreaterThan(0n)
  }, 120_000)

  it('an engine sends a malformed chunk: the earlier chunks are returned, then one error, and nobody pays', async () => {
    const caller = await organization()
    const { read, failure } = await stream(caller, { id: 'babbling', pieces: 3, usage: 'end', fails: 'babbles' }, { model: 'babbles' })
    expect(read).toBe(3)
    expect(failure).toMatchObject({ code: 'engine_error' })
    await nothingHeld(caller)
    expect([await records(caller), await spent(caller)]).toEqual([[], 0n])
  }, 120_000)

  it('an engine reports ten times the hold: the hold is charged, and the service absorbs the rest', async () => {
    const caller = await organization('0.01')
    const held: bigint[] = []
    tap.intercept = async ({ operation }, phase) => {
      if (operation === 'placeHold' && phase === 'answer') held.push(nano((await caller.rest('GET', '/v1/wallet')).body.held_usd))
      return 'pass' as const
    }
    const request = { ...createRequest({ id: 'boasting', pieces: 3, usage: 20_000 }, 'boasts'), max_tokens: 1_000 }
    const { status } = await caller.rest('POST', '/v1/chat/completions', request)
    expect(status).toBe(200)
    const [record] = await records(caller)
    expect(record).toMatchObject({ output_tokens: 20_000, source: 'provider' })
    expect([nano(record.amount_usd)]).toEqual(held)
    expect(nano((await balancedWallet(caller)).balance_usd)).toBe(nano('0.01') - held[0]!)
  }, 120_000)

  it('preserves the invariants of the ledger through all of that', async () => {
    await service.close()
    await using store = await openSqliteDocumentStore({ file: join(folder, 'billing-1', 'billing.sqlite'), log: silentLog })
    const collections = openCollections(store)
    expect(organizations.length).toBeGreaterThan(0)
    for (const { organizationId } of organizations) expect((await audit({ collections }, organizationId)).openHolds).toEqual([])
  }, 60_000)
})
