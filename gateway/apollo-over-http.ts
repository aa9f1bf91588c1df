import { ApolloServer } from '@apollo/server'
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled'
import { fastifyApolloHandler } from '@as-integrations/fastify'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { PARSE_OPTIONS } from './documents.ts'
import type { HttpContext, HttpParts } from './http.ts'

/** Apollo Server's document keys end with the SHA-256 of the text, in hexadecimal. */
const SHA256_DIGITS = 64

/** Apollo Server, which answers what needs GraphQL over HTTP in full. */
export interface ApolloOverHttp extends AsyncDisposable {
  handle(request: FastifyRequest, reply: FastifyReply, context: HttpContext): Promise<unknown>
}

export async function openApollo(parts: HttpParts): Promise<ApolloOverHttp> {
  const server = createServer(parts)
  await server.start()
  const contexts = new WeakMap<FastifyRequest, HttpContext>()
  const handler = fastifyApolloHandler(server, { context: async (request: FastifyRequest) => contexts.get(request)! })
  return {
    async handle(request, reply, context) {
      contexts.set(request, context)
      return handler.call(request.server, request, reply)
    },
    [Symbol.asyncDispose]: () => server.stop(),
  }
}

function createServer({ documents, operations, persisted, federation, mask, log }: HttpParts): ApolloServer<HttpContext> {
  return new ApolloServer<HttpContext>({
    gateway: {
      onSchemaLoadOrUpdate(callback) {
        callback({ apiSchema: federation.schema, coreSupergraphSdl: federation.sdl })
        return () => undefined
      },
      load: async () => ({
        executor: async ({ source, document, request: { operationName, variables = {} }, context }) => {
          const { isService, ...ours } = context as HttpContext
          const prepared = operations.prepare(source, operationName, ours.requestId, document)
          if (!('document' in prepared)) return prepared
          if (!isService) persisted.requireOpen(prepared.hash, ours.caller)
          return operations.execute(prepared, variables, ours)
        },
      }),
      stop: async () => undefined,
    },
    // Our executor checks every operation against the schema and the limits, as for sockets and the local link.
    dangerouslyDisableValidation: true,
    parseOptions: PARSE_OPTIONS,
    // Apollo's own store would also keep failing operations.
    documentStore: {
      get: async (key) => documents.findDocument(key.slice(-SHA256_DIGITS)),
      set: async () => undefined,
      delete: async () => true,
    },
    formatError: (_formatted, error) => mask(error, '').toJSON(),
    includeStacktraceInErrorResponses: false,
    // The key in `authorization` proves that a page has been through a preflight, and that no browser sends it by itself.
    csrfPrevention: { requestHeaders: ['authorization', 'apollo-require-preflight', 'x-apollo-operation-name'] },
    allowBatchedHttpRequests: false,
    // `putQueryText` does this, as for sockets.
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
