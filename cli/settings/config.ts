import { type GatewayConfig, gatewayConfig, readTrustedDocuments } from '../../gateway/config.ts'
import type { OidcSettings } from '../../gateway/sign-in/oidc-settings.ts'
import { type RestConfig, restConfig } from '../../rest-adapter/config.ts'
import type { BillingSettings } from '../../subgraphs/billing/config.ts'
import { ConfigError } from '../../subgraphs/common/errors.ts'
import type { OAuthSettings } from '../../subgraphs/common/identity/credentials.ts'
import { loadOrCreateSecret } from '../../subgraphs/common/identity/secret-file.ts'
import { parseSecret } from '../../subgraphs/common/identity/secrets.ts'
import { Origins } from '../../subgraphs/common/server/origins.ts'
import type { InferenceConfig } from '../../subgraphs/inference/config.ts'
import { type CatalogFile, readCatalogFile } from '../../subgraphs/inference/domain/catalog/catalog-file.ts'
import type { ElasticsearchConfig, KnowledgeConfig } from '../../subgraphs/knowledge/config.ts'
import type { TelemetrySettings } from '../telemetry/open-telemetry.ts'
import { type Environment, trackReads } from './environment.ts'
import type { Role } from './roles.ts'
import { readPaths, VARIABLES, type Variables } from './variables.ts'

/** What every role reads from the environment. */
export interface Config {
  readonly host: string
  /** 0: any free port. Undefined: the default of the role. */
  readonly port: number | undefined
  readonly dataDirectory: string
  /** `KIS_SECRET`, or what is kept in the data folder, whose first start makes one. */
  readonly secret: Uint8Array
  readonly logLevel: string
  readonly telemetry: TelemetrySettings
  /** How long running requests may go on after SIGTERM before they are ended. */
  readonly drainMs: number
  /** How long the process goes on after SIGTERM as before, but for `/readyz`, until balancers have heard of it. */
  readonly drainDelayMs: number
  /** Base addresses of the other roles' replicas; each role has at least one. */
  readonly urls: Readonly<Record<'billing' | 'knowledge' | 'inference' | 'gateway', readonly string[]>>
  /** The settings of each part. */
  readonly settings: Settings
  /** Whether browsers get the portal (`KIS_PORTAL`, `on` unless set to `off`). */
  readonly portal: boolean
  /** The address at which people reach the service (`KIS_PUBLIC_URL`). */
  readonly publicUrl: string | null
  /** A sentence for each variable that looks like one of ours but is unknown. */
  readonly ignored: readonly string[]
}

export interface Settings {
  readonly catalog: CatalogFile
  readonly billing: BillingSettings
  readonly inference: InferenceConfig
  readonly knowledge: KnowledgeConfig
  readonly gateway: GatewayConfig
  /** How people sign in (`KIS_OIDC_ISSUER`); null: only by a key. */
  readonly oidc: OidcSettings | null
  readonly rest: RestConfig
}

/**
 * Reads the environment, the catalog, the manifest of trusted documents and the secret, each once. `role` is the one to
 * start. A single role needs `KIS_SECRET`, because all processes must have the same.
 * @throws {ConfigError} something is wrong; it lists every problem, and the ignored variables
 */
export function readConfig(environment: NodeJS.ProcessEnv, role: Role | 'all' = 'all'): Config {
  const { env, problems: ofFiles, ignored } = trackReads(environment)
  const variables = VARIABLES.safeParse(env)
  const problems = (variables.error?.issues ?? []).map(({ path, message }) => `${String(path[0])} ${message}`)
  const read = <T>(from: () => T): T | undefined => {
    try {
      return from()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.problems)
      return undefined
    }
  }
  const { KIS_DATA_DIR, KIS_CATALOG } = readPaths(env)
  const secret = read(() => readSecret(env, role, KIS_DATA_DIR))
  const catalog = read(() => readCatalogFile(KIS_CATALOG, env))
  const trustedDocuments = read(() => readTrustedDocuments(env.KIS_TRUSTED_DOCUMENTS))
  problems.push(...ofFiles())
  if (problems.length > 0 || !variables.success || !secret || !catalog || !trustedDocuments)
    throw new ConfigError([...new Set(problems), ...ignored()])
  const values = variables.data
  const origins = new Origins(values.KIS_CORS_ORIGINS)
  const oauth = oauthSettings(values)
  return {
    host: values.HOST,
    port: values.PORT,
    dataDirectory: values.KIS_DATA_DIR,
    secret,
    logLevel: values.KIS_LOG_LEVEL,
    telemetry: telemetrySettings(values),
    drainMs: values.KIS_DRAIN_MS,
    drainDelayMs: values.KIS_DRAIN_DELAY_MS,
    urls: {
      billing: values.KIS_BILLING_URL,
      knowledge: values.KIS_KNOWLEDGE_URL,
      inference: values.KIS_INFERENCE_URL,
      gateway: values.KIS_GATEWAY_URL,
    },
    settings: {
      catalog,
      billing: billingSettings(values),
      inference: inferenceConfig(values, catalog),
      knowledge: knowledgeConfig(values, catalog),
      gateway: gatewayConfig(
        {
          introspection: values.KIS_INTROSPECTION === 'on',
          trustedDocuments,
          trustedDocumentsOnly: values.KIS_TRUSTED_DOCUMENTS_ONLY === 'on',
          origins,
          oauth,
        },
        catalog.plans,
      ),
      oidc: oidcSettings(values),
      rest: restConfig(largestFileBytes(catalog), { mcpHosts: new Set(values.KIS_MCP_HOSTS), origins, oauth }),
    },
    portal: values.KIS_PORTAL === 'on',
    publicUrl: values.KIS_PUBLIC_URL ?? null,
    ignored: ignored(),
  }
}

function readSecret({ KIS_SECRET: text }: Environment, role: Role | 'all', dataDirectory: string): Uint8Array {
  if (text !== undefined) return parseSecret(text)
  if (role === 'all') return loadOrCreateSecret(dataDirectory)
  throw new ConfigError(['KIS_SECRET is missing: every process of the service needs the same, of at least 32 characters'])
}

function oauthSettings({ KIS_OAUTH_ISSUER, KIS_OAUTH_RESOURCE, KIS_OAUTH_KEY_CLAIM }: Variables): OAuthSettings | null {
  if (KIS_OAUTH_ISSUER === undefined || KIS_OAUTH_RESOURCE === undefined) return null
  return { issuer: KIS_OAUTH_ISSUER, resource: KIS_OAUTH_RESOURCE, keyClaim: KIS_OAUTH_KEY_CLAIM }
}

function oidcSettings(values: Variables): OidcSettings | null {
  const { KIS_OIDC_ISSUER: issuer, KIS_OIDC_CLIENT_ID: clientId, KIS_PUBLIC_URL: publicUrl } = values
  if (issuer === undefined || clientId === undefined || publicUrl === undefined) return null
  return {
    issuer,
    clientId,
    clientSecret: values.KIS_OIDC_CLIENT_SECRET ?? null,
    name: values.KIS_OIDC_NAME ?? new URL(issuer).host,
    scopes: values.KIS_OIDC_SCOPES,
    organizationClaim: values.KIS_OIDC_ORGANIZATION_CLAIM ?? null,
    roleClaim: values.KIS_OIDC_ROLE_CLAIM ?? null,
    roles: values.KIS_OIDC_ROLES,
    publicUrl,
  }
}

function telemetrySettings(values: Variables): TelemetrySettings {
  return {
    // Lines that are not written need not be made.
    hasAccessLog: values.KIS_ACCESS_LOG === 'on' && ['debug', 'info'].includes(values.KIS_LOG_LEVEL),
    slowMs: values.KIS_SLOW_MS || null,
    traces:
      values.OTEL_EXPORTER_OTLP_ENDPOINT === undefined
        ? null
        : {
            endpoint: values.OTEL_EXPORTER_OTLP_ENDPOINT,
            ratio: values.OTEL_TRACES_SAMPLER_ARG,
            serviceName: values.OTEL_SERVICE_NAME ?? null,
          },
    metrics:
      values.KIS_METRICS_PORT === undefined
        ? null
        : { host: values.KIS_METRICS_HOST, port: values.KIS_METRICS_PORT, byOrganization: values.KIS_METRICS_ORGANIZATIONS === 'on' },
  }
}

function billingSettings(values: Variables): BillingSettings {
  return {
    dataDirectory: values.KIS_DATA_DIR,
    mongodb: toDatabase(values, 'billing'),
    bootstrapApiKey: values.KIS_BOOTSTRAP_API_KEY ?? null,
    bootstrapCreditNanoUsd: values.KIS_BOOTSTRAP_CREDIT_USD,
    egressAllowed: values.KIS_EGRESS_ALLOW,
    publicUrl: values.KIS_PUBLIC_URL ?? null,
    retryBackoffMs: values.KIS_RETRY_BACKOFF_MS,
  }
}

function inferenceConfig(values: Variables, catalog: CatalogFile): InferenceConfig {
  return {
    catalog,
    modelDirectory: new URL('../../models/e5-small-ar-en', import.meta.url),
    egressAllowed: values.KIS_EGRESS_ALLOW,
    localMcpServers: values.KIS_LOCAL_MCP_SERVERS,
    dataDirectory: values.KIS_DATA_DIR,
    mongodb: toDatabase(values, 'inference'),
  }
}

function knowledgeConfig(values: Variables, { plans }: CatalogFile): KnowledgeConfig {
  return {
    dataDirectory: values.KIS_DATA_DIR,
    retryBackoffMs: values.KIS_RETRY_BACKOFF_MS,
    egressAllowed: values.KIS_EGRESS_ALLOW,
    ingestionWeights: new Map(plans.map(({ code, ingestionWeight }) => [code, ingestionWeight])),
    mongodb: toDatabase(values, 'knowledge'),
    elasticsearch: elasticsearchSettings(values),
  }
}

/** Null: the index is in the data folder. */
export function elasticsearchSettings(values: Variables): ElasticsearchConfig | null {
  const url = values.KIS_ELASTICSEARCH_URL
  if (url === undefined) return null
  return {
    url,
    apiKey: values.KIS_ELASTICSEARCH_API_KEY,
    prefix: values.KIS_ELASTICSEARCH_PREFIX,
    size: { shards: values.KIS_ELASTICSEARCH_SHARDS, replicas: values.KIS_ELASTICSEARCH_REPLICAS },
  }
}

/** Each subgraph has its own database. Null: its documents are in the data folder. */
export function toDatabase({ KIS_MONGODB_URL: server }: Variables, subgraph: string) {
  return server ? { url: server.url, database: `${server.name}_${subgraph}` } : null
}

/** The largest file that any plan allows. */
function largestFileBytes({ plans }: CatalogFile): number {
  return Math.max(...plans.map(({ maxFileBytes }) => maxFileBytes))
}
