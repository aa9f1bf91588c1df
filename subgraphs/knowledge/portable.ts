import type { BlobStore } from './ports/blob-store.ts'
import type { ChunkIndex } from './ports/chunk-index.ts'
import { type KnowledgeStore, knowledgeStore } from './ports/knowledge-store.ts'
import { fillIndex } from './use-cases/chunk-index/fill-index.ts'
import { exportKnowledge } from './use-cases/portable/export-knowledge.ts'
import { countImported, knowledgeTakers } from './use-cases/portable/import-knowledge.ts'

/** What an export and an import of an organization need of knowledge, over open stores. */

export { type BlobStore, type ChunkIndex, countImported, exportKnowledge, fillIndex, type KnowledgeStore, knowledgeStore, knowledgeTakers }
