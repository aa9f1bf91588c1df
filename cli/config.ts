import { resolve } from 'node:path'
import { type GatewayConfig, readGatewayConfig } from '../gateway/config.ts'
import { type RestConfig, restConfig } from '../rest-adapter/config.ts'
import { type BillingSettings, readBillingConfig } from '../subgraphs/billing/config.ts'
import { type CatalogFile, readCatalogFile } from '../subgraphs/common/catalog/catalog-file.ts'
import { keptSecret, parseSecret } from '../subgraphs/common/identity/secrets.ts'
import { ConfigError } from '../subgraphs/common/process/config-error.ts'
import { type InferenceConfig, readInferenceConfig } from '../subgraphs/inference/config.ts'
import { type KnowledgeConfig, readKnowledgeConfig } from '../subgraphs/knowledge/config.ts'
import { readingOf } from './environment.ts'
import type { Role } from './start.ts'

/** What every role is told by the environment. */
export interface Config {
  readonly host: string
  /** 0: any free port, as tests want it. Undefined: the role's own. */
  readonly port: number | undefined
  readonly dataDirectory: string
  /** `KIS_SECRET`, or what is made and kept in the data folder. */
  readonly secret: Uint8Array
  readonly logLevel: string
  /** How long requests under way may go on after SIGTERM, before they are ended. */
  readonly drainMs: number
  /** Base addresses of the other roles' replicas, at least one each. */
  readonly urls: Readonly<Record<'billing' | 'knowledge' | 'inference' | 'gateway', readonly string[]>>
  /** What the parts read for themselves. */
  readonly settings: Settings
  /** A sentence for each variable that looks like one of ours and is none. */
  readonly ignored: readonly string[]
}

export interface Settings {
  readonly catalog: CatalogFile
  readonly billing: BillingSettings
  readonly inference: InferenceConfig
  readonly knowledge: KnowledgeConfig
  readonly gateway: GatewayConfig
  readonly rest: RestConfig
}

/** Orchestrators wait 30 s before they kill; ending and charging what is left takes some seconds of that. */
const DEFAULT_DRAIN_MS = 20_000
const MAX_DRAIN_MS = 600_000
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent']

/**
 * `role`: the one that starts; one on its own needs `KIS_SECRET`, because every process must have the same.
 * @throws {ConfigError} with every problem of every part, each once, and what is ignored.
 */
export function readConfig(environment: NodeJS.ProcessEnv, role: Role | 'all' = 'all'): Config {
  const { env, ignored } = readingOf(environment)
  const problems: string[] = []
  const part = <T>(read: () => T): T => {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.problems)
      // Never used: the problem ends the start below.
      return undefined as T
    }
  }
  const urls = (name: string, port: number) => {
    const addresses = (env[name] ?? `http://127.0.0.1:${port}`).split(',').map((address) => address.trim())
    if (!addresses.every((address) => URL.canParse(address) && /^https?:/.test(address)))
      problems.push(`${name} must be an http(s) address, or several with commas between them`)
    return addresses
  }
  const port = env.PORT === undefined ? undefined : Number(env.PORT)
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) problems.push('PORT must be a number from 0 to 65535')
  const logLevel = env.KIS_LOG_LEVEL ?? 'warn'
  if (!LOG_LEVELS.includes(logLevel)) problems.push(`KIS_LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}`)
  const drainMs = Number(env.KIS_DRAIN_MS ?? DEFAULT_DRAIN_MS)
  if (!(Number.isInteger(drainMs) && drainMs >= 0 && drainMs <= MAX_DRAIN_MS))
    problems.push(`KIS_DRAIN_MS must be a number from 0 to ${MAX_DRAIN_MS}`)
  const mcpHosts = (env.KIS_MCP_HOSTS ?? '').split(',').flatMap((host) => host.trim().toLowerCase() || [])
  if (!mcpHosts.every((host) => URL.parse(`http://${host}`)?.hostname === host))
    problems.push('KIS_MCP_HOSTS must be names of hosts without ports, with commas between them')
  const dataDirectory = resolve(env.KIS_DATA_DIR ?? 'data')
  const secret = part(() => secretOf(env.KIS_SECRET, role, dataDirectory))
  const catalog = part(() => readCatalogFile(resolve(env.KIS_CATALOG ?? 'catalog.yaml'), env))
  const config: Config = {
    host: env.HOST ?? '127.0.0.1',
    port,
    dataDirectory,
    secret,
    logLevel,
    drainMs,
    urls: {
      billing: urls('KIS_BILLING_URL', 4001),
      knowledge: urls('KIS_KNOWLEDGE_URL', 4002),
      inference: urls('KIS_INFERENCE_URL', 4003),
      gateway: urls('KIS_GATEWAY_URL', 4000),
    },
    settings: {
      catalog,
      billing: part(() => readBillingConfig(env)),
      inference: part(() => readInferenceConfig(env)),
      knowledge: part(() => readKnowledgeConfig(env)),
      gateway: part(() => readGatewayConfig(env, catalog?.plans ?? [])),
      rest: restConfig(catalog && maxFileBytesOf(catalog), new Set(mcpHosts)),
    },
    ignored: ignored(),
  }
  // Parts that share a variable find the same problem.
  if (problems.length) throw new ConfigError([...new Set(problems), ...config.ignored])
  return config
}

function secretOf(text: string | undefined, role: Role | 'all', dataDirectory: string): Uint8Array {
  if (text !== undefined) return parseSecret(text)
  if (role === 'all') return keptSecret(dataDirectory)
  throw new ConfigError(['KIS_SECRET is missing: every process of the service needs the same, of at least 32 characters'])
}

/** The largest file that any plan allows. */
function maxFileBytesOf({ plans }: CatalogFile): number {
  return Math.max(...plans.map(({ maxFileBytes }) => maxFileBytes))
}
