import { CollectionFields, collectionMutations, collectionQueries } from './collections.ts'
import { DocumentFields, documentMutations, documentQueries, documentSubscriptions } from './documents.ts'
import { EvaluationFields, evaluationMutations, evaluationQueries, GoldQuestionFields } from './evaluations.ts'
import { FileFields, fileMutations, fileQueries } from './files.ts'
import type { Resolvers } from './generated.ts'
import { OrganizationFields } from './organizations.ts'
import { ChunkFields, searchQueries } from './search.ts'
import { UploadFields, uploadMutations, uploadQueries } from './uploads.ts'
import { IndexFindingFields, verifyMutations, verifyQueries } from './verify.ts'

export const resolvers: Resolvers = {
  Query: {
    ...collectionQueries,
    ...fileQueries,
    ...documentQueries,
    ...uploadQueries,
    ...searchQueries,
    ...evaluationQueries,
    ...verifyQueries,
  },
  Mutation: {
    ...collectionMutations,
    ...fileMutations,
    ...uploadMutations,
    ...documentMutations,
    ...evaluationMutations,
    ...verifyMutations,
  },
  Subscription: documentSubscriptions,
  Chunk: ChunkFields,
  Collection: CollectionFields,
  Document: DocumentFields,
  Evaluation: EvaluationFields,
  File: FileFields,
  GoldQuestion: GoldQuestionFields,
  IndexFinding: IndexFindingFields,
  Organization: OrganizationFields,
  Upload: UploadFields,
}
