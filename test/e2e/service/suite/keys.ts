import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { createCaller } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import { chat, type Running } from './running.ts'

/** API keys: what they allow, and their end. */
export function keys(running: Running): void {
  describe('API keys', () => {
    it('a limited key sees and calls its models only', async () => {
      const admin = await running.newOrganization()
      const { status, body } = await admin.rest('POST', '/v1/keys', {
        name: 'limited',
        scopes: ['inference'],
        model_allowlist: ['extractive'],
      })
      expect(status).toBe(201)
      const limited = createCaller(running.service, body.key)
      expect((await limited.openai.models.list()).data.map((model) => model.id)).toEqual(['extractive'])
      const refused = await limited.rest('POST', '/v1/chat/completions', chat('hi'))
      const unknown = await limited.rest('POST', '/v1/chat/completions', chat('hi', { model: 'no-such-model' }))
      expect([refused.status, refused.body.error.code, refused.body.error.param]).toEqual([404, 'model_not_found', 'model'])
      expect(unknown.body.error.message.replace('no-such-model', 'mock-chat')).toBe(refused.body.error.message)
      expect(
        (await limited.rest('POST', '/v1/collections', { collection_code: 'a', collection_name: 'a', embedding_model: 'e5-small-ar-en' }))
          .body.error.code,
      ).toBe('permission_denied')
    })

    it('a rotated or revoked key is refused within 5 s, on open sockets too', async () => {
      const admin = await running.newOrganization()
      const { body } = await admin.rest('POST', '/v1/keys', { name: 'short-lived' })
      const victim = createCaller(running.service, body.key)
      const socket = new WebSocket(running.service.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws')
      await once(socket, 'open')
      socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${body.key}` } }))
      const closed = once(socket, 'close') as Promise<[{ code: number }]>
      expect((await victim.rest('GET', '/v1/models')).status).toBe(200)
      expect((await admin.rest('DELETE', `/v1/keys/${body.id}`)).body).toMatchObject({ id: body.id, deleted: true })
      await eventually(async () => (await victim.rest('GET', '/v1/models')).status === 401, 6_000)
      expect((await closed)[0].code).toBe(4401)
    })

    it('a missing, a malformed and an unknown key get the same 401', async () => {
      const texts = await Promise.all(
        ['', 'nonsense', `kis_live_${'a'.repeat(36)}`].map(async (key) => {
          const { status, body } = await createCaller(running.service, key).rest('GET', '/v1/models')
          expect(status).toBe(401)
          return JSON.stringify(body)
        }),
      )
      expect(new Set(texts).size).toBe(1)
    })
  })
}
