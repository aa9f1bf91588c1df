/** The exports of knowledge that the export and import of an organization use, over open stores. */

export type { BlobStore } from './ports/blob-store.ts'
export type { ChunkIndex } from './ports/chunk-index.ts'
export { type KnowledgeStore, knowledgeStore } from './ports/knowledge-store.ts'
export { fillIndex } from './use-cases/chunk-index/fill-index.ts'
export { exportKnowledge } from './use-cases/portable/export-knowledge.ts'
export { countImported, knowledgeTakers } from './use-cases/portable/import-knowledge.ts'
