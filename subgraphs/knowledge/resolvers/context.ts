import type { ResolverContext } from '../../common/link/subgraph.ts'
import type { DocumentRecord } from '../domain/records.ts'
import type { StoredChunk } from '../ports/chunk-index.ts'
import type { Deps } from '../use-cases/deps.ts'

export type Context = ResolverContext<Deps>
export type ChunkOfDocument = StoredChunk & { readonly record: DocumentRecord }
export interface Reference {
  readonly id: string
}
