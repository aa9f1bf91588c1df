import { addSite, addWebDocument, deleteSource, findSource, refreshNow } from '../use-cases/web/sources.ts'
import type { MutationResolvers, QueryResolvers, WebSourceResolvers } from './generated.ts'

export const webSourceQueries: QueryResolvers = {
  webSource: (_parent, { id }, { deps, ...context }) => findSource(deps, context, id),
}

export const webSourceMutations: MutationResolvers = {
  async createWebDocument(_parent, { input }, { deps, ...context }) {
    const attached = await addWebDocument(deps, context, input)
    return { ...attached, created: attached.outcome === 'created' }
  },
  async addSite(_parent, { input }, { deps, ...context }) {
    return { sources: await addSite(deps, context, input) }
  },
  async refreshWebSource(_parent, { id }, { deps, ...context }) {
    return { source: await refreshNow(deps, context, id) }
  },
  async deleteWebSource(_parent, { id }, { deps, ...context }) {
    await deleteSource(deps, context, id)
    return { id }
  },
}

export const WebSourceFields: WebSourceResolvers = {
  id: ({ _id }) => _id,
  collection: ({ organizationId, collectionId }, _args, { records }) => records.getCollection(organizationId, collectionId),
  document: ({ organizationId, documentId }, _args, { records }) =>
    documentId === null ? null : records.findDocument(organizationId, documentId),
  errorReason: ({ error, errorReason }) => (error === null ? null : (errorReason ?? 'other')),
  __resolveReference: ({ id }, { deps, ...context }) => findSource(deps, context, id),
}
