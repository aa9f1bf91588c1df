import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { BytePaths } from '../subgraphs/common/bytes/byte-paths.ts'
import type { Link } from '../subgraphs/common/link/link.ts'
import type { SubgraphName } from '../subgraphs/common/link/subgraph.ts'
import type { Clock } from '../subgraphs/common/process/clock.ts'
import { idSource } from '../subgraphs/common/process/ids.ts'
import type { Log } from '../subgraphs/common/process/log.ts'
import type { LargeBodies } from '../subgraphs/common/server/admission/large-bodies.ts'
import type { LoadShedder } from '../subgraphs/common/server/admission/load-shedder.ts'
import type { Admit, Drainable } from '../subgraphs/common/server/listen.ts'
import { enableCors } from '../subgraphs/common/server/origins.ts'
import { refuseUpgrade } from '../subgraphs/common/server/unauthenticated-sockets.ts'
import { noTelemetry, type Telemetry } from '../subgraphs/common/telemetry/telemetry.ts'
import { bytesOf, serveDownloads } from './bytes.ts'
import type { GatewayConfig } from './config.ts'
import { Documents } from './documents.ts'
import { EventStreams } from './event-streams.ts'
import { Federation } from './federation/federation.ts'
import { gatewayLink } from './gateway-link.ts'
import { admitBy, serveHttp } from './http.ts'
import { type Authenticate, Authenticator } from './keys/authenticate.ts'
import { KeyWatch } from './keys/key-watch.ts'
import { createMask } from './mask.ts'
import { Operations } from './operations.ts'
import { type Manifest, PersistedOperations } from './persisted-operations.ts'
import { serveSessions } from './sessions/session-routes.ts'
import type { SessionStore } from './sessions/session-store.ts'
import type { SignInRouteParts } from './sign-in/sign-in-routes.ts'
import { PUBLIC_SOCKETS, SERVICE_SOCKETS, SocketRegistry } from './socket-registry.ts'
import { serveSockets } from './sockets.ts'

export interface GatewayOptions {
  readonly links: Readonly<Record<SubgraphName, Link>>
  /** Those with which the subgraphs sign where their bytes are. */
  readonly bytePaths: BytePaths
  readonly authenticate: Authenticate
  readonly sessions: SessionStore
  /** How people sign in. Default: only by a key. */
  readonly memberSignIn?: Pick<SignInRouteParts, 'oidc' | 'signIn' | 'sealed'> | null
  /**
   * Whether a socket comes from a process of this service. It then gets the limits of services instead of those of one
   * key. Default: never.
   */
  readonly isService?: (request: IncomingMessage) => Promise<boolean>
  /** `schema/supergraph.graphql`. */
  readonly supergraphSdl: string
  readonly loadShedder: Pick<LoadShedder, 'enter' | 'recognise'>
  readonly clock: Clock
  readonly log: Log
  readonly config: GatewayConfig
  /** Shared with everything else in the process that reads bodies. */
  readonly bodies: LargeBodies
  /** Default: nothing is told. */
  readonly telemetry?: Telemetry
}

export interface Gateway extends AsyncDisposable {
  /** For parts of the same process. The caller is the API key as the client sent it, or null when it sent none. */
  readonly link: Link<string | null>
  /** Serves `/graphql` by GET, POST, event streams and graphql-ws, `/bytes` and `/session`. Gives what `listen` drains. */
  register(app: FastifyInstance): Promise<readonly Drainable[]>
  /** Pass it to `listen`, for the whole app if it serves only the gateway, else for `/graphql` and `/bytes`. */
  readonly admit: Admit
}

export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const {
    links,
    authenticate,
    supergraphSdl,
    loadShedder,
    clock,
    log,
    config,
    bodies,
    memberSignIn = null,
    telemetry = noTelemetry,
  } = options
  const isService = async (request: IncomingMessage) => (await options.isService?.(request).catch(() => false)) ?? false
  const ids = idSource(clock)
  const federation = await Federation.open(supergraphSdl, links, telemetry.metrics, log)
  const mask = createMask(log)
  const documents = new Documents(federation, config.introspection)
  const authenticator = new Authenticator(authenticate, clock, {
    acceptsTokens: config.oauth !== null,
    accepted: (credentials) => loadShedder.recognise(credentials),
    identified: (requestId, { organizationId, apiKeyId }) => telemetry.requests.report(requestId, { organizationId, apiKeyId }),
    lookedUp: (isKnown) => telemetry.metrics.add('kis_cache_lookups_total', 1, 'principals', isKnown ? 'hit' : 'miss'),
  })
  const watch = new KeyWatch(authenticator, clock, ids)
  const operations = new Operations(documents, federation, mask, watch, authenticator, config, telemetry.requests)
  const persisted = new PersistedOperations(config.trustedDocuments, config.trustedDocumentsOnly)
  checkManifest(persisted.manifest, documents)
  const parts = {
    documents,
    operations,
    persisted,
    isService,
    federation,
    authenticator,
    sessions: options.sessions,
    oidc: memberSignIn?.oidc ?? null,
    mask,
    loadShedder,
    clock,
    ids,
    log,
    maxBodyBytes: config.maxBodyBytes,
    introspection: config.introspection,
    origins: config.origins,
    bodies,
    inference: links.inference,
    telemetry,
  }
  const openBytes = bytesOf(options.bytePaths, links)
  const served: AsyncDisposable[] = []
  const gauges = new DisposableStack()

  return {
    link: gatewayLink(operations, authenticator, openBytes),
    admit: admitBy(parts),

    async register(app) {
      await enableCors(app)
      const registry = new SocketRegistry(PUBLIC_SOCKETS)
      const streams = new EventStreams({ ...parts, registry })
      const http = await serveHttp(app, { ...parts, streams })
      await serveDownloads(app, { ...parts, paths: options.bytePaths, openBytes })
      await serveSessions(app, parts)
      if (memberSignIn) {
        const { serveSignIn } = await import('./sign-in/sign-in-routes.ts')
        await serveSignIn(app, { ...parts, ...memberSignIn })
      }
      const sockets = serveSockets(parts, registry)
      const ofServicesRegistry = new SocketRegistry(SERVICE_SOCKETS)
      const ofServices = { ...parts, persisted: new PersistedOperations(new Map(), false) }
      const serviceSockets = serveSockets(ofServices, ofServicesRegistry)
      served.push(sockets, serviceSockets, http)
      const registries = { clients: registry, services: ofServicesRegistry }
      const perRegistry = (count: (one: SocketRegistry) => number) => () =>
        Object.entries(registries).map(([name, one]) => [count(one), name] as const)
      gauges.use(
        telemetry.metrics.gauge(
          'kis_sockets',
          perRegistry(({ connections }) => connections.size),
        ),
      )
      gauges.use(telemetry.metrics.gauge('kis_subscriptions', perRegistry(countOperations)))
      app.server.on('upgrade', async (request, connection, head) => {
        connection.on('error', () => connection.destroy())
        if (request.url?.split('?')[0] !== '/graphql') return refuseUpgrade(connection, '404 Not Found')
        if (!config.origins.allows(request.headers.origin)) return refuseUpgrade(connection, '403 Forbidden')
        return ((await isService(request)) ? serviceSockets : sockets).upgrade(request, connection, head)
      })
      // Node's server waits for open sockets, which do not end by themselves.
      app.addHook('preClose', async () => {
        await Promise.all([sockets[Symbol.asyncDispose](), serviceSockets[Symbol.asyncDispose]()])
      })
      return [sockets, serviceSockets, streams]
    },

    async [Symbol.asyncDispose]() {
      gauges.dispose()
      await Promise.all([watch, federation, ...served].map((part) => part[Symbol.asyncDispose]()))
    },
  }
}

function countOperations({ connections }: SocketRegistry): number {
  return [...connections].reduce((sum, { operations }) => sum + operations.size, 0)
}

/** @throws {Error} the supergraph cannot answer some of the trusted documents; the message names each */
function checkManifest(manifest: Manifest, documents: Documents): void {
  const problems = [...manifest].flatMap(([id, text]) => {
    // Without a name: the request decides which of several operations runs.
    const checked = documents.check(text)
    return 'document' in checked ? [] : [`trusted document ${id}: ${checked.map(({ message }) => message).join(' ')}`]
  })
  if (problems.length > 0) throw new Error(problems.join('\n'))
}
