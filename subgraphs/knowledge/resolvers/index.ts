import { CollectionFields, collectionMutations, collectionQueries } from './collections.ts'
import { DocumentFields, documentMutations, documentQueries, documentSubscriptions, ReplacementFields, VersionFields } from './documents.ts'
import { EvaluationFields, evaluationMutations, evaluationQueries, GoldQuestionFields } from './evaluations.ts'
import { FileFields, fileMutations, fileQueries } from './files.ts'
import type { Resolvers } from './generated.ts'
import { OrganizationFields } from './organizations.ts'
import { ReembeddingFields, ReembeddingQuoteFields, reembeddingMutations, reembeddingQueries } from './reembeddings.ts'
import { ChunkFields, searchQueries } from './search.ts'
import { UploadFields, uploadMutations, uploadQueries } from './uploads.ts'
import { IndexFindingFields, verifyMutations, verifyQueries } from './verify.ts'

import { WebSourceFields, webSourceMutations, webSourceQueries } from './web-sources.ts'

export const resolvers: Resolvers = {
  Query: {
    ...collectionQueries,
    ...fileQueries,
    ...documentQueries,
    ...uploadQueries,
    ...webSourceQueries,
    ...searchQueries,
    ...evaluationQueries,
    ...reembeddingQueries,
    ...verifyQueries,
  },
  Mutation: {
    ...collectionMutations,
    ...fileMutations,
    ...uploadMutations,
    ...webSourceMutations,
    ...documentMutations,
    ...evaluationMutations,
    ...reembeddingMutations,
    ...verifyMutations,
  },
  Subscription: documentSubscriptions,
  Chunk: ChunkFields,
  Collection: CollectionFields,
  Document: DocumentFields,
  DocumentReplacement: ReplacementFields,
  DocumentVersion: VersionFields,
  Evaluation: EvaluationFields,
  File: FileFields,
  GoldQuestion: GoldQuestionFields,
  IndexFinding: IndexFindingFields,
  Organization: OrganizationFields,
  Reembedding: ReembeddingFields,
  ReembeddingQuote: ReembeddingQuoteFields,
  Upload: UploadFields,
  WebSource: WebSourceFields,
}
