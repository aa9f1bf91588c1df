import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { chooseLanguage, LANGUAGES } from '../../subgraphs/common/languages.ts'
import { acceptsEncoding } from '../../subgraphs/common/server/request-headers.ts'
import { originOf } from '../../subgraphs/common/sessions/own-origin.ts'
import { readSessionCookie } from '../../subgraphs/common/sessions/session-cookie.ts'
import { once } from '../http/checks.ts'
import type { OpenApi } from '../http/openapi.ts'
import { gzipAfter } from './gzip-after.ts'
import { introduce } from './introduction.ts'
import { CONTENT_SECURITY_POLICY, renderPage, START_SCRIPT } from './page.ts'
import { loadRenderer } from './renderer.ts'

const SCRIPT = 'text/javascript; charset=utf-8'

/** Serves `/docs`, `/v1/openapi.json`, `/v1/workflow.schema.json` and `/`, without a key. */
export function registerDocs(app: FastifyInstance, { document }: OpenApi): void {
  const { servers: _, info, ...rest } = document
  const beginning = Buffer.from(`${JSON.stringify(rest).slice(0, -1)},`)
  const gzip = once(() => gzipAfter(beginning))
  // Unauthenticated clients may request these routes, so large responses are compressed once and no others at all.
  app.get('/v1/openapi.json', { compress: false }, async ({ headers }, reply) => {
    const origin = originOf(headers)
    const ofReader = {
      servers: [{ url: origin || '/' }],
      info: { ...info, description: introduce(info.description, origin || 'http://127.0.0.1:4000') },
    }
    const end = Buffer.from(JSON.stringify(ofReader).slice(1))
    reply.headers({ 'content-type': 'application/json; charset=utf-8', vary: 'host, x-forwarded-proto, accept-encoding' })
    if (!acceptsEncoding(headers, 'gzip')) return reply.send(Buffer.concat([beginning, end]))
    return reply.header('content-encoding', 'gzip').send(gzip()(end))
  })

  const workflow = readFileSync(new URL('../../schema/workflow.schema.json', import.meta.url))
  const workflowGzip = once(() => gzipSync(workflow))
  app.get('/v1/workflow.schema.json', { compress: false }, async ({ headers }, reply) => {
    reply.headers({ 'content-type': 'application/schema+json; charset=utf-8', vary: 'accept-encoding' })
    if (!acceptsEncoding(headers, 'gzip')) return reply.send(workflow)
    return reply.header('content-encoding', 'gzip').send(workflowGzip())
  })

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
    // The session is not checked here: the requests that the reader tries check it.
    const isSignedIn = readSessionCookie(request.headers) !== null
    return reply.headers(headers).send((isSignedIn ? signedInPages : pages).get(language))
  })
  app.get('/docs/start.js', async (_request, reply) => reply.type(SCRIPT).send(START_SCRIPT))
  app.get('/docs/scalar.js', { compress: false }, async ({ headers }, reply) => {
    const { plain, compressed, etag } = await loadRenderer()
    reply.headers({ 'content-type': SCRIPT, 'cache-control': 'public, max-age=3600', vary: 'accept-encoding', etag })
    if (headers['if-none-match'] === etag) return reply.code(304).send()
    if (!acceptsEncoding(headers, 'gzip')) return reply.send(plain)
    return reply.header('content-encoding', 'gzip').send(compressed)
  })
  app.get('/', async (_request, reply) => reply.redirect('/docs', 302))
}
