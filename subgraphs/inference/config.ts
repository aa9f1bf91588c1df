import { join } from 'node:path'
import type { CatalogFile } from '../common/catalog/catalog-file.ts'
import type { MongoDatabase } from '../common/documents/mongodb-url.ts'

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

export const inferenceFiles = (dataDirectory: string) => ({ documents: join(dataDirectory, 'inference.sqlite') })
