import type { FastifyInstance } from 'fastify'
import { type BytePaths, ownerOf } from '../subgraphs/common/bytes/byte-paths.ts'
import type { ByteRequest, ByteResponse } from '../subgraphs/common/bytes/byte-response.ts'
import type { Link, LinkContext } from '../subgraphs/common/link/link.ts'
import type { SubgraphName } from '../subgraphs/common/link/subgraph.ts'
import { serveBytes } from '../subgraphs/common/server/byte-route.ts'
import { clientRequestIdHeader } from '../subgraphs/common/server/client-request-id.ts'
import type { HttpParts } from './http.ts'
import { chooseRequestId } from './request-id.ts'

/** Headers that scripts of other origins may read. */
const EXPOSED_HEADERS = 'x-request-id, content-disposition, content-range, etag, accept-ranges'

export type OpenBytes = (request: ByteRequest, context: Pick<LinkContext, 'requestId' | 'signal'>) => Promise<ByteResponse>

/**
 * Passes stored bytes on from the subgraph that has them, no faster than they are read. Every download comes through
 * here, whether its client uses the path itself or REST.
 */
export function bytesOf(paths: BytePaths, links: Readonly<Record<SubgraphName, Link>>): OpenBytes {
  return async (request, { requestId, signal }) => {
    const reference = await paths.verify(request.path)
    return links[ownerOf(reference)].openBytes(request, { caller: null, requestId, signal })
  }
}

type Parts = Pick<HttpParts, 'isService' | 'ids' | 'origins' | 'telemetry' | 'mask'> & { readonly openBytes: OpenBytes }

/** Serves the paths that GraphQL has returned. */
export async function serveDownloads(app: FastifyInstance, { isService, ids, origins, telemetry, mask, openBytes }: Parts): Promise<void> {
  await app.register(async (scope) =>
    serveBytes(scope, {
      async begin(request, reply) {
        const isOurs = await isService(request.raw)
        const requestId = chooseRequestId(request.headers['x-request-id'], isOurs, ids)
        telemetry.requests.begin(requestId, isOurs)
        reply.headers({
          'x-request-id': requestId,
          ...clientRequestIdHeader(request.headers),
          ...origins.answerHeaders(request.headers, EXPOSED_HEADERS),
        })
        return requestId
      },
      open: openBytes,
      format: mask,
    }),
  )
}
