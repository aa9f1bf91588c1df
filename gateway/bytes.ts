import type { FastifyInstance } from 'fastify'
import { LRUCache } from 'lru-cache'
import { type BytePaths, ownerOf } from '../subgraphs/common/bytes/byte-paths.ts'
import type { ByteRequest, ByteResponse } from '../subgraphs/common/bytes/byte-response.ts'
import { serveBytes } from '../subgraphs/common/bytes/byte-route.ts'
import { KisError } from '../subgraphs/common/errors.ts'
import type { Link, LinkContext } from '../subgraphs/common/link/link.ts'
import type { SubgraphName } from '../subgraphs/common/link/subgraph.ts'
import { clientRequestIdHeader } from '../subgraphs/common/server/request-headers.ts'
import type { HttpParts } from './http.ts'
import { chooseRequestId } from './request-id.ts'

/** Headers that scripts of other origins may read. */
const EXPOSED_HEADERS = 'x-request-id, content-disposition, content-range, etag, accept-ranges'

/** Downloads of one path: some run in parallel, some are resumed. Each path has cost its key one request. */
const MAX_USES = 16
/** Paths of the last minute whose downloads are counted: about 2 MB. */
const MAX_PATHS = 10_000

/** Opens the stored bytes of a download path. */
export type OpenBytes = (request: ByteRequest, context: Pick<LinkContext, 'requestId' | 'signal'>) => Promise<ByteResponse>

/**
 * Streams stored bytes from their subgraph, no faster than the client reads them. Downloads by path and by REST both
 * use this function.
 */
export function bytesOf(paths: BytePaths, links: Readonly<Record<SubgraphName, Link>>): OpenBytes {
  const uses = new LRUCache<string, number>({ max: MAX_PATHS })
  return async (request, { requestId, signal }) => {
    const reference = await paths.verify(request.path)
    const used = uses.get(reference.id) ?? 0
    if (used >= MAX_USES)
      throw new KisError('rate_limit_exceeded', `A download path works ${MAX_USES} times. Request a new one.`, { shouldRetry: false })
    uses.set(reference.id, used + 1)
    return links[ownerOf(reference)].openBytes(request, { caller: null, requestId, signal })
  }
}

type Parts = Pick<HttpParts, 'isService' | 'ids' | 'origins' | 'telemetry' | 'mask' | 'bodies'> & {
  readonly paths: BytePaths
  readonly openBytes: OpenBytes
}

/** Serves the download paths that GraphQL has returned. */
export async function serveDownloads(app: FastifyInstance, parts: Parts): Promise<void> {
  const { isService, ids, origins, telemetry, mask, bodies, paths, openBytes } = parts
  await app.register(async (scope) => {
    scope.addHook('onRoute', (route) => {
      route.config = { ...route.config, cors: origins.corsOfRoute(EXPOSED_HEADERS) }
    })
    serveBytes(scope, {
      async startRequest(request, reply) {
        const isOurs = await isService(request.raw)
        const requestId = chooseRequestId(request.headers['x-request-id'], isOurs, ids)
        telemetry.requests.start(requestId, isOurs)
        reply.headers({ 'x-request-id': requestId, ...clientRequestIdHeader(request.headers) })
        return requestId
      },
      open: openBytes,
      admit: (request, reply, { body }) => bodies.admitResponse(reply, body, async () => (await paths.verify(request.url)).organizationId),
      format: mask,
    })
  })
}
