import { collectKinds } from '../common/adapters/documents/kinds.ts'
import { knowledgeStore } from './ports/knowledge-store.ts'

/** The kinds of knowledge's documents, with the migrations of each collection. CONTRIBUTING.md says how to add one. */
export const KNOWLEDGE_KINDS = collectKinds(knowledgeStore, {})
