import { collectKinds } from '../common/adapters/documents/kinds.ts'
import { knowledgeStore } from './ports/knowledge-store.ts'

/** Knowledge's document kinds with the migrations of each collection. CONTRIBUTING.md explains how to add one. */
export const KNOWLEDGE_KINDS = collectKinds(knowledgeStore, {})
