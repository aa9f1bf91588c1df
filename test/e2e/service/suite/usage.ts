import { CursorPage } from 'openai/pagination'
import { expect, it } from 'vitest'
import { balancedWallet, type Json, nano } from '../../../support/client.ts'
import type { Library } from './library.ts'
import { chat } from './running.ts'

/** What a call holds and costs, as its caller sees it. */
export function usage(library: Library): void {
  it('quotes the hold of a call, and counts the tokens of a message, free of charge', async () => {
    const { caller } = library
    const before = await balancedWallet(caller)
    const request = chat('How much would this be?', { max_completion_tokens: 10 })
    const quote = await caller.rest('POST', '/v1/chat/completions/quote', request)
    expect([quote.status, quote.body.is_covered]).toEqual([200, true])
    const [{ held_input_tokens: held }] = quote.body.models
    // At 1 and 2 USD per million tokens.
    expect(nano(quote.body.amount_usd)).toBe(BigInt(held) * 1_000n + 20_000n)
    const { model, messages } = request
    const counted = await caller.rest('POST', '/v1/messages/count_tokens', { model, messages })
    expect(counted.body).toEqual({ input_tokens: quote.body.input_tokens })
    expect(await balancedWallet(caller)).toEqual(before)
  })

  it('records every step in the usage and the wallet', async () => {
    const { caller } = library
    await caller.rest('POST', '/v1/chat/completions', chat('How much are meals?', { model: 'extractive' }))
    const { body } = await caller.rest('GET', '/v1/usage?limit=100')
    const byModel = new Set(body.data.map((record: Json) => `${record.operation} ${record.model}`))
    expect(byModel).toEqual(new Set(['embedding e5-small-ar-en', 'chat_completion extractive', 'chat_completion mock-chat']))
    const spent = body.data.reduce((sum: bigint, record: Json) => sum + nano(record.amount_usd), 0n)
    const wallet = await balancedWallet(caller)
    expect(nano(wallet.balance_usd)).toBe(nano('10') - spent)
    expect(spent).toBeGreaterThan(0n)
  })

  it('supports the pagination of the OpenAI client, by IDs, in every list', async () => {
    const { caller } = library
    const readIds = async (path: string, limit: number) => {
      const ids: string[] = []
      for await (const item of caller.openai.getAPIList(path, CursorPage, { query: { limit } })) ids.push((item as Json).id)
      return ids
    }
    for (const path of ['/usage', '/wallet/entries', '/collections', '/files']) {
      const whole = await caller.rest('GET', `/v1${path}?limit=100`)
      const ids = whole.body.data.slice(0, 12).map(({ id }: Json) => id)
      expect(ids.length, path).toBeGreaterThan(0)
      expect((await readIds(path, Math.max(1, Math.floor(ids.length / 3)))).slice(0, ids.length), path).toEqual(ids)
    }
    const other = await caller.rest('GET', `/v1/usage?after=use_${'0'.repeat(32)}`)
    expect([other.status, other.body.error.code, other.body.error.param]).toEqual([400, 'invalid_request', 'after'])
  })
}
