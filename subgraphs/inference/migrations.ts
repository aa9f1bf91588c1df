import { collectKinds } from '../common/adapters/documents/kinds.ts'
import { openCollections } from './use-cases/tables.ts'

/**
 * The kinds of inference's documents, with the migrations of each collection. CONTRIBUTING.md explains how to add one.
 */
export const INFERENCE_KINDS = collectKinds(openCollections, {})
