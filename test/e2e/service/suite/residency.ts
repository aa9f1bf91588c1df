import { expect, it } from 'vitest'
import { balancedWallet } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import { chat, type Running } from './running.ts'

/** The residency policy of an organization. */
export function residency(running: Running): void {
  it('a residency policy keeps every byte away from the cloud', async () => {
    const caller = await running.newOrganization()
    expect((await caller.rest('PATCH', '/v1/organization', { residency_policy: 'local_only' })).status).toBe(200)
    await eventually(async () => !(await caller.openai.models.list()).data.some((model) => model.id === 'mock-chat'), 6_000)
    const { chats, embeddings, reranks } = running.mock
    const refusals = [
      await caller.rest('POST', '/v1/chat/completions', chat('hi')),
      await caller.rest('POST', '/v1/chat/completions', chat('hi', { stream: true })),
      await caller.rest('POST', '/v1/responses', { model: 'mock-chat', input: 'hi' }),
      await caller.rest('POST', '/v1/responses', { model: 'mock-chat', input: 'hi', stream: true }),
      await caller.rest('POST', '/v1/embeddings', { model: 'mock-embed', input: 'hi' }),
      await caller.rest('POST', '/v1/rerank', { model: 'mock-rerank', query: 'hi', documents: ['hi'] }),
      await caller.rest('POST', '/v1/collections', { collection_code: 'c', collection_name: 'c', embedding_model: 'mock-embed' }),
    ]
    expect(refusals.map(({ status, body }) => [status, body.error.code])).toEqual(Array(7).fill([403, 'residency_policy_violation']))
    expect([running.mock.chats, running.mock.embeddings, running.mock.reranks]).toEqual([chats, embeddings, reranks])
    await balancedWallet(caller)
  })
}
