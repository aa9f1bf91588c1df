import type { EventRecord } from '../../common/events/event-log.ts'
import { requireScope } from '../../common/identity/principal.ts'
import { mapNodes } from '../../common/link/connection.ts'
import type { DocumentRecord, DocumentVersion, Replacement } from '../domain/records.ts'
import { findDocumentAt, followDocuments } from '../use-cases/documents/document-events.ts'
import {
  type AttachedDocument,
  createDocument,
  deleteDocument,
  findDocument,
  listAllDocuments,
  retryDocument,
} from '../use-cases/documents/documents.ts'
import { listChunks } from '../use-cases/documents/list-chunks.ts'
import { createDocuments, deleteDocuments, type Outcome, retryDocuments } from '../use-cases/documents/many-documents.ts'
import { readText } from '../use-cases/documents/read-text.ts'
import { findSimilar } from '../use-cases/documents/similar-documents.ts'
import { updateDocument } from '../use-cases/documents/update-document.ts'
import type { Context } from './context.ts'
import type {
  DocumentReplacementResolvers,
  DocumentResolvers,
  DocumentVersionResolvers,
  MutationResolvers,
  QueryResolvers,
  SubscriptionResolvers,
} from './generated.ts'

interface Owned {
  readonly organizationId: string
}
/** A replacement or a version, with the organization of its document. */
export type ReplacementOf = Replacement & Owned
export type VersionOf = DocumentVersion & Owned

export const documentQueries: QueryResolvers = {
  document: (_parent, { id }, { deps, ...context }) => findDocument(deps, context, id),
  documents: (_parent, args, { deps, ...context }) => listAllDocuments(deps, context, args),
}

export const documentMutations: MutationResolvers = {
  createDocument: async (_parent, { input }, { deps, ...context }) => toPayload(await createDocument(deps, context, input)),
  async retryDocument(_parent, { id }, { deps, ...context }) {
    return unchanged(await retryDocument(deps, context, id))
  },
  async deleteDocument(_parent, { id }, { deps, ...context }) {
    await deleteDocument(deps, context, id)
    return { id }
  },
  updateDocument: async (_parent, { input }, { deps, ...context }) => unchanged(await updateDocument(deps, context, input)),
  async createDocuments(_parent, { input }, { deps, ...context }) {
    return toResults(await createDocuments(deps, context, input), toPayload)
  },
  async retryDocuments(_parent, { input }, { deps, ...context }) {
    return toResults(await retryDocuments(deps, context, input), unchanged)
  },
  async deleteDocuments(_parent, { input }, { deps, ...context }) {
    return toResults(await deleteDocuments(deps, context, input), () => NO_DOCUMENT)
  },
}

const NO_DOCUMENT = { document: null, created: false, outcome: null }

function toPayload({ document, outcome }: AttachedDocument) {
  return { document, outcome, created: outcome === 'created' }
}

function unchanged(document: DocumentRecord) {
  return toPayload({ document, outcome: 'unchanged' })
}

function toResults<T>(outcomes: readonly Outcome<T>[], toResult: (value: T) => ReturnType<typeof toPayload> | typeof NO_DOCUMENT) {
  const results = outcomes.map(({ id, value, error }) => ({
    id,
    ...(value === null ? NO_DOCUMENT : toResult(value)),
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
  externalId: ({ externalId }) => externalId ?? null,
  transcriptionModel: ({ transcriptionModel }) => (transcriptionModel ? { id: transcriptionModel } : null),
  version: ({ version }) => version ?? 1,
  replacement: ({ organizationId, replacement }) => (replacement ? { ...replacement, organizationId } : null),
  versions: ({ organizationId, versions }) => (versions ?? []).toReversed().map((version) => ({ ...version, organizationId })),
  similarDocuments: (document, { first }, { deps }) => findSimilar(deps, document, first ?? 10),
  text: (document, { length, ...range }, { deps }) => readText(deps, document, { ...range, length: length ?? 65_536 }),
  async chunks(document, args, { deps }) {
    return mapNodes(await listChunks(deps, document, args), (chunk) => ({ ...chunk, record: document }))
  },
  collection: ({ organizationId, collectionId }, _args, { records }) => records.getCollection(organizationId, collectionId),
  file: ({ organizationId, fileId }, _args, { records }) => records.getFile(organizationId, fileId),
  parent: ({ organizationId, parentId }, _args, { records }) => (parentId ? records.findDocument(organizationId, parentId) : null),
  __resolveReference: ({ id }, { caller, records }) => records.findDocument(requireScope(caller, 'knowledge:read').organizationId, id),
}

export const ReplacementFields: DocumentReplacementResolvers = {
  name: ({ fileName }) => fileName,
  file: ({ organizationId, fileId }, _args, { records }) => records.findFile(organizationId, fileId),
}

export const VersionFields: DocumentVersionResolvers = {
  name: ({ fileName }) => fileName,
  file: ({ organizationId, fileId }, _args, { records }) => records.findFile(organizationId, fileId),
}
