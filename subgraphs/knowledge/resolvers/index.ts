import { CollectionFields, collectionMutations, collectionQueries } from './collections.ts'
import { DocumentFields, documentMutations, documentQueries, documentSubscriptions, ReplacementFields, VersionFields } from './documents.ts'
import { FileFields, fileMutations, fileQueries } from './files.ts'
import type { Resolvers } from './generated.ts'
import { OrganizationFields } from './organizations.ts'
import { ChunkFields, searchQueries } from './search.ts'
import { IndexFindingFields, verifyMutations, verifyQueries } from './verify.ts'

export const resolvers: Resolvers = {
  Query: { ...collectionQueries, ...fileQueries, ...documentQueries, ...searchQueries, ...verifyQueries },
  Mutation: { ...collectionMutations, ...fileMutations, ...documentMutations, ...verifyMutations },
  Subscription: documentSubscriptions,
  Chunk: ChunkFields,
  Collection: CollectionFields,
  Document: DocumentFields,
  DocumentReplacement: ReplacementFields,
  DocumentVersion: VersionFields,
  File: FileFields,
  IndexFinding: IndexFindingFields,
  Organization: OrganizationFields,
}
