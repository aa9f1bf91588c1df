import { billingFiles } from '../../subgraphs/billing/config.ts'
import type { FolderFile } from '../../subgraphs/common/adapters/sqlite/data-folder.ts'
import { DOCUMENT_FILE } from '../../subgraphs/common/adapters/sqlite/documents/tables.ts'
import { inferenceFiles } from '../../subgraphs/inference/config.ts'
import { BLOB_FILE } from '../../subgraphs/knowledge/adapters/sqlite/blob-file.ts'
import { INDEX_VERSION } from '../../subgraphs/knowledge/adapters/sqlite/tables/chunk-index-schema.ts'
import { knowledgeFiles } from '../../subgraphs/knowledge/config.ts'

/** Returns the SQLite files of an embedded installation in a data folder. */
export function dataFiles(dataDirectory: string): Readonly<Record<'billing' | 'inference' | 'knowledge' | 'blobs' | 'index', FolderFile>> {
  const ofKnowledge = knowledgeFiles(dataDirectory)
  const documents = (path: string): FolderFile => ({ path, schemaVersion: DOCUMENT_FILE.schemaVersion, isDerived: false })
  return {
    billing: documents(billingFiles(dataDirectory).documents),
    inference: documents(inferenceFiles(dataDirectory).documents),
    knowledge: documents(ofKnowledge.documents),
    blobs: { path: ofKnowledge.blobs, schemaVersion: BLOB_FILE.schemaVersion, isDerived: false },
    index: { path: ofKnowledge.index, schemaVersion: INDEX_VERSION, isDerived: true },
  }
}
