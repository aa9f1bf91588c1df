import fastify from 'fastify'
import { describe, expect, it } from 'vitest'
import { registerFormParser } from './forms.ts'

const MANY = 101

describe('Form with more parts than any route accepts', () => {
  for (const contentType of [
    'multipart/form-data; boundary=abcdefghijklmnopqrstuvwxyz0123',
    'multipart/form-data; xboundary=nothing; boundary=abcdefghijklmnopqrstuvwxyz0123',
    'multipart/form-data; x="a; boundary=nothing"; boundary=abcdefghijklmnopqrstuvwxyz0123',
    'multipart/form-data; boundary="abcdefghijklmnopqrstuvwxyz012\\3"',
  ])
    it(`is refused before it is parsed: ${contentType}`, async () => {
      const app = fastify()
      registerFormParser(app)
      app.post('/', async () => 'parsed')
      const part = '--abcdefghijklmnopqrstuvwxyz0123\r\ncontent-disposition: form-data; name="a[]"\r\n\r\nx\r\n'
      const send = (parts: number) =>
        app.inject({
          method: 'POST',
          url: '/',
          headers: { 'content-type': contentType },
          payload: `${part.repeat(parts)}--abcdefghijklmnopqrstuvwxyz0123--\r\n`,
        })
      expect((await send(2)).body).toBe('parsed')
      expect((await send(MANY)).body).toContain('more than 100 parts')
    })
})
