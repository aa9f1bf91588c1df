import { requireScope } from '../../common/identity/principal.ts'
import {
  createCollection,
  deleteCollection,
  findCollection,
  listCollections,
  updateCollection,
} from '../use-cases/documents/collections.ts'
import { countByStatus, countChunks, countDocuments, listDocuments } from '../use-cases/documents/documents.ts'
import { findWatch } from '../use-cases/evaluation/evaluation-watches.ts'
import { listEvaluations } from '../use-cases/evaluation/evaluations.ts'
import { listGoldQuestions } from '../use-cases/evaluation/gold-questions.ts'
import { listReembeddings } from '../use-cases/reembedding/reembeddings.ts'
import { listSources } from '../use-cases/web/sources.ts'
import type { CollectionResolvers, MutationResolvers, QueryResolvers } from './generated.ts'

export const collectionQueries: QueryResolvers = {
  collection: (_parent, { id }, { deps, ...context }) => findCollection(deps, context, { _id: id }),
  collectionByCode: (_parent, { code }, { deps, ...context }) => findCollection(deps, context, { code }),
  collections: (_parent, args, { deps, sifting, ...context }) => listCollections(deps, context, args, sifting),
}

export const collectionMutations: MutationResolvers = {
  async createCollection(_parent, { input }, { deps, ...context }) {
    return { collection: await createCollection(deps, context, input) }
  },
  async updateCollection(_parent, { input }, { deps, ...context }) {
    return { collection: await updateCollection(deps, context, input) }
  },
  async deleteCollection(_parent, { id, detach }, { deps, ...context }) {
    await deleteCollection(deps, context, id, detach)
    return { id }
  },
}

export const CollectionFields: CollectionResolvers = {
  id: ({ _id }) => _id,
  embeddingModel: ({ embeddingModel }) => ({ id: embeddingModel }),
  rerankModel: ({ rerankModel }) => (rerankModel ? { id: rerankModel } : null),
  transcriptionModel: ({ transcriptionModel }) => (transcriptionModel ? { id: transcriptionModel } : null),
  organization: ({ organizationId }) => ({ id: organizationId }),
  sources: (collection, args, { deps }) => listSources(deps, collection, args),
  ocr: ({ ocr }) => ocr ?? 'off',
  documents: (collection, args, { deps, sifting }) => listDocuments(deps, collection, args, sifting),
  documentCount: (collection, _args, { deps }) => countDocuments(deps, collection),
  documentCounts: (collection, _args, { deps }) => countByStatus(deps, collection),
  contents: (collection, _args, { deps }) => deps.digests.of(collection),
  chunkCount: (collection, _args, { deps }) => countChunks(deps, collection),
  goldQuestions: (collection, args, { deps }) => listGoldQuestions(deps, collection, args),
  evaluations: (collection, args, { deps }) => listEvaluations(deps, collection, args),
  evaluationWatch: (collection, _args, { deps }) => findWatch(deps, collection),
  reembeddings: (collection, args, { deps }) => listReembeddings(deps, collection, args),
  __resolveReference: ({ id }, { caller, records }) => records.findCollection(requireScope(caller, 'knowledge:read').organizationId, id),
}
