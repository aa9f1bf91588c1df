import { beforeAll, describe, expect, it } from 'vitest'
import { addDocument, balancedWallet, base64, type Caller, type Json, newCollection } from '../../../support/client.ts'
import type { Running } from './running.ts'

/** Requests that are refused, and that leave nothing behind. */
export function badInput(running: Running): void {
  describe('invalid input', () => {
    let caller: Caller
    let collection: Json
    beforeAll(async () => {
      caller = await running.newOrganization()
      collection = await newCollection(caller)
    })

    it.each<[string, string, string, unknown, number, string, string | null]>([
      ['malformed JSON', 'POST', '/v1/chat/completions', '{"model":', 400, 'invalid_request', null],
      ['no model', 'POST', '/v1/chat/completions', { messages: [] }, 400, 'missing_required_parameter', 'model'],
      [
        'messages of the wrong type',
        'POST',
        '/v1/chat/completions',
        { model: 'mock-chat', messages: 'hi' },
        400,
        'invalid_type',
        'messages',
      ],
      ['no messages', 'POST', '/v1/chat/completions', { model: 'mock-chat', messages: [] }, 400, 'invalid_request', 'messages'],
      [
        'n too large',
        'POST',
        '/v1/chat/completions',
        { model: 'mock-chat', messages: [{ role: 'user', content: 'a' }], n: 500 },
        400,
        'integer_above_max_value',
        'n',
      ],
      ['an unknown model', 'POST', '/v1/embeddings', { model: 'nope', input: 'a' }, 404, 'model_not_found', 'model'],
      ['an empty input', 'POST', '/v1/embeddings', { model: 'e5-small-ar-en', input: '' }, 400, 'invalid_request', 'input'],
      ['a chat model that should embed', 'POST', '/v1/embeddings', { model: 'mock-chat', input: 'a' }, 404, 'model_not_found', 'model'],
      [
        'no collection code',
        'POST',
        '/v1/collections',
        { collection_name: 'a', embedding_model: 'e5-small-ar-en' },
        400,
        'missing_required_parameter',
        'collection_code',
      ],
      [
        'an unknown embedding model',
        'POST',
        '/v1/collections',
        { collection_code: 'x', collection_name: 'a', embedding_model: 'nope' },
        404,
        'model_not_found',
        'embedding_model',
      ],
      [
        'a name of the wrong type',
        'POST',
        '/v1/collections',
        { collection_code: 'x', collection_name: 5, embedding_model: 'e5-small-ar-en' },
        400,
        'invalid_type',
        'collection_name',
      ],
      ['invalid base64', 'POST', '/v1/files', { file_name: 'a.txt', content_base64: '$$$$' }, 400, 'invalid_request', 'content_base64'],
      [
        'a file name with a path',
        'POST',
        '/v1/files',
        { file_name: '../a.txt', content_base64: 'YQ==' },
        400,
        'invalid_request',
        'file_name',
      ],
      ['an unknown file', 'POST', '/v1/collections/:id/documents', { file_id: 'file_none' }, 404, 'not_found', 'file_id'],
      ['an unknown collection', 'POST', '/v1/collections/col_none/search', { query: 'a' }, 404, 'not_found', null],
      ['an empty query', 'POST', '/v1/collections/:id/search', { query: ' ' }, 400, 'invalid_request', 'query'],
      ['a limit too large', 'POST', '/v1/collections/:id/search', { query: 'a', limit: 51 }, 400, 'integer_above_max_value', 'limit'],
      [
        'a filter that is none',
        'POST',
        '/v1/collections/:id/search',
        { query: 'a', filter: { op: 'like', field: 'page', value: 1 } },
        400,
        'unsupported_value',
        'filter.op',
      ],
      ['an unknown route', 'GET', '/v1/nothing', undefined, 404, 'unknown_url', null],
      ['a wrong method', 'PUT', '/v1/models', {}, 405, 'method_not_allowed', null],
      ['image generation', 'POST', '/v1/images/generations', {}, 404, 'not_offered', null],
    ])('%s', async (_, method, path, body, status, code, param) => {
      const response = await caller.rest(method, path.replace(':id', collection.id), body)
      expect([response.status, response.body.error?.code, response.body.error?.param]).toEqual([status, code, param])
      expect(Object.keys(response.body.error).sort()).toEqual(['code', 'message', 'param', 'type'])
      expect(response.headers.get('x-request-id')).toBeTruthy()
      expect(response.headers.get('x-should-retry')).toMatch(/true|false/)
    })

    it('names with invisible or bidirectional characters are refused in every field, by REST and GraphQL', async () => {
      const caller = await running.newOrganization()
      const collection = await newCollection(caller)
      const name = 'photo_\u202egpj.txt'
      const { body: file } = await caller.rest('POST', '/v1/files', { file_name: 'a\u200f.txt', content_base64: base64('Good.') })
      const attached = (await caller.rest('POST', `/v1/collections/${collection.id}/documents`, { file_id: file.message.id })).body
      const agent = { code: 'a', model: 'mock-chat' }
      const definition = { nodes: [{ id: 'a', type: 'chat', model: 'mock-chat', messages: [{ role: 'user', content: 'a' }] }], output: 'a' }
      const webhook = { url: `http://${running.receiver.host}/names`, event_types: ['document.updated'] }
      const refusals: [string, string, object, string][] = [
        ['POST', '/v1/files', { file_name: name, content_base64: 'YQ==' }, 'file_name'],
        ['PATCH', `/v1/collections/${collection.id}/documents/${attached.id}`, { file_name: name }, 'file_name'],
        ['PATCH', `/v1/collections/${collection.id}`, { collection_name: name }, 'collection_name'],
        ['PATCH', `/v1/collections/${collection.id}`, { description: name }, 'description'],
        ['POST', '/v1/agents', { ...agent, name }, 'name'],
        ['POST', '/v1/workflows', { code: 'a', definition, name }, 'name'],
        ['POST', '/v1/keys', { name, scopes: ['inference'] }, 'name'],
        ['PATCH', '/v1/organization', { name }, 'name'],
        ['POST', '/v1/webhooks', { ...webhook, description: name }, 'description'],
      ]
      for (const [method, path, body, param] of refusals) {
        const refused = await caller.rest(method, path, body)
        expect([path, refused.status, refused.body.error?.code, refused.body.error?.param]).toEqual([path, 400, 'invalid_request', param])
      }
      for (const [mutation, input] of [
        ['uploadFile', { name, contentBase64: 'YQ==' }],
        ['createUpload', { name, sizeBytes: 1 }],
        ['createCollection', { code: 'x', name, embeddingModel: 'mock-embed' }],
        ['createApiKey', { name, scopes: ['INFERENCE'] }],
      ] as const) {
        const type = `${mutation[0]!.toUpperCase()}${mutation.slice(1)}Input!`
        const { errors } = await caller.graphql(`mutation($input: ${type}) { ${mutation}(input: $input) { __typename } }`, { input })
        expect(errors?.[0]?.extensions).toMatchObject({ code: 'INVALID_REQUEST', param: expect.stringMatching(/(^|\.)name$/) })
      }
    })

    it('stores nothing', async () => {
      expect((await caller.rest('GET', '/v1/files')).body.data).toEqual([])
      expect((await caller.rest('GET', `/v1/collections/${collection.id}/documents`)).body.data).toEqual([])
      expect((await balancedWallet(caller)).balance_usd).toBe('10')
    })

    it.concurrent.each(['nan', 'narrow', 'few', '500', '429'])(
      'an embedding engine that gives %s fails the document, and nothing of it is kept or charged',
      async (script) => {
        const caller = await running.newOrganization()
        const own = await newCollection(caller, `mock-embed-${script}`)
        const { balance_usd } = await balancedWallet(caller)
        const document = await addDocument(caller, own.id, 'a.txt', `Some text for ${script}.`)
        expect(document).toMatchObject({ status: 'failed', error: { code: 'embedding_failed' }, chunk_count: 0 })
        expect((await caller.rest('GET', '/v1/organization')).body.quota.vectors.used).toBe(0)
        expect((await balancedWallet(caller)).balance_usd).toBe(balance_usd)
      },
    )

    it('files of the wrong type fail with the reason', async () => {
      const cases: [string, string | Uint8Array, string][] = [
        ['empty.txt', ' \n ', 'empty'],
        ['broken.docx', Buffer.from('PK\x03\x04 not really'), 'corrupt'],
      ]
      for (const [fileName, content, code] of cases) {
        expect(await addDocument(caller, collection.id, fileName, content)).toMatchObject({ status: 'failed', error: { code } })
      }
    })

    it('files of an unusable type are refused at upload, with the list of supported types', async () => {
      const content_base64 = Buffer.from([0, 1, 2, 3, 255, 254, 0, 0, 7]).toString('base64')
      const { status, body } = await caller.rest('POST', '/v1/files', { file_name: 'program.bin', content_base64 })
      expect([status, body.error.code, body.error.param]).toEqual([415, 'unsupported_file_type', 'content_base64'])
      for (const format of ['PDF', 'XLSX', 'plain text']) expect(body.error.message).toContain(format)
    })

    it('a quota one byte short refuses the file, and one vector short fails the document; nothing is stored', async () => {
      const small = await running.newOrganization({ plan: 'tiny' })
      const upload = (name: string, bytes: number) =>
        small.rest('POST', '/v1/files', { file_name: name, content_base64: base64('a'.repeat(bytes)) })
      expect((await upload('big.txt', 2_001)).body.error.code).toBe('payload_too_large')
      const first = await upload('1000.txt', 1_000)
      expect(first.status).toBe(201)
      const refused = await upload('1.txt', 1)
      expect([refused.status, refused.body.error.code]).toEqual([403, 'storage_quota_exceeded'])
      expect((await upload('again.txt', 1_000)).status).toBe(201)
      expect((await small.rest('GET', '/v1/organization')).body.quota.storage_bytes).toEqual({ used: 1_000, limit: 1_000 })
      for (const { id } of (await small.rest('GET', '/v1/files')).body.data)
        expect((await small.rest('DELETE', `/v1/files/${id}`)).status).toBe(200)
      expect((await small.rest('GET', '/v1/organization')).body.quota.storage_bytes.used).toBe(0)
      const own = await newCollection(small)
      const sections = Array.from({ length: 4 }, (_, i) => `# Section ${i}\n\n${`Sentence ${i} about something else. `.repeat(6)}`).join(
        '\n\n',
      )
      const document = await addDocument(small, own.id, 'four.md', sections.slice(0, 1_000))
      if (document.status === 'failed') expect(document.error.code).toBe('storage_quota_exceeded')
      else expect(document.chunk_count).toBeLessThanOrEqual(3)
    })

    it('internal operations are unreachable for every caller', async () => {
      for (const query of [
        'mutation { voidHold(id: "hold_x") { id } }',
        'query { principalOfApiKey(apiKey: "x") { organizationId } }',
        'mutation { embedQuery(modelId: "e5-small-ar-en", text: "a") { vector } }',
        'query { _entities(representations: []) { __typename } }',
      ]) {
        const { errors, data } = await running.operator.graphql(query)
        expect([data ?? null, errors?.length]).toEqual([null, 1])
      }
    })
  })
}
