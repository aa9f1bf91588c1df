import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/**
 * The page runs scripts of this service alone, and connects to it alone. Its editor writes styles into the page, and its
 * sheet holds fonts and pictures.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "connect-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  'font-src data:',
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
}
/** The bundle changes with the service's version only. */
const ASSET_CACHE = 'public, max-age=86400'

type Bundle = typeof import('@graphql-yoga/render-graphiql/graphiql')

/** By name below `/graphql/assets/`. `label`: what the editor calls a worker. */
const ASSETS: Readonly<Record<string, { readonly type: string; readonly label?: string; text(bundle: Bundle): string }>> = {
  'graphiql.js': { type: 'text/javascript', text: ({ js }) => js },
  'graphiql.css': { type: 'text/css', text: ({ css }) => css },
  'page.js': { type: 'text/javascript', text: () => readFileSync(new URL('graphiql-page.js', import.meta.url), 'utf8') },
  'editor.js': { type: 'text/javascript', label: 'editorWorkerService', text: ({ editorWorkerService }) => editorWorkerService },
  'json.js': { type: 'text/javascript', label: 'json', text: ({ jsonWorker }) => jsonWorker },
  'graphql.js': { type: 'text/javascript', label: 'graphql', text: ({ graphqlWorker }) => graphqlWorker },
}

const WORKERS = Object.entries(ASSETS)
  .flatMap(([name, { label }]) => (label ? `<meta name="worker-${label}" content="/graphql/assets/${name}">` : []))
  .join('\n')

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>GraphiQL</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/graphql/assets/graphiql.css">
${WORKERS}
<style>body { margin: 0; height: 100vh; display: flex; flex-direction: column } form, p { margin: 0; padding: 8px; font: 14px sans-serif } #root { flex: 1; min-height: 0 }</style>
</head>
<body>
<form><label>API key <input name="key" type="password" size="50" autocomplete="off" spellcheck="false"></label> <button>Use</button></form>
<div id="root"><p>Enter an API key, or sign in to the portal. The key stays in this tab, and is sent to this service alone.</p></div>
<noscript>GraphiQL needs JavaScript.</noscript>
<script src="/graphql/assets/graphiql.js"></script>
<script src="/graphql/assets/page.js"></script>
</body>
</html>
`

/** True for a browser that opens the address: it has no key yet. GraphiQL keeps the query in the address. */
export function wantsPage({ method, headers }: FastifyRequest): boolean {
  return method === 'GET' && headers.authorization === undefined && (headers.accept ?? '').includes('text/html')
}

export function sendPage(reply: FastifyReply): FastifyReply {
  return reply
    .headers({ ...HEADERS, 'content-security-policy': CONTENT_SECURITY_POLICY, 'cache-control': 'no-cache', vary: 'accept' })
    .type('text/html; charset=utf-8')
    .send(PAGE)
}

/**
 * Serves what the page loads. The bundle of 9 MB is read with the first request, and each of its parts is compressed
 * once: a stranger may ask for it.
 */
export function registerAssets(app: FastifyInstance): void {
  const compressed = new Map<string, Promise<Buffer>>()
  for (const [name, { type, text }] of Object.entries(ASSETS))
    app.get(`/graphql/assets/${name}`, { compress: false }, async (_request, reply) => {
      let bytes = compressed.get(name)
      if (!bytes) {
        bytes = import('@graphql-yoga/render-graphiql/graphiql').then((bundle) => promisify(gzip)(text(bundle)))
        compressed.set(name, bytes)
      }
      return reply
        .headers({ ...HEADERS, 'cache-control': ASSET_CACHE, 'content-encoding': 'gzip' })
        .type(`${type}; charset=utf-8`)
        .send(await bytes)
    })
}
