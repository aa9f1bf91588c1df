import type { EventRecord } from '../../common/events/event-log.ts'
import { getCollection } from '../use-cases/documents/collections.ts'
import { findDocumentAt, followDocuments } from '../use-cases/documents/document-events.ts'
import { createDocument, deleteDocument, findDocument, retryDocument } from '../use-cases/documents/documents.ts'
import { getFile } from '../use-cases/files/files.ts'
import type { Context } from './context.ts'
import type { DocumentResolvers, MutationResolvers, QueryResolvers, SubscriptionResolvers } from './generated.ts'

export const documentQueries: QueryResolvers = {
  document: (_parent, { id }, { deps, ...context }) => findDocument(deps, context, id),
}

export const documentMutations: MutationResolvers = {
  createDocument: (_parent, { input }, { deps, ...context }) => createDocument(deps, context, input),
  async retryDocument(_parent, { id }, { deps, ...context }) {
    return { document: await retryDocument(deps, context, id), created: false }
  },
  async deleteDocument(_parent, { id }, { deps, ...context }) {
    await deleteDocument(deps, context, id)
    return { id }
  },
}

export const documentSubscriptions: SubscriptionResolvers = {
  documentUpdated: {
    subscribe: (_parent, { collectionId, after }, { deps, ...context }) =>
      followDocuments(deps, context, { collectionId: collectionId ?? null, after: after ?? null }),
    resolve: async (event: EventRecord, _args: unknown, { deps }: Context) => ({
      document: await findDocumentAt(deps, event),
      documentId: event.subject,
      at: event.at,
      cursor: String(event.sequence),
    }),
  },
}

export const DocumentFields: DocumentResolvers = {
  id: ({ _id }) => _id,
  collection: ({ organizationId, collectionId }, _args, { deps }) => getCollection(deps, organizationId, collectionId),
  file: ({ organizationId, fileId }, _args, { deps }) => getFile(deps, organizationId, fileId),
  __resolveReference: ({ id }, { deps, ...context }) => findDocument(deps, context, id),
}
