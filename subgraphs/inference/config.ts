import { join, resolve } from 'node:path'
import { type CatalogFile, readCatalogFile } from '../common/catalog/catalog-file.ts'
import { type MongoDatabase, mongoDatabaseOf } from '../common/documents/mongodb-url.ts'
import { parseEgressAllow } from '../common/egress/egress-address.ts'
import { ConfigError } from '../common/process/config-error.ts'

export interface InferenceConfig {
  readonly catalog: Pick<CatalogFile, 'engines' | 'models'>
  /** Folder of the embedded embedding model. */
  readonly modelDirectory: URL
  /** `host:port`s that are asked for images, and as MCP servers, although they are not public. */
  readonly egressAllowed: ReadonlySet<string>
  /** `host:port`s of MCP servers in the operator's own hands, which organizations may use whose data must not leave them. */
  readonly localMcpServers: ReadonlySet<string>
  /** Folder of the SQLite file. */
  readonly dataDirectory: string
  /** Where the documents are instead, or null. */
  readonly mongodb: MongoDatabase | null
}

/** @throws {CatalogError} with every problem of the catalog at once. @throws {ConfigError} names the variables that are wrong. */
export function readInferenceConfig(env: Readonly<Record<string, string | undefined>>): InferenceConfig {
  const problems: string[] = []
  const mongodb = mongoDatabaseOf(env.KIS_MONGODB_URL, 'inference', problems)
  const egressAllowed = parseEgressAllow(env.KIS_EGRESS_ALLOW, problems)
  const localMcpServers = parseEgressAllow(env.KIS_LOCAL_MCP_SERVERS, problems, 'KIS_LOCAL_MCP_SERVERS')
  if (problems.length > 0) throw new ConfigError(problems)
  return {
    egressAllowed,
    localMcpServers,
    catalog: readCatalogFile(resolve(env.KIS_CATALOG || 'catalog.yaml'), env),
    modelDirectory: new URL('../../models/e5-small-ar-en/', import.meta.url),
    dataDirectory: env.KIS_DATA_DIR || './data',
    mongodb,
  }
}

export const inferenceFiles = (dataDirectory: string) => ({ documents: join(dataDirectory, 'inference.sqlite') })
