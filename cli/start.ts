import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import type { Gateway } from '../gateway/main.ts'
import type { Portal } from '../portal/server/portal.ts'
import { readSdl } from '../schema/sdl.ts'
import type { Billing } from '../subgraphs/billing/main.ts'
import { DataFolder } from '../subgraphs/common/adapters/sqlite/data-folder.ts'
import { BYTES_PATH, type BytePaths, bytePaths } from '../subgraphs/common/bytes/byte-paths.ts'
import { KisError } from '../subgraphs/common/errors.ts'
import type { Caller } from '../subgraphs/common/identity/principal.ts'
import { deriveKey, sealedBy } from '../subgraphs/common/identity/secrets.ts'
import type { Link } from '../subgraphs/common/link/link.ts'
import { SharedClock } from '../subgraphs/common/link/shared-clock.ts'
import type { StoringSubgraph, Subgraph, SubgraphName } from '../subgraphs/common/link/subgraph.ts'
import { systemClock } from '../subgraphs/common/process/clock.ts'
import { idSource } from '../subgraphs/common/process/ids.ts'
import { createLog, type Log } from '../subgraphs/common/process/log.ts'
import { Unfit } from '../subgraphs/common/process/opening.ts'
import { VERSIONS } from '../subgraphs/common/process/versions.ts'
import { LargeBodies } from '../subgraphs/common/server/admission/large-bodies.ts'
import { LoadShedder } from '../subgraphs/common/server/admission/load-shedder.ts'
import { healthRoutes, isHealthRequest } from '../subgraphs/common/server/health.ts'
import { type Admit, APP_OPTIONS, type Drainable, listen, WITHOUT_SCHEMAS } from '../subgraphs/common/server/listen.ts'
import { respondToMalformedRequest } from '../subgraphs/common/server/malformed-requests.ts'
import { QueueWatch } from '../subgraphs/common/server/queue-watch.ts'
import { noTelemetry, type Telemetry } from '../subgraphs/common/telemetry/telemetry.ts'
import { authenticateBy } from './links/authenticate-by.ts'
import { graphqlBody } from './links/graphql-errors.ts'
import { localLink } from './links/local-link.ts'
import { type LinkObservers, observedLink } from './links/observed-link.ts'
import { type PrincipalTokens, principalTokens } from './links/principal-token.ts'
import { type RemoteLink, remoteLink } from './links/remote-link.ts'
import { sessionsBy } from './links/sessions-by.ts'
import { signInBy } from './links/sign-in-by.ts'
import type { Config, Settings } from './settings/config.ts'
import { ownFiles } from './settings/own-files.ts'
import { restrictPermissions } from './settings/private-folder.ts'
import { httpsAt } from './settings/public-address.ts'
import type { Role } from './settings/roles.ts'
import { openTelemetry } from './telemetry/open-telemetry.ts'
import { watchRequests } from './telemetry/watch-requests.ts'
import { untilOpen } from './until-open.ts'

const PORTS: Readonly<Record<Role | 'all', number>> = {
  all: 4000,
  gateway: 4000,
  billing: 4001,
  knowledge: 4002,
  inference: 4003,
  'rest-adapter': 4010,
}

/** A part that does not respond within this time is not ready. */
const READY_TIMEOUT_MS = 2_000
/** A subgraph responds to `/readyz` within 2 s, a gateway 0.5 s after its slowest subgraph. */
const SUBGRAPH_READY_MS = 2_500
const GATEWAY_READY_MS = 3_500
/** How often a waiting start checks again. */
const POLL_MS = 250

/** Factor for the timeouts of the gateway, which itself waits for subgraphs, one after the other. */
const GATEWAY_PATIENCE = 4

/** The header with the token that identifies the REST adapter's sockets to the gateway. */
const SERVICE_HEADER = 'x-kis-service'

/** A started role. Disposing it finishes running requests, then closes what it opened, in reverse order. */
export interface Running extends AsyncDisposable {
  /** Resolves when `ready` was printed. Rejects when waiting cannot help. */
  readonly ready: Promise<void>
}

/** A role that listens but may not be able to serve yet. */
interface Listening {
  /** The line `ready <address>`. */
  readonly ready: string
  /** Whether browsers get the portal at the address. */
  readonly hasPortal?: boolean
  problems(): Promise<readonly string[]>
  readonly stores?: readonly StoringSubgraph[]
  readonly billing?: Billing
}

/**
 * Starts a role. Resolves when it listens. `say` is called with the lines of standard output: what the role waits for,
 * whenever that changes; then the operator's key, if it is to be shown; last `ready <address>`. `end` is aborted when
 * the process is about to end: from then on `/readyz` says so. The caller may wait until balancers have noticed before
 * it disposes the role.
 */
export async function start(role: Role | 'all', config: Config, say: (line: string) => void, end: AbortSignal): Promise<Running> {
  await using stack = new AsyncDisposableStack()
  const listening = await new Start(role, config, stack, end).run()
  const stopping = new AbortController()
  stack.defer(() => stopping.abort())
  const ready = untilReady(listening, say, stopping.signal)
  ready.catch(() => undefined)
  const opened = stack.move()
  return { ready, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() }
}

async function untilReady(
  { ready, hasPortal, problems, stores = [], billing }: Listening,
  say: (line: string) => void,
  signal: AbortSignal,
) {
  const opened = stores.map((store) => store.opened)
  await untilOpen(opened, problems, say, signal)
  const key = await billing?.bootstrapKey
  if (key) say(`API key of the operator, shown until its first use: ${key}`)
  if (hasPortal) say(ready.replace(/^ready (.*)$/, 'portal for browsers: $1/'))
  say(ready)
}

/** One start. Objects that several roles need are created once, on first use. */
class Start {
  readonly #role: Role | 'all'
  readonly #config: Config
  readonly #stack: AsyncDisposableStack
  readonly #stopping: AbortSignal
  readonly #log: Log
  readonly #basics: { readonly clock: SharedClock; readonly ids: ReturnType<typeof idSource>; readonly log: Log }
  readonly #settings: Settings
  #telemetry: Telemetry = noTelemetry
  readonly #watch: QueueWatch
  readonly #loadShedder: LoadShedder
  /** Bodies held by the gateway and the REST adapter together, if they share the process. */
  readonly #bodies: LargeBodies
  readonly #folder: DataFolder
  /**
   * Returns the installation that billing's store belongs to. Undefined: this process itself names a new installation.
   */
  #readInstallation: (() => Promise<string>) | undefined
  #tokensOfAll: PrincipalTokens | undefined

  constructor(role: Role | 'all', config: Config, stack: AsyncDisposableStack, stopping: AbortSignal) {
    this.#role = role
    this.#stopping = stopping
    this.#config = config
    this.#stack = stack
    this.#settings = config.settings
    const { gateway, rest } = this.#settings
    const largestBytes = Math.max(gateway.maxBodyBytes, rest.uploadBodyBytes, rest.audioBodyBytes)
    this.#bodies = new LargeBodies({ largestBytes })
    this.#log = createLog(role, config.logLevel)
    this.#watch = stack.use(new QueueWatch(this.#log))
    this.#loadShedder = new LoadShedder(this.#watch)
    const clock = new SharedClock()
    this.#basics = { clock, ids: idSource(clock), log: this.#log }
    this.#folder = new DataFolder({
      files: ownFiles(config, role),
      readInstallationId: () => this.#readInstallation?.() ?? null,
      newId: () => this.#basics.ids('inst'),
    })
  }

  async run(): Promise<Listening> {
    for (const sentence of this.#config.ignored) this.#log.warn(sentence)
    for (const path of restrictPermissions(this.#config.dataDirectory))
      this.#log.warn(
        { path },
        'other users of this machine can read this; restrict it (chmod go-rwx), or use a data folder for the service alone',
      )
    this.#telemetry = await openTelemetry({ role: this.#role, version: VERSIONS.version }, this.#config.telemetry, this.#log, this.#stack)
    await this.#inspectFolder()
    const listening = await this.#run()
    const { stores = [] } = listening
    Promise.all(stores.map(({ opened }) => opened))
      // Problems that keep a store from opening are reported by its `problems`. If the disk is full just now, the next
      // start tries again.
      .then(() => this.#folder.noteSiblings())
      .catch(() => undefined)
    return listening
  }

  /**
   * Checks the data folder before anything works on stores that must not be used. Temporary problems are waited for
   * when the stores open.
   */
  async #inspectFolder(): Promise<void> {
    const { mongodb } = this.#settings.billing
    if (mongodb || !['all', 'billing'].includes(this.#role)) return
    await this.#folder.inspect().catch((error) => {
      if (!(error instanceof Unfit)) throw error
    })
  }

  async #run(): Promise<Listening> {
    switch (this.#role) {
      case 'billing': {
        const billing = await this.#billing()
        const problems = () => billing.problems()
        return { ready: await this.#serve(billing, problems, billing.opened), problems, stores: [billing], billing }
      }
      case 'inference':
      case 'knowledge': {
        const billing = this.#remote('billing')
        const clock = this.#watchClock(billing, { service: this.#role } as Caller, 'billing')
        this.#readInstallation = () => fetchInstallation(billing, this.#config.urls.billing, clock.read)
        const part =
          this.#role === 'inference'
            ? await this.#inference(billing, this.#remote('knowledge'))
            : await this.#knowledge(billing, this.#remote('inference'), clock.opened)
        const problems = async () => [...clock.problems(), ...(await part.problems())]
        const ready = await this.#serve(part, problems, Promise.all([part.opened, clock.opened]))
        return { ready, problems, stores: [part] }
      }
      case 'gateway': {
        const links = { billing: this.#remote('billing'), knowledge: this.#remote('knowledge'), inference: this.#remote('inference') }
        const clock = this.#watchClock(links.billing, { service: this.#role } as Caller, 'billing')
        const gateway = await this.#gateway(links)
        const portal = await this.#portal()
        const problems = async () => [...new Set([...(clock.problems().length > 0 ? ['billing'] : []), ...(await problemsOf(links))])]
        const clientErrorHandler = (error: Error, socket: Duplex) =>
          respondToMalformedRequest(error, socket, this.#basics.ids('req'), graphqlBody)
        const ready = await this.#listen(
          (app) => {
            portal?.register(app)
            return gateway.register(app)
          },
          problems,
          { serverOptions: { clientErrorHandler }, serves: servesWith, admit: gateway.admit },
        )
        return { ready, hasPortal: portal !== null, problems }
      }
      case 'rest-adapter': {
        const gateway = this.#remoteGateway()
        const clock = this.#watchClock(gateway, null, 'gateway')
        const adapter = await this.#restAdapter(gateway)
        const problems = async () => (clock.problems().length > 0 ? null : await gateway.problems(GATEWAY_READY_MS)) ?? ['gateway']
        const ready = await this.#listen(
          async (app) => {
            await adapter.register(app)
            return [adapter]
          },
          problems,
          { serverOptions: adapter.serverOptions, serves: servesWith, admit: adapter.admit },
        )
        return { ready, problems }
      }
      case 'all':
        return this.#all()
    }
  }

  async #all(): Promise<Listening> {
    const billing = await this.#billing()
    const billingLink = this.#local(billing)
    if (this.#settings.billing.mongodb) this.#readInstallation = () => fetchInstallation(billingLink)
    // Knowledge and inference call each other. Nothing is called before both exist.
    const knowledgeLink = {} as Link
    // If the secret is not that of the data, nothing may work on it.
    const inference = await this.#inference(billingLink, knowledgeLink, billing.opened)
    const inferenceLink = this.#local(inference)
    const knowledge = await this.#knowledge(billingLink, inferenceLink, billing.opened)
    Object.assign(knowledgeLink, this.#local(knowledge))
    const gateway = await this.#gateway({ billing: billingLink, inference: inferenceLink, knowledge: knowledgeLink })
    const adapter = await this.#restAdapter(observedLink(gateway.link, 'gateway', 'internal', this.#observers()))
    const problems = async () => (await Promise.all([billing, inference, knowledge].map((part) => part.problems()))).flat()
    const portal = await this.#portal()
    const ready = await this.#listen(
      async (app) => {
        portal?.register(app)
        const sockets = await gateway.register(app)
        await adapter.register(app)
        return [...sockets, adapter]
      },
      problems,
      {
        serverOptions: adapter.serverOptions,
        admit: (request, response, start) =>
          (['/graphql', BYTES_PATH].includes(request.url!.split('?', 1)[0]!) ? gateway : adapter).admit(request, response, start),
      },
    )
    return { ready, hasPortal: portal !== null, problems, stores: [billing, inference, knowledge], billing }
  }

  // A role loads only what it runs.

  async #billing(): Promise<Billing> {
    const { createBilling } = await import('../subgraphs/billing/main.ts')
    return this.#stack.use(
      createBilling(
        {
          ...this.#settings.billing,
          secret: this.#config.secret,
          plans: this.#settings.catalog.plans,
        },
        { ...this.#basics, folder: this.#folder, telemetry: this.#telemetry },
      ),
    )
  }

  async #inference(billing: Link, knowledge: Link, after?: Promise<unknown>): Promise<StoringSubgraph> {
    const { createInference } = await import('../subgraphs/inference/main.ts')
    return this.#stack.use(
      await createInference(this.#settings.inference, {
        billing,
        knowledge,
        secret: this.#config.secret,
        queue: this.#watch,
        folder: this.#folder,
        bytePaths: this.#bytePaths(),
        telemetry: this.#telemetry,
        ...(after && { after }),
        ...this.#basics,
      }),
    )
  }

  async #knowledge(billing: Link, inference: Link, after?: Promise<unknown>): Promise<StoringSubgraph> {
    const { createKnowledge } = await import('../subgraphs/knowledge/main.ts')
    return this.#stack.use(
      await createKnowledge(
        this.#settings.knowledge,
        { billing, inference },
        {
          ...this.#basics,
          folder: this.#folder,
          bytePaths: this.#bytePaths(),
          telemetry: this.#telemetry,
          ...(after && { after }),
        },
      ),
    )
  }

  async #gateway(links: Readonly<Record<SubgraphName, Link>>): Promise<Gateway> {
    const { createGateway } = await import('../gateway/main.ts')
    const isService = (request: IncomingMessage) => this.#isService(request)
    const { oidc } = this.#settings
    const { oauth } = this.#settings.gateway
    const issued = oauth && new (await import('../gateway/keys/issued-tokens.ts')).IssuedTokens(oauth, this.#basics.clock)
    return this.#stack.use(
      await createGateway({
        links,
        bytePaths: this.#bytePaths(),
        authenticate: authenticateBy(links.billing, issued),
        sessions: sessionsBy(links.billing),
        memberSignIn: oidc && { oidc, signIn: signInBy(links.billing), sealed: sealedBy(this.#config.secret, 'sign-ins') },
        isService,
        loadShedder: this.#loadShedder,
        supergraphSdl: readSdl('supergraph'),
        config: this.#settings.gateway,
        bodies: this.#bodies,
        telemetry: this.#telemetry,
        ...this.#basics,
      }),
    )
  }

  /**
   * Whether the socket comes from the REST adapter. Such a socket carries the streams of many clients, so the limits of
   * one key do not apply.
   */
  async #isService({ headers }: IncomingMessage): Promise<boolean> {
    const token = headers[SERVICE_HEADER]
    return typeof token === 'string' && 'service' in (await this.#tokens().verify(token, 'gateway'))
  }

  async #portal(): Promise<Portal | null> {
    if (!this.#config.portal) return null
    const { openPortal } = await import('../portal/server/portal.ts')
    const portal = openPortal({
      folder: fileURLToPath(new URL('../portal', import.meta.url)),
      log: this.#log,
      publicUrl: this.#config.publicUrl,
    })
    return portal && this.#stack.use(portal)
  }

  async #restAdapter(gateway: Link<string | null>) {
    const { createRestAdapter } = await import('../rest-adapter/main.ts')
    return createRestAdapter({
      gateway,
      loadShedder: this.#loadShedder,
      config: this.#settings.rest,
      bodies: this.#bodies,
      telemetry: this.#telemetry,
      ...this.#basics,
    })
  }

  #tokens(): PrincipalTokens {
    this.#tokensOfAll ??= principalTokens(deriveKey(this.#config.secret, 'principal tokens'), this.#basics.clock)
    return this.#tokensOfAll
  }

  #bytePaths(): BytePaths {
    return bytePaths(this.#basics.clock, deriveKey(this.#config.secret, 'stored bytes'))
  }

  #local(subgraph: Subgraph): Link {
    return observedLink(localLink(subgraph, this.#log), subgraph.name, 'internal', this.#observers())
  }

  #observers(): LinkObservers {
    return { telemetry: this.#telemetry, watch: this.#watch }
  }

  #remote(name: SubgraphName): RemoteLink<Caller | null> {
    const tokens = this.#tokens()
    const link = this.#stack.use(
      remoteLink<Caller | null>({
        urls: this.#config.urls[name],
        what: name,
        telemetry: this.#telemetry,
        authorization: async (caller) => caller && `Bearer ${await tokens.sign(caller, name)}`,
        socketKey: (caller) => JSON.stringify(caller),
      }),
    )
    return observedLink(link, name, 'client', { telemetry: this.#telemetry })
  }

  #remoteGateway(): RemoteLink<string | null> {
    const tokens = this.#tokens()
    const link = this.#stack.use(
      remoteLink<string | null>({
        urls: this.#config.urls.gateway,
        what: 'gateway',
        telemetry: this.#telemetry,
        patience: GATEWAY_PATIENCE,
        authorization: async (apiKey) => apiKey && `Bearer ${apiKey}`,
        socketKey: (apiKey) => apiKey ?? '',
        serviceHeaders: async () => ({ [SERVICE_HEADER]: await tokens.sign({ service: 'rest-adapter' }, 'gateway') }),
      }),
    )
    return observedLink(link, 'gateway', 'client', { telemetry: this.#telemetry })
  }

  async #serve(subgraph: Subgraph, problems: () => Promise<readonly string[]>, opened: Promise<unknown>): Promise<string> {
    const { serveSubgraph } = await import('./links/serve-subgraph.ts')
    const server = await serveSubgraph(subgraph, {
      ...this.#listening(),
      problems,
      opened,
      stopping: this.#stopping,
      tokens: this.#tokens(),
      watch: this.#watch,
      log: this.#log,
      telemetry: this.#telemetry,
    })
    this.#stack.use(server)
    return `ready ${server.url}`
  }

  /**
   * Makes this process follow the clock of another part, which follows billing's. Code whose dates matter starts only
   * after that.
   */
  #watchClock<Who>(
    part: RemoteLink<Who>,
    caller: Who,
    name: SubgraphName | 'gateway',
  ): { readonly opened: Promise<unknown>; problems(): readonly string[]; read(): Promise<void> } {
    const stopping = new AbortController()
    this.#stack.defer(() => stopping.abort())
    const { clock } = this.#basics
    const read = () => part.readClock({ caller, requestId: 'clock', signal: AbortSignal.timeout(READY_TIMEOUT_MS) })
    let isSet = false
    let problem = 'no response yet'
    const waitForClock = async () => {
      while (!isSet) {
        isSet = await clock.follow(read).then(
          () => true,
          (error) => {
            problem = describeSilence(error, this.#config.urls[name])
            return false
          },
        )
        if (!isSet) await systemClock.sleep(POLL_MS, stopping.signal)
      }
    }
    const opened = waitForClock()
    // When the process ends, nobody waits for this promise any more.
    opened.catch(() => undefined)
    return { opened, problems: () => (isSet ? [] : [`${name}: ${problem}`]), read: () => clock.setBy(read) }
  }

  async #listen(
    register: (app: FastifyInstance) => Promise<readonly Drainable[]>,
    problems: () => Promise<readonly string[]>,
    {
      serverOptions = {},
      serves,
      admit,
    }: { readonly serverOptions?: FastifyServerOptions; readonly serves?: typeof servesWith; readonly admit: Admit },
  ): Promise<string> {
    const app = fastify({ ...serverOptions, ...APP_OPTIONS, ...WITHOUT_SCHEMAS })
    const watched = watchRequests(app, this.#telemetry)
    healthRoutes(app, problems, this.#log, { ...(serves && { serves }), stopping: this.#stopping })
    const note = httpsAt(this.#config.publicUrl)
    // This listener comes before all others, which read whether the request came by https.
    app.server.prependListener('upgrade', note)
    const parts = await register(app)
    const admitNoted: Admit = (request, response, start) => {
      note(request)
      if (!isHealthRequest(request)) watched(request, response)
      admit(request, response, start)
    }
    const options = { ...this.#listening(), admit: admitNoted, hasPeers: this.#role !== 'all' }
    const server = this.#stack.use(await listen(app, options, parts))
    return `ready ${server.url}`
  }

  #listening() {
    const { host, port, drainMs } = this.#config
    return { host, port: port ?? PORTS[this.#role], clock: this.#basics.clock, drainMs }
  }
}

/**
 * @param setClock is called first: a caller whose clock is wrong is refused
 * @throws {KisError}
 * @throws {Unfit} billing does not respond, or not yet; the opening of the store is tried again
 */
async function fetchInstallation(billing: Link, urls: readonly string[] = [], setClock = async () => {}): Promise<string> {
  const context = { caller: { service: 'knowledge' } as Caller, requestId: 'installation', signal: AbortSignal.timeout(READY_TIMEOUT_MS) }
  const fetched = setClock().then(() => billing.execute({ query: 'query InstallationId { installationId }' }, context))
  const { data, errors } = await fetched.catch((error) => {
    throw new Unfit([describeSilence(error, urls)], { part: 'billing', cause: error })
  })
  const error = errors?.[0] && KisError.fromGraphQL(errors[0])
  // A billing process of version 0.1.0 does not know this query.
  if (error?.code === 'internal')
    throw new Unfit(['billing runs an older version, which does not report its installation: upgrade billing first'], { cause: error })
  if (error?.code === 'service_unavailable') throw new Unfit([describeSilence(error, urls)], { part: 'billing', cause: error })
  if (error) throw error
  return (data as { installationId: string }).installationId
}

/** Returns why billing does not respond, with its addresses if it is another process. */
function describeSilence(error: Error, urls: readonly string[]): string {
  const why = error.cause instanceof Error && error.cause.message ? error.cause.message : error.message
  return urls.length > 0 ? `${urls.join(', ')} does not respond: ${why}` : why
}

/**
 * Returns the subgraphs that do not respond, as `billing`, and the problems of the others, as `billing's document
 * store`.
 */
async function problemsOf(links: Readonly<Record<SubgraphName, RemoteLink<Caller | null>>>): Promise<readonly string[]> {
  const found = Object.entries(links).map(async ([name, link]) => {
    const problems = await link.problems(SUBGRAPH_READY_MS)
    return problems?.map((problem) => `${name}'s ${problem}`) ?? [name]
  })
  return (await Promise.all(found)).flat()
}

/**
 * Whether a gateway or a REST adapter still serves something with these problems. Without billing, which knows the keys
 * and holds the money, all calls fail. Without knowledge or inference a part still works: if a balancer drained every
 * gateway because of one of them, nothing would be served.
 */
function servesWith(problems: readonly string[]): boolean {
  const lacks = (part: string) => problems.some((problem) => problem.startsWith(part))
  return !lacks('gateway') && !lacks('billing') && !(lacks('knowledge') && lacks('inference'))
}
