import { ApolloServer } from '@apollo/server'
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled'
import { fastifyApolloHandler } from '@as-integrations/fastify'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ERRORS } from '../schema/errors.ts'
import { KisError, ServiceUnavailable } from '../subgraphs/common/errors.ts'
import type { IdSource } from '../subgraphs/common/ids.ts'
import type { Log } from '../subgraphs/common/log.ts'
import type { Authenticator } from './authenticate.ts'
import type { Federation } from './federation/federation.ts'
import { MAX_TOKENS } from './limits.ts'
import type { Mask } from './mask.ts'
import type { OperationContext, Operations } from './operations.ts'
import { requestIdOf } from './request-id.ts'

/** Bodies above this hold memory several times over while they are read and passed on. */
const LARGE_BODY_BYTES = 4 * 1024 * 1024
/** Large bodies, and those of unsaid length, in this process at once; the next is asked to come again. */
const MAX_LARGE_BODIES = 8

export interface HttpParts {
  readonly operations: Operations
  readonly federation: Federation
  readonly authenticator: Authenticator
  readonly mask: Mask
  readonly ids: IdSource
  readonly log: Log
  readonly maxBodyBytes: number
}

/** GET (queries) and POST /graphql. Apollo Server speaks GraphQL over HTTP; the operation itself goes the way of all operations. */
export async function serveHttp(app: FastifyInstance, parts: HttpParts): Promise<AsyncDisposable> {
  const { mask, log, maxBodyBytes } = parts
  const contexts = new WeakMap<FastifyRequest, OperationContext>()
  const apollo = apolloServer(parts)
  await apollo.start()
  const answer = fastifyApolloHandler(apollo, { context: async (request: FastifyRequest) => contexts.get(request)! })
  const large = largeBodies()

  app.route({
    method: ['GET', 'POST'],
    url: '/graphql',
    bodyLimit: maxBodyBytes,
    // Before the body is read, so that strangers cannot fill the memory.
    onRequest: async (request, reply) => {
      contexts.set(request, await contextOf(parts, request, reply))
      if (isLarge(request)) large.enter(reply)
    },
    errorHandler: (error, request, reply) => {
      const known = transportError(error)
      const requestId = contexts.get(request)?.requestId ?? ''
      if (known.code === 'internal') log.error({ requestId, err: error }, 'defect in GraphQL over HTTP')
      if (known.code === 'invalid_api_key') reply.header('www-authenticate', 'Bearer')
      if (known.retryAfterMs !== null) reply.header('retry-after', Math.ceil(known.retryAfterMs / 1_000))
      return reply.code(ERRORS[known.code].status).send({ errors: [mask(known, requestId)] })
    },
    handler(request, reply) {
      return answer.call(this, request, reply)
    },
  })
  return { [Symbol.asyncDispose]: () => apollo.stop() }
}

function apolloServer({ operations, federation, mask, log }: HttpParts): ApolloServer<OperationContext> {
  const { schema } = federation
  return new ApolloServer<OperationContext>({
    gateway: {
      onSchemaLoadOrUpdate(callback) {
        callback({ apiSchema: schema, coreSupergraphSdl: federation.supergraphSdl })
        return () => undefined
      },
      load: async () => ({
        executor: async ({ source, request: { operationName, variables = {} }, context }) => {
          const { requestId } = context as OperationContext
          const prepared = operations.prepare(source, operationName, requestId)
          return 'document' in prepared ? operations.execute(prepared, variables, context as OperationContext) : prepared
        },
      }),
      stop: async () => undefined,
    },
    // The executor above checks every operation against schema and limits, as it does for sockets and the local link.
    dangerouslyDisableValidation: true,
    parseOptions: { maxTokens: MAX_TOKENS },
    formatError: (_formatted, error) => mask(error, '').toJSON(),
    includeStacktraceInErrorResponses: false,
    csrfPrevention: true,
    allowBatchedHttpRequests: false,
    persistedQueries: false,
    stopOnTerminationSignals: false,
    nodeEnv: 'production',
    logger: log,
    plugins: [
      ApolloServerPluginCacheControlDisabled(),
      ApolloServerPluginInlineTraceDisabled(),
      ApolloServerPluginLandingPageDisabled(),
      ApolloServerPluginSchemaReportingDisabled(),
      ApolloServerPluginUsageReportingDisabled(),
    ],
  })
}

async function contextOf({ authenticator, ids }: HttpParts, request: FastifyRequest, reply: FastifyReply): Promise<OperationContext> {
  const requestId = requestIdOf(request.headers['x-request-id'], ids)
  reply.header('x-request-id', requestId)
  const gone = new AbortController()
  reply.raw.once('close', () => gone.abort())
  return { caller: await authenticator.principalOf(request.headers.authorization, requestId), requestId, signal: gone.signal }
}

/** What Fastify or our own hooks refuse before Apollo Server is asked, as one of the closed set. */
function transportError(error: unknown): KisError {
  if (error instanceof KisError) return error
  const { statusCode = 500, message } = error as { statusCode?: number; message: string }
  if (statusCode === 413) return new KisError('payload_too_large', 'The body is larger than this service takes.')
  if (statusCode < 500) return new KisError('invalid_request', message)
  return new KisError('internal', 'The service failed to answer.', { cause: error })
}

function isLarge({ method, headers }: FastifyRequest): boolean {
  return method === 'POST' && !(Number(headers['content-length']) <= LARGE_BODY_BYTES)
}

function largeBodies() {
  let underWay = 0
  return {
    enter({ raw }: FastifyReply): void {
      if (underWay >= MAX_LARGE_BODIES) throw new ServiceUnavailable('The place for large requests')
      underWay++
      raw.once('close', () => underWay--)
    },
  }
}
