import type { FastifyInstance } from 'fastify'
import { EndedByRestart } from '../subgraphs/common/process/socket-drain.ts'
import { compressResponses } from '../subgraphs/common/server/compression.ts'
import type { Admit, Drainable } from '../subgraphs/common/server/listen.ts'
import { enableCors } from '../subgraphs/common/server/origins.ts'
import { noTelemetry } from '../subgraphs/common/telemetry/telemetry.ts'
import { keyRoutes } from './accounts/keys.ts'
import { memberRoutes } from './accounts/members.ts'
import { residencyEffectRoutes } from './accounts/residency-effects.ts'
import { sessionRoutes } from './accounts/sessions.ts'
import { viewerRoutes } from './accounts/viewer.ts'
import { chatCompletionRoutes } from './chat/chat-completions.ts'
import { quoteRoutes } from './chat/quote.ts'
import { registerDocs } from './docs/routes.ts'
import type { RestDeps, RestParts } from './http/deps.ts'
import { InFlightRequests } from './http/in-flight-requests.ts'
import { registerOAuthMetadata } from './http/oauth-metadata.ts'
import { readOpenApi } from './http/openapi.ts'
import { admitBy, registerRequestRules, serverOptions } from './http/requests.ts'
import type { Route } from './http/route.ts'
import { registerRoutes } from './http/routing.ts'
import { CancellableRequests } from './mcp/cancellable-requests.ts'
import { mcpRoutes } from './mcp/routes.ts'
import { messageRoutes } from './messages/routes.ts'
import { registerNotOffered } from './not-offered.ts'
import { responseRoutes } from './responses/routes.ts'
import { agentRunRoutes } from './routes/agent-runs.ts'
import { agentRoutes } from './routes/agents.ts'
import { collectionRoutes } from './routes/collections.ts'
import { documentBatchRoutes } from './routes/document-batches.ts'
import { documentContentRoutes } from './routes/document-contents.ts'
import { documentRoutes } from './routes/documents.ts'
import { embeddingRoutes } from './routes/embeddings.ts'
import { erasureRoutes } from './routes/erasures.ts'
import { evaluationWatchRoutes } from './routes/evaluation/evaluation-watches.ts'
import { evaluationRoutes } from './routes/evaluation/evaluations.ts'
import { goldQuestionRoutes } from './routes/evaluation/gold-questions.ts'
import { suggestionRoutes } from './routes/evaluation/suggestions.ts'
import { fileRoutes } from './routes/files.ts'
import { modelRoutes } from './routes/models.ts'
import { usageRoutes } from './routes/money/usage.ts'
import { walletRoutes } from './routes/money/wallet.ts'
import { operationRoutes } from './routes/operation.ts'
import { operatorRoutes } from './routes/operator.ts'
import { organizationRoutes } from './routes/organization.ts'
import { reembeddingRoutes } from './routes/reembeddings.ts'
import { rerankRoutes } from './routes/rerank.ts'
import { searchRoutes } from './routes/search.ts'
import { threadRoutes } from './routes/threads.ts'
import { transcriptionRoutes } from './routes/transcriptions.ts'
import { webSourceRoutes } from './routes/web-sources.ts'
import { webhookRoutes } from './routes/webhooks.ts'
import { workflowRunRoutes } from './routes/workflow-runs.ts'
import { workflowRoutes } from './routes/workflows.ts'
import { tusRoutes } from './uploads/tus.ts'

/** The REST adapter in this process. */
export interface RestAdapter extends Drainable {
  /** Spread these into the options of the app. */
  readonly serverOptions: ReturnType<typeof serverOptions>
  /**
   * Adds `/v1/*`, `/docs` and `/` to an app, and responds to every address without a route: the app must not have a
   * not-found handler of its own.
   */
  register(app: FastifyInstance): Promise<void>
  /** Pass it to `listen`. */
  readonly admit: Admit
  /** Ends every running request with `service_unavailable`, streams by an error event. */
  end(): void
}

export const restRoutes: readonly Route[] = [
  ...chatCompletionRoutes,
  ...quoteRoutes,
  ...messageRoutes,
  ...responseRoutes,
  ...embeddingRoutes,
  ...rerankRoutes,
  ...transcriptionRoutes,
  ...modelRoutes,
  ...collectionRoutes,
  ...documentRoutes,
  ...webSourceRoutes,
  ...documentContentRoutes,
  ...documentBatchRoutes,
  ...searchRoutes,
  ...goldQuestionRoutes,
  ...suggestionRoutes,
  ...evaluationRoutes,
  ...evaluationWatchRoutes,
  ...reembeddingRoutes,
  ...fileRoutes,
  ...tusRoutes,
  ...agentRoutes,
  ...agentRunRoutes,
  ...threadRoutes,
  ...workflowRoutes,
  ...workflowRunRoutes,
  ...viewerRoutes,
  ...keyRoutes,
  ...memberRoutes,
  ...sessionRoutes,
  ...erasureRoutes,
  ...organizationRoutes,
  ...residencyEffectRoutes,
  ...usageRoutes,
  ...walletRoutes,
  ...webhookRoutes,
  ...operatorRoutes,
  ...operationRoutes,
  ...mcpRoutes(new CancellableRequests()),
]

/**
 * Creates the REST API: it accepts HTTP of the chat protocol and calls operations of the gateway. It depends on nothing
 * else of the service.
 */
export function createRestAdapter(options: RestDeps): RestAdapter {
  const deps: RestParts = { telemetry: noTelemetry, ...options, inFlight: new InFlightRequests() }
  const openapi = readOpenApi()
  return {
    serverOptions: serverOptions(deps),
    async register(app) {
      // Without this listener Node itself responds to an unknown expectation, without a body. A server may ignore it
      // (RFC 9110, section 10.1.1).
      app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
      await enableCors(app)
      await app.register(async (scope) => {
        await compressResponses(scope)
        registerRequestRules(scope, deps)
        registerRoutes(scope, restRoutes, openapi, deps)
        registerNotOffered(scope)
        registerDocs(scope, openapi)
        registerOAuthMetadata(scope, deps.config)
      })
    },
    admit: admitBy(restRoutes, deps),
    end: () => deps.inFlight.end(new EndedByRestart()),
  }
}
