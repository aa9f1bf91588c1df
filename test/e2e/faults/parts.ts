import { mockCatalog } from '../../support/catalog.ts'
import { ELASTICSEARCH, testIndices } from '../../support/engines/elasticsearch.ts'
import { MeteredEngine } from '../../support/engines/metered-engine.ts'
import { startMockEngine } from '../../support/engines/mock-engine.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase } from '../../support/engines/mongodb.ts'
import { TcpProxy } from '../../support/engines/tcp-proxy.ts'
import { type DistributedService, freePorts, startFiveProcesses } from '../../support/processes/service.ts'

/** How long an engine may take for its first piece and between two: shorter than the patience of a probe. */
const ENGINE_WAIT_SECONDS = 6

/** Between which parts there is a proxy: who asks, and whom. */
const LINKS = [
  'client, rest-adapter',
  'rest-adapter, gateway',
  'gateway, billing',
  'gateway, knowledge',
  'gateway, inference',
  'inference, billing',
  'inference, knowledge',
  'knowledge, billing',
  'knowledge, inference',
  'inference, vendor',
] as const
const STORE_LINKS = ['billing, MongoDB', 'knowledge, MongoDB', 'inference, MongoDB', 'knowledge, Elasticsearch'] as const
export type LinkName = (typeof LINKS)[number] | (typeof STORE_LINKS)[number]

const ROLES = ['billing', 'knowledge', 'inference', 'gateway', 'rest-adapter'] as const
export type RoleName = (typeof ROLES)[number]

/** A service in five processes on MongoDB and Elasticsearch, with a proxy between any two parts. */
export interface Parts extends AsyncDisposable {
  readonly service: DistributedService
  readonly engine: MeteredEngine
  /** The address of the REST API behind the proxy of clients. */
  readonly clientsAddress: string
  proxies(link: LinkName): readonly TcpProxy[]
}

export const linkNames: readonly LinkName[] = [...LINKS, ...STORE_LINKS]
export const roleNames: readonly RoleName[] = ROLES

export async function startParts(): Promise<Parts> {
  await using stack = new AsyncDisposableStack()
  const mongodb = process.env.KIS_TEST_MONGODB_URL!
  const elasticsearch = process.env[ELASTICSEARCH]!
  const engine = stack.use(await MeteredEngine.start())
  const embeddings = stack.use(await startMockEngine())
  const ports = await freePorts(ROLES.length)
  const address = (role: string) => `http://127.0.0.1:${ports[ROLES.indexOf(role as RoleName)]}`
  const proxies = new Map<LinkName, readonly TcpProxy[]>()
  for (const link of linkNames) {
    const to = link.split(', ')[1]!
    const targets =
      to === 'MongoDB'
        ? [mongodb]
        : to === 'Elasticsearch'
          ? [elasticsearch]
          : to === 'vendor'
            ? [engine.url, embeddings.url]
            : [address(to)]
    proxies.set(
      link,
      await Promise.all(targets.map(async (target) => stack.use(await TcpProxy.start(target.replace(/^mongodb:/, 'http:'))))),
    )
  }
  const proxyUrl = (link: LinkName, at = 0) => proxies.get(link)![at]!.url
  const database = newDatabaseName()
  const indices = testIndices(elasticsearch)
  stack.defer(() => dropServiceDatabases(mongodb, database))
  stack.defer(indices.dropAll)
  const overMongo = (role: 'billing' | 'knowledge' | 'inference') => ({
    KIS_MONGODB_URL: `${withDatabase(proxyUrl(`${role}, MongoDB`).replace('http:', 'mongodb:'), database)}?directConnection=true`,
  })
  const environments: Readonly<Record<RoleName, Readonly<Record<string, string>>>> = {
    billing: overMongo('billing'),
    knowledge: {
      ...overMongo('knowledge'),
      KIS_BILLING_URL: proxyUrl('knowledge, billing'),
      KIS_INFERENCE_URL: proxyUrl('knowledge, inference'),
      KIS_ELASTICSEARCH_URL: proxyUrl('knowledge, Elasticsearch'),
      KIS_ELASTICSEARCH_PREFIX: indices.newPrefix(),
      KIS_ELASTICSEARCH_REPLICAS: '0',
    },
    inference: {
      ...overMongo('inference'),
      KIS_BILLING_URL: proxyUrl('inference, billing'),
      KIS_KNOWLEDGE_URL: proxyUrl('inference, knowledge'),
    },
    gateway: {
      KIS_BILLING_URL: proxyUrl('gateway, billing'),
      KIS_KNOWLEDGE_URL: proxyUrl('gateway, knowledge'),
      KIS_INFERENCE_URL: proxyUrl('gateway, inference'),
    },
    'rest-adapter': { KIS_GATEWAY_URL: proxyUrl('rest-adapter, gateway') },
  }
  const waits = `first_byte_seconds: ${ENGINE_WAIT_SECONDS}, idle_seconds: ${ENGINE_WAIT_SECONDS}`
  const service = await startFiveProcesses({
    catalog: `${mockCatalog(`${proxyUrl('inference, vendor', 1)}/v1`).replace(
      '\nmodels:\n',
      `\n  metered: { kind: openai, base_url: "${proxyUrl('inference, vendor')}/v1", badge: cloud, ${waits} }\nmodels:\n  - { id: metered, engine: metered, kind: chat, supports: [tools], context_window: 100000, max_output_tokens: 1000, price: { input: "1", output: "2" } }\n`,
    )}`,
    ports: Object.fromEntries(ROLES.map((role, i) => [role, [ports[i]!]])),
    createEnv: (name) => environments[name.replace(/-1$/, '') as RoleName],
  })
  stack.defer(() => service.close())
  const moved = stack.move()
  return {
    service,
    engine,
    clientsAddress: proxyUrl('client, rest-adapter'),
    proxies: (link) => proxies.get(link)!,
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  }
}
