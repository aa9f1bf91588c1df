import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { balancedWallet, type Caller, createCaller, type Json, nano, newOrganization } from '../../support/client.ts'
import { METERED_INPUT_TOKENS, MeteredEngine, type Script } from '../../support/engines/metered-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { full, soaking } from '../../support/soak.ts'

const CALLS = full(1_000)
const AT_ONCE = 10
/** Prices of the test catalog's `mock-chat` in nano-USD a token. */
const INPUT = 1_000n
const OUTPUT = 2_000n
/**
 * The vendor's work ends within a second of the caller's leaving; a machine that runs other suites besides is given
 * more.
 */
const CLOSED_WITHIN_MS = soaking ? 1_000 : 5_000

/** When a caller leaves, and what the engine says of usage. */
const LEAVINGS = [
  { name: 'before the first chunk', stream: true, usage: 'end', at: 'before' },
  { name: 'midway, usage at the end', stream: true, usage: 'end', at: 'middle' },
  { name: 'midway, usage never', stream: true, usage: 'never', at: 'middle' },
  { name: 'midway, while the next chunk is pending', stream: true, usage: 'never', at: 'race' },
  { name: 'midway, usage on every chunk', stream: true, usage: 'each', at: 'middle' },
  { name: 'after the last chunk', stream: true, usage: 'end', at: 'after' },
  { name: 'before the engine responds', stream: false, usage: 'end', at: 'before' },
  { name: 'during the response of the engine', stream: false, usage: 'end', at: 'middle' },
  { name: 'not at all', stream: true, usage: 'end', at: 'never' },
] as const
type Leaving = (typeof LEAVINGS)[number]

describe(`${CALLS} callers of the openai library that disconnect at any moment`, () => {
  let engine: MeteredEngine
  let service: Service
  beforeAll(async () => {
    engine = await MeteredEngine.start()
    service = await startEmbedded({ catalog: mockCatalog(engine.url) })
  })
  afterAll(async () => {
    await service?.close()
    await engine?.[Symbol.asyncDispose]()
  })

  /** Makes the call and leaves it; gives when. */
  async function disconnect(caller: Caller, script: Script, { stream, at }: Leaving): Promise<number> {
    const stop = new AbortController()
    const content = JSON.stringify(script)
    const request = { model: 'mock-chat', messages: [{ role: 'user' as const, content }] }
    const call = () => engine.calls.get(script.id)
    if (!stream) {
      const response = caller.openai.chat.completions.create(request, { signal: stop.signal }).catch((error) => error)
      await eventually(() => call()?.requests === 1)
      stop.abort()
      await response
      return performance.now()
    }
    const last =
      at === 'before' ? 0 : at === 'middle' || at === 'race' ? 1 + Math.floor(Math.random() * (script.pieces - 1)) : script.pieces
    const opening = caller.openai.chat.completions.create(
      { ...request, stream: true, stream_options: { include_usage: true } },
      { signal: stop.signal },
    )
    let read = 0
    try {
      if (last === 0) {
        opening.catch(() => undefined)
        await eventually(() => call()?.requests === 1)
        stop.abort()
        return performance.now()
      }
      for await (const { choices } of await opening) {
        if (choices[0]?.delta.content) read++
        if (at === 'after' ? choices[0]?.finish_reason : at !== 'never' && read === last) {
          if (at === 'race') call()!.allow(last + 1)
          stop.abort()
          return performance.now()
        }
        call()!.allow(at === 'never' ? script.pieces + 1 : Math.min(read + 1, script.pieces))
      }
    } catch (error) {
      if (!stop.signal.aborted) throw error
    }
    return performance.now()
  }

  it('each pay for what the engine counts as produced, stop its work, and leave no hold', async () => {
    const operator = createCaller(service, service.key)
    let slowestMs = 0
    const inputs = new Set<number>()
    async function one(number: number): Promise<void> {
      const leaving = LEAVINGS[number % LEAVINGS.length]!
      const { stream, usage, at, name } = leaving
      const id = String(10_000 + number)
      const caller = await newOrganization(operator, service, { name })
      const allowed = at === 'before' ? 0 : 1
      const leftAt = await disconnect(caller, { id, pieces: 2 + Math.floor(Math.random() * 20), usage, allowed }, leaving)
      const call = engine.calls.get(id)!
      await eventually(() => call.closedAt !== null)
      slowestMs = Math.max(slowestMs, call.closedAt! - leftAt)
      expect(call, name).toMatchObject({ requests: 1, hasFinished: at === 'never' })

      let records: Json[] = []
      await eventually(async () => {
        records = (await caller.rest('GET', '/v1/usage')).body.data
        return records.length > 0
      })
      const record = records[0]!
      expect(records, name).toHaveLength(1)
      // The usage comes right behind the last chunk. A caller who disconnects there may have missed it or not, and the
      // test allows both.
      const isReported = usage === 'each' || at === 'never' || (at === 'after' && record.source === 'provider')
      expect(record.source, name).toBe(isReported ? 'provider' : 'counted')
      if (isReported) expect(record.input_tokens, name).toBe(METERED_INPUT_TOKENS)
      else inputs.add(record.input_tokens)
      if (at === 'race') expect(Math.abs(record.output_tokens - call.produced), name).toBeLessThanOrEqual(1)
      else expect(record.output_tokens, name).toBe(stream ? call.produced : 0)
      const charge = BigInt(record.input_tokens) * INPUT + BigInt(record.output_tokens) * OUTPUT
      expect(nano(record.amount_usd), name).toBe(charge)
      const { balance_usd, held_usd } = await balancedWallet(caller)
      expect([nano(balance_usd), held_usd], name).toEqual([nano('10') - charge, '0'])
    }
    let next = 0
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (next < CALLS) await one(next++)
      }),
    )
    expect(slowestMs).toBeLessThan(CLOSED_WITHIN_MS)
    // Texts of one length have one count, but for the digits of the pieces.
    expect(Math.max(...inputs) - Math.min(...inputs)).toBeLessThanOrEqual(2)
  }, 1_200_000)
})
