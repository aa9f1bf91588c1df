import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { balancedWallet, type Caller, createCaller, newOrganization } from '../../support/client.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase } from '../../support/engines/mongodb.ts'
import { eventually } from '../../support/eventually.ts'
import { type DistributedService, startFiveProcesses } from '../../support/processes/service.ts'

/** What waits for a stopped process hears of it within 5 s. A busy machine takes its time. */
const HEARD_MS = 20_000
const LOAD_MS = 60_000
/** The reaper ends the hold of a call that nobody settles. */
const HOLDS_END_MS = 120_000
const CALLERS = 4

interface Call {
  readonly text: string
  readonly beganAtMs: number
  /** `ok`, or the code of the error. */
  outcome?: string
}

await onEngine('KIS_TEST_MONGODB_URL', 'Replica stopped under load', (mongodb) => {
  describe('Replica stopped under load', () => {
    const database = newDatabaseName()
    let mock: MockEngine
    let service: DistributedService
    let caller: Caller
    const calls: Call[] = []
    beforeAll(async () => {
      mock = await startMockEngine()
      service = await startFiveProcesses({
        catalog: testCatalog(mock.url),
        env: { KIS_MONGODB_URL: withDatabase(mongodb, database) },
        replicas: { inference: 2 },
      })
      caller = await newOrganization(createCaller(service, service.key), service)
    }, 240_000)
    afterAll(async () => {
      await service?.close()
      await mock?.[Symbol.asyncDispose]()
      await dropServiceDatabases(mongodb, database)
    })

    /** `script` is the last word, which says what the engine does. Every second call is streamed. */
    async function chat(script: string): Promise<Call> {
      const call: Call = { text: `call ${calls.length} ${script}`, beganAtMs: performance.now() }
      const stream = calls.push(call) % 2 === 0
      const response = await fetch(`${service.rest}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'mock-chat', stream, messages: [{ role: 'user', content: call.text }] }),
      })
      const text = await response.text()
      const code = /"code":\s*"(\w+)"/.exec(text)?.[1]
      call.outcome = code ?? (response.ok && (!stream || text.includes('[DONE]')) ? 'ok' : `${response.status} ${text}`)
      return call
    }
    const doneSince = (atMs: number) => calls.filter(({ beganAtMs, outcome }) => beganAtMs > atMs && outcome === 'ok').length

    it('delays no call for as long as it is stopped, gets no others, and bills nothing twice', async () => {
      const held = Array.from({ length: 4 }, () => chat('gate'))
      await eventually(() => mock.chats === held.length, LOAD_MS)
      const ended = () => calls.slice(0, held.length).filter(({ outcome }) => outcome !== undefined)
      let isOver = false
      const load = Array.from({ length: CALLERS }, async () => {
        while (!isOver) await chat('slow')
      })
      await eventually(() => doneSince(0) >= 2 * CALLERS, LOAD_MS)

      const { pid } = service.processes.get('inference-1')!
      process.kill(pid, 'SIGSTOP')
      const stoppedAtMs = performance.now()
      try {
        // Two of them are there.
        await eventually(() => ended().length === 2, HEARD_MS)
        expect(ended().map(({ outcome }) => outcome)).toEqual(['service_unavailable', 'service_unavailable'])
        // Nothing waits for it any more, and the other replica does all.
        await eventually(() => calls.slice(held.length).every(({ beganAtMs, outcome }) => beganAtMs > stoppedAtMs || outcome), HEARD_MS)
        const heardAtMs = performance.now()
        await eventually(() => doneSince(heardAtMs) >= 5 * CALLERS, LOAD_MS)
        expect(calls.filter(({ beganAtMs, outcome }) => beganAtMs > heardAtMs && outcome && outcome !== 'ok')).toEqual([])
      } finally {
        process.kill(pid, 'SIGCONT')
      }
      const wentOnAtMs = performance.now()
      mock.openGate()
      expect((await Promise.all(held)).map(({ outcome }) => outcome).sort()).toEqual([
        'ok',
        'ok',
        'service_unavailable',
        'service_unavailable',
      ])
      await eventually(() => doneSince(wentOnAtMs) >= 5 * CALLERS, LOAD_MS)
      isOver = true
      await Promise.all(load)

      const outcomes = new Set(calls.map(({ outcome }) => outcome))
      expect([...outcomes].sort()).toEqual(['ok', 'service_unavailable'])
      const contents = mock.requests.map(({ messages }) => (messages as { content: string }[]).at(-1)!.content)
      expect(contents.length).toBe(new Set(contents).size)
      await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0', HOLDS_END_MS)
      await balancedWallet(caller)
      const billed = (await caller.rest('GET', '/v1/usage/summary')).body.total.calls
      const okCalls = calls.filter(({ outcome }) => outcome === 'ok').length
      expect(billed).toBeGreaterThanOrEqual(okCalls)
      expect(billed).toBeLessThanOrEqual(contents.length)
    }, 400_000)
  })
})
