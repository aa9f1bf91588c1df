import { expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { addDocument, balancedWallet, createCaller, type Json, newCollection, newOrganization } from '../../support/client.ts'
import { startMockEngine } from '../../support/engines/mock-engine.ts'
import { onBothEngines } from '../../support/processes/replicas.ts'

const MINUTE_MS = 60_000
/** By how many minutes the clock of each machine is wrong. */
const WRONG: Readonly<Record<string, number>> = {
  'billing-1': -10,
  'billing-2': 10,
  'knowledge-1': 7,
  'knowledge-2': -7,
  'inference-1': -5,
  'gateway-1': 4,
  'rest-adapter-1': -4,
}
/** A call lasts longer than the reaper waits between two looks. */
const CALL_MS = 12_000

await onBothEngines('Clocks that are minutes apart', (start) => {
  it('clocks that are minutes apart do no harm', async () => {
    await using mock = await startMockEngine()
    const service = await start({
      catalog: testCatalog(mock.url),
      replicas: { billing: 2, knowledge: 2 },
      createEnv: (name) => ({
        NODE_OPTIONS: `--import=${new URL('../../support/processes/wrong-clock.mjs', import.meta.url)}`,
        KIS_TEST_CLOCK_WRONG_MS: String(WRONG[name]! * MINUTE_MS),
      }),
    })
    try {
      const operator = createCaller(service, service.key)
      const caller = await newOrganization(operator, service)
      // A hold stays open until its call ends, whichever billing looks at it.
      const call = caller.openai.chat.completions.create({ model: 'mock-chat', messages: [{ role: 'user', content: 'wait at the gate' }] })
      const lasted = new Promise((resolve) => setTimeout(resolve, CALL_MS))
      const collection = await newCollection(caller, 'mock-embed-slow')
      const documents: Json[] = []
      for (let i = 0; i < 4; i++) {
        const names = [0, 1, 2].map((n) => `${i}-${n}.txt`)
        documents.push(...(await Promise.all(names.map((name) => addDocument(caller, collection.id, name, `A text about ${name}.`)))))
      }
      // No lease was taken for one that had run out.
      for (const document of documents) expect(document).toMatchObject({ status: 'ready', attempts: 1 })
      await lasted
      mock.openGate()
      expect((await call).choices[0]?.message.content).toBe('Hello from the mock مرحبا')
      const { body: usage } = await caller.rest('GET', '/v1/usage?limit=100')
      expect(usage.data.filter(({ operation }: { operation: string }) => operation !== 'embedding')).toMatchObject([{ source: 'provider' }])
      // What is dated is dated by the store's clock.
      for (const { created_at } of usage.data) expect(Math.abs(created_at * 1_000 - Date.now())).toBeLessThan(2 * MINUTE_MS)
      await balancedWallet(caller)
    } finally {
      await service.close()
    }
  }, 240_000)
})
