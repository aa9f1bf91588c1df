import { resolve } from 'node:path'

/** What every role is told by the environment. The subgraphs read their own part from `env`. */
export interface Config {
  readonly env: NodeJS.ProcessEnv
  readonly host: string
  /** 0: any free port, as tests want it. Undefined: the role's own. */
  readonly port: number | undefined
  readonly dataDirectory: string
  readonly catalogFile: string
  /** Undefined: made and kept in the data folder, for the whole service in one process only. */
  readonly secret: string | undefined
  readonly logLevel: string
  /** How long requests under way may go on after SIGTERM, before they are ended. */
  readonly drainMs: number
  /** Names of hosts by which `/mcp` is reached; empty: those of this machine itself. */
  readonly mcpHosts: ReadonlySet<string>
  /** Base addresses of the other roles' replicas, at least one each. */
  readonly urls: Readonly<Record<'billing' | 'knowledge' | 'inference' | 'gateway', readonly string[]>>
}

/** Orchestrators wait 30 s before they kill; ending and charging what is left takes some seconds of that. */
const DEFAULT_DRAIN_MS = 20_000
const MAX_DRAIN_MS = 600_000
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent']

/** @throws {Error} with every problem at once. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const problems: string[] = []
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
  if (env.KIS_SECRET !== undefined && env.KIS_SECRET.length < 32) problems.push('KIS_SECRET must have at least 32 characters')
  const drainMs = Number(env.KIS_DRAIN_MS ?? DEFAULT_DRAIN_MS)
  if (!(Number.isInteger(drainMs) && drainMs >= 0 && drainMs <= MAX_DRAIN_MS))
    problems.push(`KIS_DRAIN_MS must be a number from 0 to ${MAX_DRAIN_MS}`)
  const mcpHosts = (env.KIS_MCP_HOSTS ?? '').split(',').flatMap((host) => host.trim().toLowerCase() || [])
  if (!mcpHosts.every((host) => URL.parse(`http://${host}`)?.hostname === host))
    problems.push('KIS_MCP_HOSTS must be names of hosts without ports, with commas between them')
  const config: Config = {
    env,
    host: env.HOST ?? '127.0.0.1',
    port,
    dataDirectory: resolve(env.KIS_DATA_DIR ?? 'data'),
    catalogFile: resolve(env.KIS_CATALOG ?? 'catalog.yaml'),
    secret: env.KIS_SECRET,
    logLevel,
    drainMs,
    mcpHosts: new Set(mcpHosts),
    urls: {
      billing: urls('KIS_BILLING_URL', 4001),
      knowledge: urls('KIS_KNOWLEDGE_URL', 4002),
      inference: urls('KIS_INFERENCE_URL', 4003),
      gateway: urls('KIS_GATEWAY_URL', 4000),
    },
  }
  if (problems.length) throw new Error(problems.join('\n'))
  return config
}
