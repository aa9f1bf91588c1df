import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { APIError } from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { balancedWallet, type Caller, createCaller, type Json, nano, newOrganization } from '../../support/client.ts'
import { METERED_INPUT_TOKENS, MeteredEngine } from '../../support/engines/metered-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { soaking } from '../../support/soak.ts'

/** What a killed process held is free again within this of the next start. */
const HOLDS_FREE_MS = 10_000
/** A call is at its moment within this. */
const MOMENT_MS = 30_000
/** Prices of the test catalog's `mock-chat` in nano-USD a token. */
const INPUT = 1_000n
const OUTPUT = 2_000n
const PIECES = 300
/** Far enough for billing to have heard of it: it is told every 64 tokens. */
const MANY = 200
const RANDOM_ROUNDS = soaking ? 30 : 4

/** `allowed`: what the engine gives until the kill; null: all, and the kill comes at any moment. */
interface Moment {
  readonly name: string
  readonly allowed: number | null
  readonly stream: boolean
}

const MOMENTS: readonly Moment[] = [
  { name: 'a call at the engine call', allowed: 0, stream: false },
  { name: 'a call during the engine call', allowed: MANY, stream: false },
  { name: 'a stream before its first chunk', allowed: 0, stream: true },
  { name: 'a stream after its first chunk', allowed: 1, stream: true },
  { name: `a stream after ${MANY} pieces`, allowed: MANY, stream: true },
  { name: 'a stream before the end mark of its engine', allowed: PIECES, stream: true },
]

interface Sent {
  readonly name: string
  readonly id: string
  readonly key: string
  readonly stream: boolean
  readonly allowed: number | null
  readonly read: () => number
  /** Null: the answer came whole. */
  readonly failure: Promise<unknown>
}

/** The start does not know yet how the call has ended, and says when to come back. */
const isUnjudged = (response: unknown) =>
  response instanceof APIError && response.status === 409 && response.headers?.get('x-should-retry') === 'true'

describe('Idempotent calls of a killed process', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-crash-repeats-'))
  let engine: MeteredEngine
  let service: Service
  let operatorKey: string
  const start = async () => {
    service = await startEmbedded({ folder, catalog: mockCatalog(engine.url) })
    operatorKey ||= service.key
  }
  beforeAll(async () => {
    engine = await MeteredEngine.start()
    await start()
  }, 60_000)
  afterAll(async () => {
    await service?.close()
    await engine?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  function sendOnce(
    caller: Caller,
    { id, stream, allowed }: { readonly id: string; readonly stream: boolean; readonly allowed: number | null },
  ) {
    const content = JSON.stringify({ id, pieces: PIECES, usage: 'end', ...(allowed !== null && { allowed }) })
    const request = { model: 'mock-chat', messages: [{ role: 'user' as const, content }] }
    const headers = { 'idempotency-key': id }
    let read = 0
    const whole = async () => {
      if (!stream) {
        const { choices } = await caller.openai.chat.completions.create(request, { headers })
        read = choices[0]!.message.content!.split(' word').length - 1
      } else
        for await (const { choices } of await caller.openai.chat.completions.create({ ...request, stream: true }, { headers }))
          if (choices[0]?.delta.content) read++
      if (read !== PIECES) throw new Error(`${read} pieces of ${PIECES}`)
      return null
    }
    return { read: () => read, failure: whole().catch((error) => error as unknown) }
  }

  async function send({ name, ...call }: Moment & { readonly id: string }): Promise<Sent> {
    const caller = await newOrganization(createCaller(service, operatorKey), service)
    return { name, ...call, key: caller.key, ...sendOnce(caller, call) }
  }

  /**
   * After the kill: what was held is free, and each repeat has an answer, or hears what was charged for a part of one.
   * Each call is paid once.
   */
  async function judge(sent: readonly Sent[]): Promise<void> {
    await service.processes.get('all')!.end('SIGKILL')
    const failures = await Promise.all(sent.map(({ failure }) => failure))
    await start()
    const held = async ({ key }: Sent) => nano((await createCaller(service, key).rest('GET', '/v1/wallet')).body.held_usd)
    await eventually(async () => (await Promise.all(sent.map(held))).every((amount) => amount === 0n), HOLDS_FREE_MS)
    for (const [i, call] of sent.entries()) {
      const { name, id, key, stream, read } = call
      const caller = createCaller(service, key)
      const before = (await balancedWallet(caller)).balance_usd
      let response: unknown
      await eventually(async () => {
        response = await sendOnce(caller, call).failure
        return !isUnjudged(response)
      }, HOLDS_FREE_MS)
      const records: readonly Json[] = (await caller.rest('GET', '/v1/usage')).body.data
      const { balance_usd } = await balancedWallet(caller)
      const charged = nano('10') - nano(balance_usd)
      expect(records, name).toHaveLength(1)
      const { source, input_tokens, output_tokens, amount_usd } = records[0]
      expect([nano(amount_usd), BigInt(input_tokens) * INPUT + BigInt(output_tokens) * OUTPUT], name).toEqual([charged, charged])
      if (response === null) {
        expect([source, input_tokens, output_tokens], name).toEqual(['provider', METERED_INPUT_TOKENS, PIECES])
        expect(engine.calls.get(id)!.requests, name).toBeLessThanOrEqual(2)
        if (failures[i] === null) expect([engine.calls.get(id)!.requests, balance_usd], name).toEqual([1, before])
      } else {
        // A part of it was delivered, and billing had heard of that.
        expect(stream && read() > 0 && failures[i] !== null, name).toBe(true)
        expect(source, name).toBe('estimated')
        expect(output_tokens, name).toBeGreaterThan(0)
        expect(output_tokens, name).toBeLessThanOrEqual(engine.calls.get(id)!.produced)
        expect(balance_usd, name).toBe(before)
        expect(response, name).toBeInstanceOf(APIError)
        expect(response, name).toMatchObject({
          status: 409,
          code: 'idempotency_conflict',
          message: expect.stringContaining(`${amount_usd} USD`),
        })
        expect((response as APIError).headers!.get('x-should-retry'), name).toBe('false')
        expect(engine.calls.get(id)!.requests, name).toBe(1)
      }
      expect(await held(call), name).toBe(0n)
    }
  }

  it('at fixed moments: each call is free at the next start, and its repeat is paid once', async () => {
    const calls = MOMENTS.map((moment) => ({ ...moment, id: moment.name.replaceAll(' ', '-') }))
    const sent = await Promise.all(calls.map(send))
    const isThere = ({ id, stream, allowed, read }: Sent) => {
      const { requests, produced } = engine.calls.get(id) ?? { requests: 0, produced: 0 }
      return requests === 1 && (!stream || (produced === allowed && read() === produced))
    }
    for (const call of sent) await eventually(() => isThere(call), MOMENT_MS)
    await judge(sent)
  }, 120_000)

  it(`at any moment, ${RANDOM_ROUNDS} times: all are free at the next start, and their repeats are paid once`, async () => {
    for (let round = 0; round < RANDOM_ROUNDS; round++) {
      const forms = [false, true, false, true, false, true].map((stream, i) => ({ stream, id: `random-${round}-${i}` }))
      const sent = await Promise.all(forms.map((form) => send({ ...form, name: form.id, allowed: null })))
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 120))
      await judge(sent)
    }
  }, 600_000)
})
