import { expect, it } from 'vitest'
import { balancedWallet, type Caller, createCaller } from '../../../support/client.ts'
import { chat, type Running } from './running.ts'

/** The residency policy of an organization. */
export function residency(running: Running): void {
  it('a residency policy prevents every byte from reaching the cloud', async () => {
    const caller = await running.newOrganization()
    expect((await caller.rest('PATCH', '/v1/organization', { residency_policy: 'local_only' })).status).toBe(200)
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

  it('every read after a change of the rules reflects the change immediately', async () => {
    const admin = await running.newOrganization()
    const { body: organization } = await admin.rest('GET', '/v1/organization')
    const { body: key } = await admin.rest('POST', '/v1/keys', { name: 'app', scopes: ['inference', 'knowledge:write'] })
    const app = createCaller(running.service, key.key)
    const models = async () => (await app.openai.models.list()).data.map(({ id }) => id)
    const change = async (path: string, body: object, by: Caller = admin, method = 'PATCH') => {
      // The key is read before, so that a process may remember it.
      expect(await models()).toContain('extractive')
      expect(await by.rest(method, path, body)).toMatchObject({ status: 200 })
    }
    const collect = (code: string) =>
      app.rest('POST', '/v1/collections', { collection_code: code, collection_name: code, embedding_model: 'mock-embed' })

    await change('/v1/organization', { residency_policy: 'local_only' })
    expect(await models()).not.toContain('mock-chat')
    expect((await collect('local')).body.error.code).toBe('residency_policy_violation')
    await change('/v1/organization', { residency_policy: 'unrestricted' })
    expect((await collect('cloud')).status).toBe(201)

    await change(`/v1/keys/${key.id}`, { model_allowlist: ['extractive'] })
    expect(await models()).toEqual(['extractive'])
    await change(`/v1/keys/${key.id}`, { model_allowlist: null, scopes: ['inference'] })
    expect((await collect('scopes')).body.error.code).toBe('permission_denied')

    const operated = `/v1/organizations/${organization.id}`
    await change(`${operated}/suspend`, { reason: 'unpaid' }, running.operator, 'POST')
    expect((await app.rest('GET', '/v1/models')).body.error.code).toBe('organization_suspended')
    expect((await running.operator.rest('POST', `${operated}/resume`)).status).toBe(200)

    await change(`/v1/keys/${key.id}`, {}, admin, 'DELETE')
    expect((await app.rest('GET', '/v1/models')).status).toBe(401)
  })
}
