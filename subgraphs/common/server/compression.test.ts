import { Readable } from 'node:stream'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import fastify from 'fastify'
import { describe, expect, it } from 'vitest'
import { compressResponses } from './compression.ts'

const TEXT = JSON.stringify({ data: 'knowledge '.repeat(5_000) })

async function answerer() {
  const app = fastify()
  await compressResponses(app)
  const json = 'application/json; charset=utf-8'
  app.get('/large', async (_request, reply) => reply.type(json).header('vary', 'origin').send(TEXT))
  app.get('/medium', async (_request, reply) => reply.type('application/graphql-response+json').send(TEXT.slice(0, 2_000)))
  app.get('/small', async (_request, reply) => reply.type(json).send('{"data":1}'))
  app.get('/stream', async (_request, reply) => reply.type('text/csv').send(Readable.from([TEXT])))
  app.get('/picture', async (_request, reply) => reply.type('image/png').send(Buffer.alloc(5_000)))
  app.get('/events', async (_request, reply) => reply.type('text/event-stream').send(TEXT))
  app.post('/', async ({ body }) => body)
  return app
}

describe('Response compression', () => {
  for (const path of ['/large', '/medium', '/stream'])
    it(`uses an encoding that the client accepts: ${path}`, async () => {
      const app = await answerer()
      const get = (encoding: string) => app.inject({ url: path, headers: { 'accept-encoding': encoding } })
      const plain = await get('identity')
      expect(plain.headers['content-encoding']).toBeUndefined()
      const brotli = await get('gzip, deflate, br, zstd')
      expect(brotli.headers['content-encoding']).toBe('br')
      expect(brotliDecompressSync(brotli.rawPayload).toString()).toBe(plain.payload)
      const gzip = await get('gzip, deflate')
      expect(gzip.headers['content-encoding']).toBe('gzip')
      expect(gunzipSync(gzip.rawPayload).toString()).toBe(plain.payload)
      expect(gzip.rawPayload.length).toBeLessThan(plain.payload.length / 10)
      expect(gzip.headers.vary).toContain('accept-encoding')
      if (path === '/large') expect(gzip.headers.vary).toContain('origin')
    })

  for (const path of ['/small', '/picture', '/events'])
    it(`is skipped if it does not pay: ${path}`, async () => {
      const app = await answerer()
      const { headers } = await app.inject({ url: path, headers: { 'accept-encoding': 'gzip, br' } })
      expect(headers['content-encoding']).toBeUndefined()
    })
})

it('does not decompress request bodies, which may become any size', async () => {
  const app = await answerer()
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
  const { statusCode } = await app.inject({ method: 'POST', url: '/', headers, payload: Buffer.from([0x1f, 0x8b, 8, 0]) })
  expect(statusCode).toBe(400)
})
