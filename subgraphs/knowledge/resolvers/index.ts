import { verifyFiles } from '../../common/documents/verify-files.ts'
import { NotFound } from '../../common/errors.ts'
import type { EventRecord } from '../../common/events/event-log.ts'
import { requirePrincipal, requireScope } from '../../common/identity/principal.ts'
import { connectionOf, pageOf } from '../../common/link/connection.ts'
import { partsOfChunkId } from '../domain/records.ts'
import { rebuildIndex } from '../use-cases/chunk-index/rebuild-index.ts'
import { usageOf } from '../use-cases/count-usage.ts'
import { createCollection, deleteCollection, getCollection, updateCollection } from '../use-cases/documents/collections.ts'
import { documentOf, followDocuments } from '../use-cases/documents/document-events.ts'
import { createDocument, deleteDocument, getDocument, retryDocument } from '../use-cases/documents/documents.ts'
import { deleteFile, getFile, readFilePiece, uploadFile } from '../use-cases/files/files.ts'
import { searchCollection } from '../use-cases/search/search-collection.ts'
import { verifyBlobs } from '../use-cases/verify/verify-blobs.ts'
import { verifyIndex } from '../use-cases/verify/verify-index.ts'
import type { Context } from './context.ts'
import type { Resolvers, SortOrder } from './generated.ts'

/** A page of records by id, which is by the time of their making. */
function idRange({ order }: { readonly order: SortOrder }, after: string | null) {
  const descending = (order ?? 'desc') === 'desc'
  return {
    filter: after === null ? {} : { _id: descending ? { $lt: after } : { $gt: after } },
    sort: { _id: descending ? (-1 as const) : (1 as const) },
  }
}

/** An absent entity is null where the contract has it so; another organization's looks absent. */
async function orNull<T>(promise: Promise<T>): Promise<T | null> {
  return promise.catch((error) => {
    if (error instanceof NotFound) return null
    throw error
  })
}

export const resolvers: Resolvers = {
  Query: {
    collection: (_, { id }, { deps, caller }) =>
      orNull(getCollection(deps.store, requireScope(caller, 'knowledge:read').organizationId, id)),
    async collectionByCode(_, { code }, { deps, caller }) {
      const { organizationId } = requireScope(caller, 'knowledge:read')
      return deps.store.collections.findOne({ organizationId, code, listed: true })
    },
    async collections(_, args, { deps, caller }) {
      const { organizationId } = requireScope(caller, 'knowledge:read')
      const page = pageOf(args, /^col_/)
      const { filter, sort } = idRange(args, page.after)
      return connectionOf(
        await deps.store.collections.find({ organizationId, listed: true, ...filter }, { sort, limit: page.limit }),
        page,
        ({ _id }) => _id,
      )
    },
    file: (_, { id }, { deps, caller }) => orNull(getFile(deps.store, requireScope(caller, 'knowledge:read').organizationId, id)),
    async files(_, args, { deps, caller }) {
      const { organizationId } = requireScope(caller, 'knowledge:read')
      const page = pageOf(args, /^file_/)
      const { filter, sort } = idRange(args, page.after)
      return connectionOf(await deps.store.files.find({ organizationId, ...filter }, { sort, limit: page.limit }), page, ({ _id }) => _id)
    },
    document: (_, { id }, { deps, caller }) => orNull(getDocument(deps.store, requireScope(caller, 'knowledge:read').organizationId, id)),
    async searchCollection(_, { input, runHoldId, step }, context) {
      const { limit, mode, filter = null, ...rest } = input
      const inRun = { ...context, ...(runHoldId && { runHoldId }), ...(step && { step }) }
      const { hits, cost } = await searchCollection(context.deps, inRun, {
        ...rest,
        filter,
        limit: limit ?? 10,
        mode: mode ?? 'hybrid',
      })
      return { hits: hits.map(({ chunk, document, ranked }) => ({ ...ranked, chunk: { ...chunk, record: document } })), cost }
    },
    async fileContent(_, args, context) {
      const { file, bytes } = await readFilePiece(context.deps, context, args)
      return { file, content: Buffer.from(bytes).toString('base64'), offset: args.offset, length: bytes.length }
    },
    verifyBlobs: (_, { after }, { deps, caller }) => verifyBlobs(deps, caller, after ?? null),
    verifyKnowledgeFiles: (_, { after }, { deps, caller }) => verifyFiles(deps.files, caller, after ?? null),
  },

  IndexFinding: {
    restored: ({ restored }) => restored === true,
  },

  Mutation: {
    createCollection: async (_, { input }, context) => ({
      collection: await createCollection(context.deps, context, input),
    }),
    updateCollection: async (_, { input }, context) => ({
      collection: await updateCollection(context.deps, context, input),
    }),
    async deleteCollection(_, { id }, context) {
      await deleteCollection(context.deps, context, id)
      return { id }
    },
    uploadFile: async (_, { input }, context) => ({
      file: await uploadFile(context.deps, context, input),
    }),
    async deleteFile(_, { id }, context) {
      await deleteFile(context.deps, context, id)
      return { id }
    },
    createDocument: (_, { input }, context) => createDocument(context.deps, context, input),
    retryDocument: async (_, { id }, context) => ({
      document: await retryDocument(context.deps, context, id),
      created: false,
    }),
    async deleteDocument(_, { id }, context) {
      await deleteDocument(context.deps, context, id)
      return { id }
    },
    rebuildIndex: (_, { after }, context) => rebuildIndex(context.deps, context, after ?? null),
    verifyIndex: (_, { input }, context) => verifyIndex(context.deps, context, input),
  },

  Subscription: {
    documentUpdated: {
      subscribe(_, { collectionId, after }, { deps, caller }) {
        const { organizationId } = requireScope(caller, 'knowledge:read')
        return followDocuments(deps.events, organizationId, collectionId ?? null, after ?? null)
      },
      resolve: async (event: EventRecord, _args: unknown, { deps }: Context) => ({
        document: await documentOf(deps, event),
        documentId: event.subject,
        at: event.at,
        cursor: String(event.sequence),
      }),
    },
  },

  Collection: {
    id: ({ _id }) => _id,
    embeddingModel: ({ embeddingModel }) => ({ id: embeddingModel }),
    organization: ({ organizationId }) => ({ id: organizationId }),
    async documents(collection, args, { deps }) {
      const page = pageOf(args, /^doc_/)
      const { filter, sort } = idRange(args, page.after)
      const status = args.status ? { status: args.status } : {}
      const documents = await deps.store.documents.find(
        { collectionId: collection._id, listed: true, ...status, ...filter },
        { sort, limit: page.limit },
      )
      return connectionOf(documents, page, ({ _id }) => _id)
    },
    documentCount: ({ _id }, _args, { deps }) => deps.store.documents.countDocuments({ collectionId: _id, listed: true }),
    contents: (collection, _args, { deps }) => deps.digests.of(collection),
    chunkCount: async ({ _id, organizationId }, _args, { deps }) => (await usageOf(deps.store, organizationId)).chunks[_id] ?? 0,
    __resolveReference: ({ id }, { deps, caller }) =>
      orNull(getCollection(deps.store, requireScope(caller, 'knowledge:read').organizationId, id)),
  },

  File: {
    id: ({ _id }) => _id,
    checksum: ({ sha256 }) => `sha256:${sha256}`,
    status: () => 'uploaded',
    __resolveReference: ({ id }, { deps, caller }) =>
      orNull(getFile(deps.store, requireScope(caller, 'knowledge:read').organizationId, id)),
  },

  Document: {
    id: ({ _id }) => _id,
    collection: ({ organizationId, collectionId }, _args, { deps }) => getCollection(deps.store, organizationId, collectionId),
    file: ({ organizationId, fileId }, _args, { deps }) => getFile(deps.store, organizationId, fileId),
    __resolveReference: ({ id }, { deps, caller }) =>
      orNull(getDocument(deps.store, requireScope(caller, 'knowledge:read').organizationId, id)),
  },

  Chunk: {
    id: ({ chunkId }) => chunkId,
    document: ({ record }) => record,
    file: ({ record }, _args, { deps }) => getFile(deps.store, record.organizationId, record.fileId),
    async __resolveReference({ id }, { deps, caller }) {
      const parts = partsOfChunkId(id)
      const record =
        parts && (await orNull(getDocument(deps.store, requireScope(caller, 'knowledge:read').organizationId, parts.documentId)))
      if (record?.status !== 'ready' || record.liveGeneration !== parts?.generation) return null
      const [chunk] = await deps.index.get(record.collectionId, [id])
      return chunk ? { ...chunk, record } : null
    },
  },

  Organization: {
    /** Of the caller's own organization: the limits are those of its principal. */
    async quota({ id }, _args, { deps, caller }) {
      const principal = requirePrincipal(caller)
      if (id !== principal.organizationId) return null
      const { storageBytes, vectors } = await usageOf(deps.store, id)
      const { plan } = principal
      return { storageBytes: { used: storageBytes, limit: plan.storageBytes }, vectors: { used: vectors, limit: plan.vectors } }
    },
    __resolveReference: ({ id }) => ({ id }),
  },
}
