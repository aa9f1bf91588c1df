import { completeUpload } from '../use-cases/uploads/complete-upload.ts'
import { appendToUpload, cancelUpload, createUpload, findFileOf, findUpload } from '../use-cases/uploads/uploads.ts'
import type { MutationResolvers, QueryResolvers, UploadResolvers } from './generated.ts'

export const uploadQueries: QueryResolvers = {
  upload: (_parent, { id }, { deps, ...context }) => findUpload(deps, context, id),
}

export const uploadMutations: MutationResolvers = {
  async createUpload(_parent, { input }, { deps, ...context }) {
    return { upload: await createUpload(deps, context, input) }
  },
  async appendToUpload(_parent, { input }, { deps, ...context }) {
    return { upload: await appendToUpload(deps, context, input) }
  },
  async completeUpload(_parent, { input }, { deps, ...context }) {
    return { upload: await completeUpload(deps, context, input.id) }
  },
  async cancelUpload(_parent, { id }, { deps, ...context }) {
    return { upload: await cancelUpload(deps, context, id) }
  },
}

export const UploadFields: UploadResolvers = {
  id: ({ _id }) => _id,
  file: (upload, _args, { deps }) => findFileOf(deps, upload),
  __resolveReference: ({ id }, { deps, ...context }) => findUpload(deps, context, id),
}
