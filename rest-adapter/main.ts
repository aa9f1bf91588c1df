import type { FastifyInstance } from 'fastify'
import type { Clock } from '../subgraphs/common/clock.ts'
import type { Door } from '../subgraphs/common/door.ts'
import type { IdSource } from '../subgraphs/common/ids.ts'
import type { LargeBodies } from '../subgraphs/common/large-bodies.ts'
import type { Link } from '../subgraphs/common/link.ts'
import type { Drainable, Refuse } from '../subgraphs/common/listen.ts'
import type { Log } from '../subgraphs/common/log.ts'
import { EndedByRestart } from '../subgraphs/common/socket-drain.ts'
import { agentRunRoutes } from './agent-runs.ts'
import { agentRoutes } from './agents.ts'
import { chatCompletionRoutes } from './chat-completions.ts'
import { collectionRoutes } from './collections.ts'
import type { RestConfig } from './config.ts'
import { registerDocs } from './docs-page.ts'
import { documentRoutes } from './documents.ts'
import { embeddingRoutes } from './embeddings.ts'
import { fileRoutes } from './files.ts'
import { keyRoutes } from './keys.ts'
import { mcpRoutes } from './mcp/routes.ts'
import { RequestsUnderWay } from './mcp/under-way.ts'
import { messageRoutes } from './messages/routes.ts'
import { modelRoutes } from './models.ts'
import { registerNotOffered } from './not-offered.ts'
import { readOpenApi } from './openapi.ts'
import { operatorRoutes } from './operator.ts'
import { organizationRoutes } from './organization.ts'
import { quoteRoutes } from './quote.ts'
import { refuseAtDoor, registerRequestRules, serverOptions } from './requests.ts'
import { responseRoutes } from './responses/routes.ts'
import type { Route } from './route.ts'
import { registerRoutes } from './routing.ts'
import { searchRoutes } from './search.ts'
import { transcriptionRoutes } from './transcriptions.ts'
import { UnderWay } from './under-way.ts'
import { usageRoutes } from './usage.ts'
import { walletRoutes } from './wallet.ts'
import { webhookRoutes } from './webhooks.ts'
import { workflowRunRoutes } from './workflow-runs.ts'
import { workflowRoutes } from './workflows.ts'

export interface RestDeps {
  /** Its caller is the API key without `Bearer`. It judges the key of every operation, `{ __typename }` too. */
  readonly gateway: Link<string | null>
  readonly door: Pick<Door, 'enter'>
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
  readonly config: RestConfig
  /** Those of the process: whoever else reads bodies in it shares them. */
  readonly bodies: LargeBodies
}

/** What the adapter's parts share. */
export interface RestParts extends RestDeps {
  readonly underWay: UnderWay
}

export interface RestAdapter extends Drainable {
  /** To be spread into the options of the app. */
  readonly serverOptions: ReturnType<typeof serverOptions>
  /**
   * Adds `/v1/*`, `/docs` and `/` to an app, and answers every address that nothing else of the app answers: the app must not have a
   * handler of its own for what is not found.
   */
  register(app: FastifyInstance): Promise<void>
  /** For `listen`. */
  readonly refuse: Refuse
  /** Ends every request under way with `service_unavailable`, streams by an error event. */
  end(): void
}

export const restRoutes: readonly Route[] = [
  ...chatCompletionRoutes,
  ...quoteRoutes,
  ...messageRoutes,
  ...responseRoutes,
  ...embeddingRoutes,
  ...transcriptionRoutes,
  ...modelRoutes,
  ...collectionRoutes,
  ...documentRoutes,
  ...searchRoutes,
  ...fileRoutes,
  ...agentRoutes,
  ...agentRunRoutes,
  ...workflowRoutes,
  ...workflowRunRoutes,
  ...keyRoutes,
  ...organizationRoutes,
  ...usageRoutes,
  ...walletRoutes,
  ...webhookRoutes,
  ...operatorRoutes,
  ...mcpRoutes(new RequestsUnderWay()),
]

/** The REST surface: HTTP of the chat protocol in, operations of the gateway out. It knows nothing else of the service. */
export function createRestAdapter(given: RestDeps): RestAdapter {
  const deps: RestParts = { ...given, underWay: new UnderWay() }
  const openapi = readOpenApi()
  return {
    serverOptions: serverOptions(deps),
    async register(app) {
      // Node answers an expectation that it does not know by itself, without a body; it may as well be left unmet (RFC 9110, section 10.1.1).
      app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
      await app.register(async (scope) => {
        registerRequestRules(scope, deps)
        registerRoutes(scope, restRoutes, openapi, deps)
        registerNotOffered(scope)
        registerDocs(scope, openapi)
      })
    },
    refuse: refuseAtDoor(restRoutes, deps),
    end: () => deps.underWay.end(new EndedByRestart()),
  }
}
