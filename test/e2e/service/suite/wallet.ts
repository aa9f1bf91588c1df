import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { balancedWallet, nano } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import { chat, type Running } from './running.ts'

/** Holds, refusals and charges. */
export function wallet(running: Running): void {
  describe('wallet', () => {
    it('200 concurrent chats on funds for 7: exactly 7 succeed, and the vendor receives no other', async () => {
      // What one such call holds is seen while the vendor keeps it waiting.
      const request = chat('please wait at the gate', { max_completion_tokens: 100 })
      const probe = await running.newOrganization()
      const probing = probe.rest('POST', '/v1/chat/completions', request)
      const held = async () => nano((await probe.rest('GET', '/v1/wallet')).body.held_usd)
      await eventually(async () => (await held()) > 0n)
      const funds = 7n * (await held())
      const creditUsd = `${funds / 1_000_000_000n}.${(funds % 1_000_000_000n).toString().padStart(9, '0')}`
      const caller = await running.newOrganization({ creditUsd })
      const { chats } = running.mock
      let ended = 0
      const calls = Array.from({ length: 200 }, () => caller.rest('POST', '/v1/chat/completions', request).finally(() => ended++))
      await eventually(() => ended >= 193, 60_000)
      running.mock.openGate()
      const responses = await Promise.all(calls)
      await probing
      const refused = responses.filter(({ status }) => status === 429)
      expect([responses.filter(({ status }) => status === 200).length, refused.length]).toEqual([7, 193])
      expect(
        refused.every(({ body, headers }) => body.error.code === 'insufficient_quota' && headers.get('x-should-retry') === 'false'),
      ).toBe(true)
      expect(running.mock.chats - chats).toBe(7)
      const wallet = await balancedWallet(caller)
      expect(nano(wallet.balance_usd)).toBe(funds - 7n * 28_000n)
    }, 120_000)

    it('calls on a wallet at zero are refused, and succeed again after a top-up', async () => {
      const caller = await running.newOrganization({ creditUsd: '0' })
      const refused = await caller.rest('POST', '/v1/chat/completions', chat('hi'))
      expect([refused.status, refused.body.error]).toEqual([
        429,
        expect.objectContaining({ code: 'insufficient_quota', type: 'insufficient_quota' }),
      ])
      await expect(caller.openai.chat.completions.create(chat('hi'))).rejects.toBeInstanceOf(OpenAI.RateLimitError)
      const topUp = { amount_usd: '1', reference: 'invoice 7' }
      const first = await running.operator.rest('POST', `/v1/organizations/${caller.organizationId}/top-ups`, topUp)
      const again = await running.operator.rest('POST', `/v1/organizations/${caller.organizationId}/top-ups`, topUp)
      expect(again.body.id).toBe(first.body.id)
      expect((await caller.rest('POST', '/v1/chat/completions', chat('hi'))).status).toBe(200)
      expect((await balancedWallet(caller)).balance_usd).toBe('0.999972')
    })

    it.each([500, 429, 401, 400])('a vendor that responds with %i costs nothing', async (status) => {
      const caller = await running.newOrganization()
      running.mock.failWith(status)
      const plain = await caller.rest('POST', '/v1/chat/completions', chat('hi'))
      const streamed = await caller.rest('POST', '/v1/chat/completions', chat('hi', { stream: true }))
      running.mock.failWith(null)
      const expected = {
        500: [502, 'engine_error'],
        429: [429, 'rate_limit_exceeded'],
        401: [503, 'engine_unavailable'],
        400: [400, 'invalid_request'],
      }[status]!
      for (const { status: got, body } of [plain, streamed]) expect([got, body.error.code]).toEqual(expected)
      expect((await balancedWallet(caller)).balance_usd).toBe('10')
      expect((await caller.rest('POST', '/v1/chat/completions', chat('hi'))).status).toBe(200)
    })
  })
}
