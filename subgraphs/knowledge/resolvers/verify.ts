import { verifyFiles } from '../../common/documents/verify-files.ts'
import { partHealth } from '../../common/server/health.ts'
import { hasOldTerms } from '../use-cases/chunk-index/index-mark.ts'
import { rebuildIndex } from '../use-cases/chunk-index/rebuild-index.ts'
import { listIngestionQueues } from '../use-cases/jobs/ingestion-queues.ts'
import { verifyBlobs } from '../use-cases/verify/verify-blobs.ts'
import { verifyIndex } from '../use-cases/verify/verify-index.ts'
import type { IndexFindingResolvers, IndexVerificationResolvers, MutationResolvers, QueryResolvers } from './generated.ts'

export const verifyQueries: QueryResolvers = {
  verifyBlobs: (_parent, { after }, { deps, caller }) => verifyBlobs(deps, caller, after ?? null),
  verifyKnowledgeFiles: (_parent, { after }, { deps, caller }) => verifyFiles(deps.files, caller, after ?? null),
  knowledgeHealth: (_parent, _args, { problems, caller }) => partHealth(problems, caller),
  ingestionQueues: (_parent, { after }, { deps, caller }) => listIngestionQueues(deps, caller, after ?? ''),
}

export const verifyMutations: MutationResolvers = {
  rebuildIndex: (_parent, { after }, { deps, ...context }) => rebuildIndex(deps, context, after ?? null),
  verifyIndex: (_parent, { input }, { deps, ...context }) => verifyIndex(deps, context, input),
}

export const IndexFindingFields: IndexFindingResolvers = {
  restored: ({ restored }) => restored === true,
}

export const IndexVerificationFields: IndexVerificationResolvers = {
  needsRebuild: (_verification, _args, { deps }) => hasOldTerms(deps),
}
