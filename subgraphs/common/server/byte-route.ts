import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { GraphQLFormattedError } from 'graphql'
import { ERRORS, toErrorCode } from '../../../schema/errors.ts'
import { BYTES_PATH } from '../bytes/byte-paths.ts'
import { type ByteRequest, type ByteResponse, byteRequest } from '../bytes/byte-response.ts'
import { REQUEST_OVER } from '../errors.ts'
import type { LinkContext } from '../link/link.ts'

export interface ByteRouteParts {
  /** Chooses the id of a request, and sets the headers of its response. */
  begin(request: FastifyRequest, reply: FastifyReply): Promise<string>
  open(request: ByteRequest, context: Pick<LinkContext, 'requestId' | 'signal'>): Promise<ByteResponse>
  /** Formats an error as the other operations of the process do. */
  format(error: unknown, requestId: string): Pick<GraphQLFormattedError, 'message' | 'extensions'>
}

/** Serves stored bytes at paths that `BytePaths` has signed. The path is all that a client needs. */
export function serveBytes(app: FastifyInstance, { begin, open, format }: ByteRouteParts): void {
  app.get(BYTES_PATH, async (request, reply) => {
    const requestId = await begin(request, reply)
    const gone = new AbortController()
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) gone.abort(REQUEST_OVER)
    })
    const opened = await open(byteRequest(request.url, request), { requestId, signal: gone.signal }).catch((error: unknown) => {
      const formatted = format(error, requestId)
      const { status } = ERRORS[toErrorCode(formatted.extensions?.code) ?? 'internal']
      return { status, headers: {}, body: { errors: [formatted] } }
    })
    return reply.code(opened.status).headers(opened.headers).send(opened.body)
  })
}
