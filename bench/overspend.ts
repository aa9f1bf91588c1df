import { testCatalog } from '../test/support/catalog.ts'
import { balancedWallet, createCaller, nano, newOrganization } from '../test/support/client.ts'
import { METERED_INPUT_TOKENS, MeteredEngine, type Script } from '../test/support/engines/metered-engine.ts'
import { eventually } from '../test/support/eventually.ts'
import { startEmbedded } from '../test/support/processes/service.ts'
import type { BenchRow } from './row.ts'

const CALLS = 1_000
const CREDIT_USD = '1'
/**
 * The model writes the most that was requested, so a call costs nearly its hold: half of the calls would overspend the
 * wallet.
 */
const OUTPUT_TOKENS = 1_000
/** The charge of a call in nano-USD, by the prices of `mock-chat` in the test catalog. */
const CHARGE = BigInt(METERED_INPUT_TOKENS) * 1_000n + BigInt(OUTPUT_TOKENS) * 2_000n
/** Limits above those of the default plan, so that only the wallet refuses. */
const CROWD =
  '  crowd: { storage_bytes: 1000, vectors: 3, max_file_bytes: 2000, requests_per_minute: null, tokens_per_minute: null, concurrency: 5000 }\n'
const ALL_JUDGED_MS = 60_000
const HOLDS_LEFT_MS = 60_000

/**
 * Starts a thousand calls at once on a wallet that can pay half of them. Compares the vendor's output with the balance
 * of the wallet.
 */
export async function benchOverspend(): Promise<BenchRow[]> {
  await using engine = await MeteredEngine.start()
  const service = await startEmbedded({ catalog: testCatalog(engine.url) + CROWD })
  try {
    const caller = await newOrganization(createCaller(service, service.key), service, { creditUsd: CREDIT_USD, plan: 'crowd' })
    const getHeld = async () => nano((await caller.rest('GET', '/v1/wallet')).body.held_usd)
    const script = (id: number): Script => ({ id: `call-${id}`, pieces: 1, usage: OUTPUT_TOKENS, allowed: 0 })
    let refused = 0
    const codes = new Set<string>()
    const calls = Array.from({ length: CALLS }, async (_, i) => {
      const messages = [{ role: 'user', content: JSON.stringify(script(i)) }]
      const { status, body } = await caller.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages, stream: i % 2 === 0 })
      if (status === 200) return
      refused++
      codes.add(body.error.code)
    })
    // No call ends before each is admitted or refused, so all holds are open together.
    await eventually(() => refused + engine.calls.size === CALLS, ALL_JUDGED_MS)
    const held = await getHeld()
    for (const call of engine.calls.values()) call.allow(2)
    await Promise.all(calls)
    const answeredAt = performance.now()
    await eventually(async () => (await getHeld()) === 0n, HOLDS_LEFT_MS).catch(() => undefined)
    const waited = ((performance.now() - answeredAt) / 1_000).toFixed(1)
    const holdsLeft = await getHeld()
    const credit = nano(CREDIT_USD)
    const charged = BigInt(engine.calls.size) * CHARGE
    const overspent = charged > credit ? charged - credit : 0n
    const { balance_usd } = await balancedWallet(caller)
    return [
      {
        what: `${CALLS} calls at once on a wallet of $${CREDIT_USD}`,
        figure: `${overspent} nano-USD overspent, ledger and vendor differ by ${credit - nano(balance_usd) - charged}; ${holdsLeft} held ${waited} s later`,
        target: 'exactly 0; 0 held after 60 s',
        beside: `${engine.calls.size} calls began, ${refused} were refused (${[...codes].join(', ')}), ${held} of ${credit} nano-USD were held; LiteLLM and Portkey have no wallet here`,
      },
    ]
  } finally {
    await service.close()
  }
}
