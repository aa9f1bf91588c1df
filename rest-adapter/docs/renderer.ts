import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { fastify } from 'fastify'

interface Renderer {
  readonly plain: string
  readonly compressed: Buffer
  readonly etag: string
}

let loaded: Promise<Renderer> | undefined

/**
 * Returns Scalar's script, which renders the reference in the browser. Its package for Fastify contains the whole
 * script (4 MB) and serves it only by a plugin. So an app that does not listen serves it to this function, on the first
 * request.
 */
export function loadRenderer(): Promise<Renderer> {
  loaded ??= readScript().catch((error: unknown) => {
    loaded = undefined
    throw error
  })
  return loaded
}

async function readScript(): Promise<Renderer> {
  const { default: plugin } = await import('@scalar/fastify-api-reference')
  await using app = fastify()
  await app.register(plugin, { routePrefix: '/docs', configuration: { url: '/v1/openapi.json' } })
  const { statusCode, body } = await app.inject('/docs/js/scalar.js')
  if (statusCode !== 200) throw new Error('The package of the reference has no script any more.')
  const etag = `"${createHash('sha256').update(body).digest('hex').slice(0, 32)}"`
  return { plain: body, compressed: await promisify(gzip)(body), etag }
}
