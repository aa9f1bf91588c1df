import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { chooseLanguage } from '../../subgraphs/common/languages.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { acceptsEncoding } from '../../subgraphs/common/server/request-headers.ts'
import { type Builder, buildBundle, isFresh, ownOutput, viteBuilder } from './build-bundle.ts'
import { type Asset, type Bundle, loadBundle } from './bundle.ts'
import { type Lack, RELOAD_S, renderNotice } from './notice.ts'
import { requestsPortal, requestsUnknownPage } from './pages.ts'
import { SECURITY_HEADERS } from './security-headers.ts'

const ASSETS = '/assets/'
/** Stands for every path that is unknown, so that unknown paths have one page in memory. The script of the page shows the error. */
const NOT_FOUND = '/not-found'
/** The name of a file changes with its content. */
const ASSET_CACHE = 'public, max-age=31536000, immutable'
/** What the reader chose in the portal. */
const LANGUAGE_COOKIE = /(?:^|; )kis_language=(\w+)/
/** Whoever has it is probably signed in: what the page asks for says so. */
const SESSION_COOKIE = /(?:^|; )(?:__Host-)?kis_session=/

export interface PortalOptions {
  /** The folder with `web/`, the sources, and `dist/`, what is built of them. */
  readonly folder: string
  readonly log: Log
  /** Links to the APIs begin with it. Null: the browser's address. */
  readonly publicUrl?: string | null
  /** Default: Vite. */
  readonly builder?: Builder
}

/** The web page for people. It is built in the background, if that is necessary. */
export interface Portal extends AsyncDisposable {
  /** Answers browsers at `/`, at the paths of the pages and at `/assets/*`, and at paths that nothing has. All else goes on to the app. Call it first. */
  register(app: FastifyInstance): void
  /** Resolves when it is served, or cannot be. */
  readonly settled: Promise<void>
}

/** Null: this installation has no portal, neither built nor its sources. */
export function openPortal({ folder, log, publicUrl = null, builder = viteBuilder }: PortalOptions): Portal | null {
  if (!existsSync(join(folder, 'web')) && !existsSync(join(folder, 'dist/index.html'))) return null
  const stopping = new AbortController()
  let shown: Bundle | Lack = 'building'

  async function open(): Promise<Bundle | Lack> {
    if (!(await isFresh(folder))) {
      const out = ownOutput(folder)
      const command = builder(folder, out)
      if (!command) {
        log.warn('the portal is not built, and the tools to build it are not installed: run "npm ci" and "npm run portal:build"')
        return 'no-tools'
      }
      return buildBundle(folder, command, out, publicUrl, stopping.signal)
    }
    return loadBundle(join(folder, 'dist'), publicUrl)
  }

  const settled = open().then(
    (opened) => {
      shown = opened
    },
    (error) => {
      shown = 'failed'
      if (!stopping.signal.aborted) log.error({ err: error }, 'the portal could not be built')
    },
  )

  return {
    settled,
    register(app) {
      app.addHook('onRequest', async (request, reply) => {
        if (request.method !== 'GET' && request.method !== 'HEAD') return
        const path = request.url.split('?', 1)[0]!
        if (path.startsWith(ASSETS)) return sendAsset(request, reply, shown, path.slice(ASSETS.length))
        if (requestsPortal(path, request)) return sendPage(request, reply, shown, path)
        if (requestsUnknownPage(path, request)) return sendPage(request, reply, shown, NOT_FOUND)
      })
    },
    async [Symbol.asyncDispose]() {
      stopping.abort()
      await settled
    },
  }
}

function sendPage({ headers }: FastifyRequest, reply: FastifyReply, shown: Bundle | Lack, path: string): FastifyReply {
  const { cookie = '' } = headers
  const language = chooseLanguage(LANGUAGE_COOKIE.exec(cookie)?.[1], headers['accept-language'])
  reply.headers({
    ...SECURITY_HEADERS,
    'content-type': 'text/html; charset=utf-8',
    'content-language': language,
    vary: 'accept, accept-encoding, accept-language, cookie',
  })
  if (typeof shown === 'string')
    return reply
      .code(503)
      .headers({ 'cache-control': 'no-store', ...(shown === 'building' && { 'retry-after': RELOAD_S }) })
      .send(renderNotice(shown, language))
  if (path === NOT_FOUND) reply.code(404)
  const { html, etag } = shown.page(path, language, SESSION_COOKIE.test(cookie))
  reply.headers({ 'cache-control': 'no-cache', etag })
  return path !== NOT_FOUND && headers['if-none-match'] === etag ? reply.code(304).send() : sendCompressed(headers, reply, html)
}

function sendAsset({ headers }: FastifyRequest, reply: FastifyReply, shown: Bundle | Lack, name: string): FastifyReply {
  reply.headers(SECURITY_HEADERS)
  const asset = typeof shown === 'string' ? undefined : shown.assets.get(name)
  if (!asset)
    return reply
      .code(404)
      .headers({ 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' })
      .send('There is no such file. Load the page again: the portal has probably been updated.\n')
  reply.headers({ 'content-type': asset.type, 'cache-control': ASSET_CACHE, vary: 'accept-encoding' })
  return sendCompressed(headers, reply, asset)
}

function sendCompressed(headers: FastifyRequest['headers'], reply: FastifyReply, { bytes, br, gzip }: Asset): FastifyReply {
  if (br && acceptsEncoding(headers, 'br')) return reply.header('content-encoding', 'br').send(br)
  if (gzip && acceptsEncoding(headers, 'gzip')) return reply.header('content-encoding', 'gzip').send(gzip)
  return reply.send(bytes)
}
