import { resolve } from 'node:path'
import { z } from 'zod'
import { ROLES, type Role } from '../../gateway/sign-in/oidc-settings.ts'
import { isApiKey } from '../../subgraphs/billing/accounts/domain/api-key.ts'
import { MAX_NANO_USD } from '../../subgraphs/billing/ledger/domain/money.ts'
import { parseMongoUrl } from '../../subgraphs/common/documents/mongodb-url.ts'
import { parseEgressAllow } from '../../subgraphs/common/egress/egress-address.ts'
import { parseOrigins } from '../../subgraphs/common/server/origins.ts'
import { parseUsd } from '../../subgraphs/common/usd.ts'
import { parseElasticsearchUrl } from '../../subgraphs/knowledge/domain/elasticsearch-url.ts'
import { type Environment, trackReads } from './environment.ts'

// Every variable that an operator can set, with its default. Each message follows the variable's name. No message
// quotes a value that may hold a password. The catalog names more variables, for its engines.

/** Orchestrators wait 30 s before they kill. Ending and charging the rest takes some seconds of that. */
const DEFAULT_DRAIN_MS = 20_000
const MAX_DRAIN_MS = 600_000
/** The longest that a call of a model may take. */
const MAX_SLOW_MS = 900_000
const RATIO = 'must be a number from 0 to 1'
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
/** Characters that Elasticsearch accepts in an index name, short enough for what is appended. */
const INDEX_PREFIX = /^[a-z0-9][a-z0-9_-]{0,99}$/
/** Elasticsearch's own limit for a cluster of usual size. */
const MAX_SHARDS = 1_024
const MAX_REPLICAS = 20

/** Any text is a path, so these always have a value. Relative paths start at the working directory. */
const PATHS = z.object({
  KIS_DATA_DIR: path('data'),
  KIS_CATALOG: path('catalog.yaml'),
})

/** The data folder and the catalog, for commands that need nothing else. */
export function readPaths(environment: Environment): z.output<typeof PATHS> {
  return PATHS.parse(trackReads(environment).env)
}

export const VARIABLES = PATHS.extend({
  HOST: z.string().default('127.0.0.1'),
  PORT: whole(0, 65_535, 'must be a number from 0 to 65535').optional(),
  KIS_LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('warn'),
  KIS_ACCESS_LOG: onOrOff('on'),
  KIS_SLOW_MS: whole(0, MAX_SLOW_MS, `must be a number from 0 to ${MAX_SLOW_MS}`).default(0),
  KIS_METRICS_PORT: whole(0, 65_535, 'must be a number from 0 to 65535').optional(),
  KIS_METRICS_HOST: z.string().default('127.0.0.1'),
  KIS_METRICS_ORGANIZATIONS: onOrOff('off'),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().refine(isHttpAddress, 'must be an http(s) address').optional(),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number(RATIO)
    .refine((ratio) => ratio >= 0 && ratio <= 1, RATIO)
    .default(1),
  OTEL_SERVICE_NAME: z.string().optional(),
  KIS_DRAIN_MS: whole(0, MAX_DRAIN_MS, `must be a number from 0 to ${MAX_DRAIN_MS}`).default(DEFAULT_DRAIN_MS),
  KIS_DRAIN_DELAY_MS: whole(0, MAX_DRAIN_MS, `must be a number from 0 to ${MAX_DRAIN_MS}`).default(0),
  KIS_SECRET: z.string().optional(),
  KIS_NEW_SECRET: z.string().optional(),
  KIS_BILLING_URL: addresses(4001),
  KIS_KNOWLEDGE_URL: addresses(4002),
  KIS_INFERENCE_URL: addresses(4003),
  KIS_GATEWAY_URL: addresses(4000),
  KIS_MCP_HOSTS: z
    .string()
    .default('')
    .transform((text) => splitList(text.toLowerCase()))
    .refine(
      (hosts) => hosts.every((host) => URL.parse(`http://${host}`)?.hostname === host),
      'must be host names without ports, separated by commas',
    ),
  KIS_CORS_ORIGINS: readBy(parseOrigins).default(null),
  KIS_PUBLIC_URL: plainAddress()
    .refine((text) => URL.parse(text)?.pathname === '/', 'must be an address without a path')
    .transform((text) => new URL(text).origin)
    .optional(),
  KIS_OIDC_ISSUER: plainAddress().optional(),
  KIS_OIDC_CLIENT_ID: z.string().min(1, 'must name the client').optional(),
  KIS_OIDC_CLIENT_SECRET: z.string().min(1, 'must not be empty').optional(),
  KIS_OIDC_NAME: z.string().min(1, 'must not be empty').max(40, 'must have at most 40 characters').optional(),
  KIS_OIDC_SCOPES: z
    .string()
    .default('openid email profile')
    .refine((scopes) => scopes.split(' ').includes('openid'), 'must contain openid'),
  KIS_OIDC_ORGANIZATION_CLAIM: z.string().min(1, 'must name a claim').optional(),
  KIS_OIDC_ROLE_CLAIM: z.string().min(1, 'must name a claim').optional(),
  KIS_OIDC_ROLES: readBy(parseRoles).default(new Map()),
  KIS_OAUTH_ISSUER: plainAddress().optional(),
  KIS_OAUTH_RESOURCE: plainAddress().optional(),
  KIS_OAUTH_KEY_CLAIM: z.string().min(1, 'must name a claim').default('kis_api_key_id'),
  KIS_PORTAL: onOrOff('on'),
  KIS_INTROSPECTION: onOrOff('on'),
  KIS_TRUSTED_DOCUMENTS: z.string().optional(),
  KIS_TRUSTED_DOCUMENTS_ONLY: onOrOff('off'),
  KIS_BOOTSTRAP_API_KEY: z
    .string()
    .refine(isApiKey, 'is not a key: `kis_live_` and 36 letters or digits, of which the last six are a checksum')
    .optional(),
  KIS_BOOTSTRAP_CREDIT_USD: readBy(parseCredit).default(parseCredit('100')),
  KIS_RETRY_BACKOFF_MS: whole(1, Number.MAX_SAFE_INTEGER, 'must be a whole number of milliseconds, at least 1').default(1_000),
  KIS_EGRESS_ALLOW: hostsAndPorts(),
  KIS_LOCAL_MCP_SERVERS: hostsAndPorts(),
  KIS_MONGODB_URL: readBy(parseMongoUrl).optional(),
  KIS_ELASTICSEARCH_URL: readBy(checkElasticsearchUrl).optional(),
  KIS_ELASTICSEARCH_API_KEY: z.string().optional(),
  KIS_ELASTICSEARCH_PREFIX: z
    .string()
    .refine((prefix) => INDEX_PREFIX.test(prefix), 'must be lower-case letters, digits, - and _, at most 100')
    .optional(),
  KIS_ELASTICSEARCH_SHARDS: whole(1, MAX_SHARDS).default(1),
  KIS_ELASTICSEARCH_REPLICAS: whole(0, MAX_REPLICAS).default(1),
})
  .refine((env) => env.KIS_TRUSTED_DOCUMENTS_ONLY !== 'on' || env.KIS_TRUSTED_DOCUMENTS !== undefined, {
    path: ['KIS_TRUSTED_DOCUMENTS_ONLY'],
    error: 'needs KIS_TRUSTED_DOCUMENTS',
    // Report this beside the problems of other variables.
    when: () => true,
  })
  .refine((env) => (env.KIS_OAUTH_ISSUER === undefined) === (env.KIS_OAUTH_RESOURCE === undefined), {
    path: ['KIS_OAUTH_ISSUER'],
    error: 'and KIS_OAUTH_RESOURCE need each other: the authorization server, and the address of /mcp as clients use it',
    when: () => true,
  })

  .refine((env) => env.KIS_OIDC_ISSUER === undefined || (env.KIS_OIDC_CLIENT_ID !== undefined && env.KIS_PUBLIC_URL !== undefined), {
    path: ['KIS_OIDC_ISSUER'],
    error: 'needs KIS_OIDC_CLIENT_ID, and KIS_PUBLIC_URL: the address at which people reach the service',
    when: () => true,
  })

export type Variables = z.output<typeof VARIABLES>

function path(byDefault: string) {
  return z
    .string()
    .default(byDefault)
    .transform((text) => resolve(text))
}

function whole(least: number, most: number, message = `must be a whole number from ${least} to ${most}`) {
  return z.coerce.number(message).refine((number) => Number.isSafeInteger(number) && number >= least && number <= most, message)
}

function onOrOff(byDefault: 'on' | 'off') {
  return z.enum(['on', 'off'], { error: ({ input }) => `is "${input}"; it may be "on" or "off"` }).default(byDefault)
}

/** Base addresses of the replicas of one role. */
function addresses(port: number) {
  return z
    .string()
    .default(`http://127.0.0.1:${port}`)
    .transform((text) => text.split(',').map((address) => address.trim()))
    .refine(
      (all) => all.every((address) => URL.canParse(address) && /^https?:/.test(address)),
      'must be an http(s) address, or several separated by commas',
    )
}

/** An http(s) address without a query. Tokens and clients compare it letter by letter. */
function plainAddress() {
  const isPlain = (text: string) => /^https?:\/\/[^?#\s]+$/.test(text) && URL.canParse(text)
  return z.string().refine(isPlain, 'must be an http(s) address without a query')
}

function hostsAndPorts() {
  return readBy(parseEgressAllow).default(new Set())
}

/** `read` throws an `Error` with the message. */
function readBy<T>(read: (text: string) => T) {
  return z.string().transform((text, { issues }) => {
    try {
      return read(text)
    } catch (error) {
      issues.push({ code: 'custom', message: (error as Error).message, input: text })
      return z.NEVER
    }
  })
}

function splitList(text: string): readonly string[] {
  return text.split(',').flatMap((entry) => entry.trim() || [])
}

/** `staff=editor,leads=admin`: what the values of the claim of roles stand for. */
function parseRoles(text: string): ReadonlyMap<string, Role> {
  return new Map(
    splitList(text).map((entry) => {
      const at = entry.lastIndexOf('=')
      const role = ROLES.find((each) => each === entry.slice(at + 1).trim())
      if (at < 1 || !role) throw new Error(`must be pairs such as staff=editor, with the roles ${ROLES.join(', ')}`)
      return [entry.slice(0, at).trim(), role]
    }),
  )
}

function parseCredit(text: string): bigint {
  const amount = tryParseUsd(text)
  if (amount !== undefined && amount >= 0n && amount <= MAX_NANO_USD) return amount
  throw new Error('is not an amount: 0 to 9000000 with at most 9 decimal places')
}

function tryParseUsd(text: string): bigint | undefined {
  try {
    return parseUsd(text)
  } catch {
    return undefined
  }
}

function checkElasticsearchUrl(text: string): string {
  parseElasticsearchUrl(text)
  return text
}

/** The user and the password must be decodable: write `%` as `%25`. */
function isHttpAddress(url: string): boolean {
  if (!URL.canParse(url) || !/^https?:/.test(url)) return false
  const { username, password } = new URL(url)
  return !/%(?![0-9a-f]{2})/i.test(username + password)
}
