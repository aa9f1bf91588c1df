import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { balancedWallet, type Caller, createCaller, type Json, nano, newOrganization } from '../../support/client.ts'
import { METERED_INPUT_TOKENS, MeteredEngine, type Script } from '../../support/engines/metered-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { onBothEngines } from '../../support/processes/replicas.ts'
import type { DistributedService } from '../../support/processes/service.ts'
import { full, soaking } from '../../support/soak.ts'

const CALLS = full(1_000)
/** A dollar for a thousand calls at once, and its tenth for a tenth: less than half of them fit. */
const CREDIT_USD = soaking ? '1' : '0.1'
/** Of the test catalog's `mock-chat` in nano-USD a token. */
const INPUT = 1_000n
const OUTPUT = 2_000n
const CHARGE = BigInt(METERED_INPUT_TOKENS) * INPUT + 5n * OUTPUT

await onBothEngines('One wallet behind two replicas of inference and two of billing', (start) => {
  describe('One wallet behind two replicas of inference and two of billing', () => {
    let engine: MeteredEngine
    let service: DistributedService
    beforeAll(async () => {
      engine = await MeteredEngine.start()
      // The plan lets in more calls at once than there are, so that only the wallet refuses.
      const catalog = `${mockCatalog(engine.url)}  crowd: { storage_bytes: 1000, vectors: 3, max_file_bytes: 2000, requests_per_minute: null, tokens_per_minute: null, concurrency: 5000 }\n`
      service = await start({ catalog, replicas: { billing: 2, inference: 2 } })
    }, 180_000)
    afterAll(async () => {
      await service?.close()
      await engine?.[Symbol.asyncDispose]()
    }, 120_000)

    const createRequest = (id: string, isStream: boolean) => {
      const script: Script = { id, pieces: 5, usage: 'end', allowed: 0 }
      return { model: 'mock-chat', messages: [{ role: 'user', content: JSON.stringify(script) }], stream: isStream }
    }
    const getWallet = async (caller: Caller) => (await caller.rest('GET', '/v1/wallet')).body

    it(`${CALLS} concurrent calls: as many as it can pay start, the others are refused, and the charge equals the calls made`, async () => {
      const caller = await newOrganization(createCaller(service, service.key), service, { creditUsd: CREDIT_USD, plan: 'crowd' })
      const credit = nano(CREDIT_USD)
      const release = () => {
        for (const call of engine.calls.values()) call.allow(6)
      }
      // What one call holds. Its id has as many digits as those of the others.
      const first = caller.rest('POST', '/v1/chat/completions', createRequest('call-99999', false))
      await eventually(() => engine.calls.size === 1)
      const held = nano((await getWallet(caller)).held_usd)
      release()
      expect((await first).status).toBe(200)
      const begins = Number((credit - CHARGE) / held)
      expect(begins).toBeLessThan(CALLS)

      let refused = 0
      const calls = Array.from({ length: CALLS }, async (_, i) => {
        const response = await caller.rest('POST', '/v1/chat/completions', createRequest(`call-${10_000 + i}`, i % 2 === 0))
        if (response.status !== 200) refused++
        return response
      })
      // Nobody that begins ends before everybody is judged: all the holds are open together.
      await eventually(() => refused + engine.calls.size - 1 === CALLS, 120_000)
      const { available_usd, balance_usd } = await getWallet(caller)
      expect(nano(available_usd)).toBeGreaterThanOrEqual(0n)
      expect(nano(balance_usd)).toBe(credit - CHARGE)
      expect(engine.calls.size - 1).toBeLessThanOrEqual(begins)
      release()
      const outcomes = await Promise.all(calls)
      const refusals = outcomes.filter(({ status }) => status !== 200)
      const codes = new Set(refusals.map(({ body }) => body.error.code))
      // A wallet that is written by everybody at once may ask a caller to come again; it never lets one in for that.
      expect([...codes].filter((code) => code !== 'insufficient_quota' && code !== 'service_unavailable')).toEqual([])
      if (!codes.has('service_unavailable')) expect(engine.calls.size - 1).toBe(begins)

      await eventually(async () => nano((await getWallet(caller)).held_usd) === 0n, 120_000)
      const charged = BigInt(engine.calls.size)
      expect([...engine.calls.values()].every(({ requests }) => requests === 1)).toBe(true)
      expect(nano((await balancedWallet(caller)).balance_usd)).toBe(credit - charged * CHARGE)
      let records = 0
      for (let after = ''; ; ) {
        const { body }: { body: Json } = await caller.rest('GET', `/v1/usage?limit=100${after && `&after=${after}`}`)
        records += body.data.length
        if (!body.has_more) break
        after = body.last_id
      }
      expect(BigInt(records)).toBe(charged)
    }, 300_000)
  })
})
