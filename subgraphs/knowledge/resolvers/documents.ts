import type { EventRecord } from '../../common/events/event-log.ts'
import type { DocumentRecord } from '../domain/records.ts'
import { getCollection } from '../use-cases/documents/collections.ts'
import { findDocumentAt, followDocuments } from '../use-cases/documents/document-events.ts'
import { createDocument, deleteDocument, findDocument, retryDocument } from '../use-cases/documents/documents.ts'
import { listChunks } from '../use-cases/documents/list-chunks.ts'
import { createDocuments, deleteDocuments, type Outcome, retryDocuments } from '../use-cases/documents/many-documents.ts'
import { readText } from '../use-cases/documents/read-text.ts'
import { updateDocument } from '../use-cases/documents/update-document.ts'
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
  updateDocument: async (_parent, { input }, { deps, ...context }) => ({
    document: await updateDocument(deps, context, input),
    created: false,
  }),
  async createDocuments(_parent, { input }, { deps, ...context }) {
    return toResults(await createDocuments(deps, context, input), (value) => value)
  },
  async retryDocuments(_parent, { input }, { deps, ...context }) {
    return toResults(await retryDocuments(deps, context, input), (document) => ({ document, created: false }))
  },
  async deleteDocuments(_parent, { input }, { deps, ...context }) {
    return toResults(await deleteDocuments(deps, context, input), () => ({ document: null, created: false }))
  },
}

function toResults<T>(
  outcomes: readonly Outcome<T>[],
  toPayload: (value: T) => { readonly document: DocumentRecord | null; readonly created: boolean },
) {
  const results = outcomes.map(({ id, value, error }) => ({
    id,
    ...(value === null ? { document: null, created: false } : toPayload(value)),
    error: error && { code: error.code, message: error.message, param: error.param },
  }))
  return { results }
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
  name: ({ fileName }) => fileName,
  text: (document, { length, ...range }, { deps }) => readText(deps, document, { ...range, length: length ?? 65_536 }),
  async chunks(document, args, { deps }) {
    const { edges, pageInfo } = await listChunks(deps, document, args)
    return { edges: edges.map(({ node, cursor }) => ({ node: { ...node, record: document }, cursor })), pageInfo }
  },
  collection: ({ organizationId, collectionId }, _args, { deps }) => getCollection(deps, organizationId, collectionId),
  file: ({ organizationId, fileId }, _args, { deps }) => getFile(deps, organizationId, fileId),
  parent: ({ parentId }, _args, { deps, ...context }) => (parentId ? findDocument(deps, context, parentId) : null),
  __resolveReference: ({ id }, { deps, ...context }) => findDocument(deps, context, id),
}
