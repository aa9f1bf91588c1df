import { join } from 'node:path'
import type { MongoDatabase } from '../common/documents/mongodb-url.ts'
import type { CatalogFile } from './domain/catalog/catalog-file.ts'

/** The settings of the inference subgraph. */
export interface InferenceConfig {
  readonly catalog: Pick<CatalogFile, 'engines' | 'models'>
  /** Folder of the embedded embedding model. */
  readonly modelDirectory: URL
  /** Entries `host:port` that are not public, but from which images may be fetched and which may be MCP servers. */
  readonly egressAllowed: ReadonlySet<string>
  /**
   * Entries `host:port` of MCP servers that the operator runs. Organizations may use them even if a policy forbids
   * their data to leave the installation.
   */
  readonly localMcpServers: ReadonlySet<string>
  /** Folder of the SQLite file. */
  readonly dataDirectory: string
  /** The MongoDB database of the documents. Null: the SQLite file stores them. */
  readonly mongodb: MongoDatabase | null
}

export const inferenceFiles = (dataDirectory: string) => ({ documents: join(dataDirectory, 'inference.sqlite') })
