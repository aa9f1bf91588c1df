import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import { chooseLanguage, LANGUAGES } from '../../subgraphs/common/languages.ts'
import { originOf } from '../../subgraphs/common/sessions/own-origin.ts'
import { readSessionCookie } from '../../subgraphs/common/sessions/session-cookie.ts'
import type { OpenApi } from '../http/openapi.ts'
import { introduce } from './introduction.ts'
import { CONTENT_SECURITY_POLICY, renderPage, START_SCRIPT } from './page.ts'
import { loadRenderer } from './renderer.ts'

const SCRIPT = 'text/javascript; charset=utf-8'

/** Serves `/docs`, `/v1/openapi.json`, `/v1/workflow.schema.json` and `/`, without a key. */
export function registerDocs(app: FastifyInstance, { document }: OpenApi): void {
  const { servers: _, info, ...rest } = document
  const tail = JSON.stringify(rest).slice(1)
  app.get('/v1/openapi.json', async (request, reply) => {
    const origin = originOf(request.headers)
    const head = {
      servers: [{ url: origin || '/' }],
      info: { ...info, description: introduce(info.description, origin || 'http://127.0.0.1:4000') },
    }
    return reply
      .headers({ 'content-type': 'application/json; charset=utf-8', vary: 'host, x-forwarded-proto' })
      .send(`${JSON.stringify(head).slice(0, -1)},${tail}`)
  })

  const workflow = readFileSync(new URL('../../schema/workflow.schema.json', import.meta.url), 'utf8')
  app.get('/v1/workflow.schema.json', async (_request, reply) => reply.type('application/schema+json; charset=utf-8').send(workflow))

  const render = (isSignedIn: boolean) => new Map(LANGUAGES.map((language) => [language, renderPage(info.title, language, isSignedIn)]))
  const [pages, signedInPages] = [render(false), render(true)]
  app.get('/docs', async (request, reply) => {
    const language = chooseLanguage((request.query as { readonly lang?: unknown }).lang, request.headers['accept-language'])
    const headers = {
      'content-type': 'text/html; charset=utf-8',
      'content-language': language,
      'content-security-policy': CONTENT_SECURITY_POLICY,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      vary: 'accept-language, cookie',
    }
    // Whether the session still counts is seen by the requests that the reader tries.
    const isSignedIn = readSessionCookie(request.headers) !== null
    return reply.headers(headers).send((isSignedIn ? signedInPages : pages).get(language))
  })
  app.get('/docs/start.js', async (_request, reply) => reply.type(SCRIPT).send(START_SCRIPT))
  app.get('/docs/scalar.js', async ({ headers }, reply) => {
    const { plain, compressed, etag } = await loadRenderer()
    reply.headers({ 'content-type': SCRIPT, 'cache-control': 'public, max-age=3600', vary: 'accept-encoding', etag })
    if (headers['if-none-match'] === etag) return reply.code(304).send()
    if (!/\bgzip\b/.test(headers['accept-encoding'] ?? '')) return reply.send(plain)
    return reply.header('content-encoding', 'gzip').send(compressed)
  })
  app.get('/', async (_request, reply) => reply.redirect('/docs', 302))
}
