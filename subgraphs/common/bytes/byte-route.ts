import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { GraphQLFormattedError } from 'graphql'
import { ERRORS, toErrorCode } from '../../../schema/errors.ts'
import { REQUEST_OVER } from '../errors.ts'
import type { LinkContext } from '../link/link.ts'
import { BYTES_PATH } from './byte-paths.ts'
import { type ByteRequest, type ByteResponse, byteRequest } from './byte-response.ts'

interface ByteRouteParts {
  /** Chooses the id of a request, and sets the headers of its response. */
  startRequest(request: FastifyRequest, reply: FastifyReply): Promise<string>
  open(request: ByteRequest, context: Pick<LinkContext, 'requestId' | 'signal'>): Promise<ByteResponse>
  /** Waits until the organization has room for the response. */
  admit?(request: FastifyRequest, reply: FastifyReply, response: ByteResponse): Promise<void>
  /** Formats an error as the other operations of the process do. */
  format(error: unknown, requestId: string): Pick<GraphQLFormattedError, 'message' | 'extensions'>
}

/** Serves stored bytes at paths that `BytePaths` has signed. The path is all that a client needs. */
export function serveBytes(app: FastifyInstance, { startRequest, open, admit = async () => undefined, format }: ByteRouteParts): void {
  app.get(BYTES_PATH, async (request, reply) => {
    const requestId = await startRequest(request, reply)
    const gone = new AbortController()
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) gone.abort(REQUEST_OVER)
    })
    let opened: ByteResponse | undefined
    try {
      opened = await open(byteRequest(request.url, request), { requestId, signal: gone.signal })
      reply.code(opened.status).headers(opened.headers)
      await admit(request, reply, opened)
      return reply.send(opened.body)
    } catch (error) {
      opened?.body.destroy()
      for (const name of Object.keys(opened?.headers ?? {})) reply.removeHeader(name)
      const formatted = format(error, requestId)
      return reply.code(ERRORS[toErrorCode(formatted.extensions?.code) ?? 'internal'].status).send({ errors: [formatted] })
    }
  })
}
