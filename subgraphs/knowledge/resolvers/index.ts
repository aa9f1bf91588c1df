import { verifyFiles } from '../../common/documents/verify-files.ts'
import { NotFound } from '../../common/errors.ts'
import type { EventRecord } from '../../common/events/event-log.ts'
import { requirePrincipal, requireScope } from '../../common/identity/principal.ts'
import { connectionOf, type PageArguments, pageOf } from '../../common/link/connection.ts'
import type { ResolverContext, Resolvers } from '../../common/link/subgraph.ts'
import {
  type CollectionRecord,
  DOCUMENT_ERROR_CODES,
  type DocumentRecord,
  type DocumentStatus,
  type FileRecord,
  partsOfChunkId,
} from '../domain/records.ts'
import type { SearchMode } from '../domain/search/fuse.ts'
import type { StoredChunk } from '../ports/chunk-index.ts'
import { rebuildIndex } from '../use-cases/chunk-index/rebuild-index.ts'
import { usageOf } from '../use-cases/count-usage.ts'
import type { Deps } from '../use-cases/deps.ts'
import { createCollection, deleteCollection, getCollection, updateCollection } from '../use-cases/documents/collections.ts'
import { documentOf, followDocuments } from '../use-cases/documents/document-events.ts'
import { createDocument, deleteDocument, getDocument, retryDocument } from '../use-cases/documents/documents.ts'
import { deleteFile, getFile, readFilePiece, uploadFile } from '../use-cases/files/files.ts'
import { searchCollection } from '../use-cases/search/search-collection.ts'
import { BLOB_FINDING_KINDS, verifyBlobs } from '../use-cases/verify/verify-blobs.ts'
import { FINDING_KINDS, type IndexFinding, verifyIndex } from '../use-cases/verify/verify-index.ts'

type Context = ResolverContext<Deps>
type Order = 'asc' | 'desc'
type ListArguments = PageArguments & { readonly order?: Order | null }
interface SearchInput {
  readonly collectionId: string
  readonly query: string
  readonly limit: number | null
  readonly mode: SearchMode | null
  readonly filter?: unknown
}

interface SearchArguments {
  readonly input: SearchInput
  readonly runHoldId?: string | null
  readonly step?: string | null
}
type Chunk = StoredChunk & { readonly record: DocumentRecord }

/** `{ READY: 'ready' }`: enum values are lower case inside. */
const enumOf = <T extends string>(values: readonly T[]) => Object.fromEntries(values.map((value) => [value.toUpperCase(), value]))

/** A page of records by id, which is by the time of their making. */
function idRange({ order }: ListArguments, after: string | null) {
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

export const resolvers: Resolvers<Deps> = {
  SortOrder: { ASC: 'asc', DESC: 'desc' },
  FileStatus: { UPLOADED: 'uploaded' },
  DocumentStatus: enumOf(['queued', 'processing', 'ready', 'failed']),
  IngestionStage: enumOf(['parsing', 'chunking', 'embedding', 'indexing']),
  DocumentErrorCode: enumOf(DOCUMENT_ERROR_CODES),
  SearchMode: enumOf(['hybrid', 'vector', 'lexical']),
  BlobFindingKind: enumOf(BLOB_FINDING_KINDS),
  IndexFindingKind: enumOf(FINDING_KINDS),

  Query: {
    collection: (_: unknown, { id }: { id: string }, { deps, caller }: Context) =>
      orNull(getCollection(deps.store, requireScope(caller, 'knowledge:read').organizationId, id)),
    async collectionByCode(_: unknown, { code }: { code: string }, { deps, caller }: Context) {
      const { organizationId } = requireScope(caller, 'knowledge:read')
      return deps.store.collections.findOne({ organizationId, code, listed: true })
    },
    async collections(_: unknown, args: ListArguments, { deps, caller }: Context) {
      const { organizationId } = requireScope(caller, 'knowledge:read')
      const page = pageOf(args, /^col_/)
      const { filter, sort } = idRange(args, page.after)
      return connectionOf(
        await deps.store.collections.find({ organizationId, listed: true, ...filter }, { sort, limit: page.limit }),
        page,
        ({ _id }) => _id,
      )
    },
    file: (_: unknown, { id }: { id: string }, { deps, caller }: Context) =>
      orNull(getFile(deps.store, requireScope(caller, 'knowledge:read').organizationId, id)),
    async files(_: unknown, args: ListArguments, { deps, caller }: Context) {
      const { organizationId } = requireScope(caller, 'knowledge:read')
      const page = pageOf(args, /^file_/)
      const { filter, sort } = idRange(args, page.after)
      return connectionOf(await deps.store.files.find({ organizationId, ...filter }, { sort, limit: page.limit }), page, ({ _id }) => _id)
    },
    document: (_: unknown, { id }: { id: string }, { deps, caller }: Context) =>
      orNull(getDocument(deps.store, requireScope(caller, 'knowledge:read').organizationId, id)),
    async searchCollection(_: unknown, { input, runHoldId, step }: SearchArguments, context: Context) {
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
    async fileContent(_: unknown, args: { id: string; offset: number; length: number }, context: Context) {
      const { file, bytes } = await readFilePiece(context.deps, context, args)
      return { file, content: Buffer.from(bytes).toString('base64'), offset: args.offset, length: bytes.length }
    },
    verifyBlobs: (_: unknown, { after }: { after?: string | null }, { deps, caller }: Context) => verifyBlobs(deps, caller, after ?? null),
    verifyKnowledgeFiles: (_: unknown, { after }: { after?: string | null }, { deps, caller }: Context) =>
      verifyFiles(deps.files, caller, after ?? null),
  },

  IndexFinding: {
    restored: ({ restored }: IndexFinding) => restored === true,
  },

  Mutation: {
    createCollection: async (_: unknown, { input }: { input: Parameters<typeof createCollection>[2] }, context: Context) => ({
      collection: await createCollection(context.deps, context, input),
    }),
    updateCollection: async (_: unknown, { input }: { input: Parameters<typeof updateCollection>[2] }, context: Context) => ({
      collection: await updateCollection(context.deps, context, input),
    }),
    async deleteCollection(_: unknown, { id }: { id: string }, context: Context) {
      await deleteCollection(context.deps, context, id)
      return { id }
    },
    uploadFile: async (_: unknown, { input }: { input: Parameters<typeof uploadFile>[2] }, context: Context) => ({
      file: await uploadFile(context.deps, context, input),
    }),
    async deleteFile(_: unknown, { id }: { id: string }, context: Context) {
      await deleteFile(context.deps, context, id)
      return { id }
    },
    createDocument: (_: unknown, { input }: { input: Parameters<typeof createDocument>[2] }, context: Context) =>
      createDocument(context.deps, context, input),
    retryDocument: async (_: unknown, { id }: { id: string }, context: Context) => ({
      document: await retryDocument(context.deps, context, id),
      created: false,
    }),
    async deleteDocument(_: unknown, { id }: { id: string }, context: Context) {
      await deleteDocument(context.deps, context, id)
      return { id }
    },
    rebuildIndex: (_: unknown, { after }: { after?: string | null }, context: Context) =>
      rebuildIndex(context.deps, context, after ?? null),
    verifyIndex: (_: unknown, { input }: { input: Parameters<typeof verifyIndex>[2] }, context: Context) =>
      verifyIndex(context.deps, context, input),
  },

  Subscription: {
    documentUpdated: {
      subscribe(_: unknown, { collectionId, after }: { collectionId?: string | null; after?: string | null }, { deps, caller }: Context) {
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
    id: ({ _id }: CollectionRecord) => _id,
    embeddingModel: ({ embeddingModel }: CollectionRecord) => ({ id: embeddingModel }),
    organization: ({ organizationId }: CollectionRecord) => ({ id: organizationId }),
    async documents(collection: CollectionRecord, args: ListArguments & { status?: DocumentStatus | null }, { deps }: Context) {
      const page = pageOf(args, /^doc_/)
      const { filter, sort } = idRange(args, page.after)
      const status = args.status ? { status: args.status } : {}
      const documents = await deps.store.documents.find(
        { collectionId: collection._id, listed: true, ...status, ...filter },
        { sort, limit: page.limit },
      )
      return connectionOf(documents, page, ({ _id }) => _id)
    },
    documentCount: ({ _id }: CollectionRecord, _args: unknown, { deps }: Context) =>
      deps.store.documents.countDocuments({ collectionId: _id, listed: true }),
    contents: (collection: CollectionRecord, _args: unknown, { deps }: Context) => deps.digests.of(collection),
    chunkCount: async ({ _id, organizationId }: CollectionRecord, _args: unknown, { deps }: Context) =>
      (await usageOf(deps.store, organizationId)).chunks[_id] ?? 0,
    __resolveReference: ({ id }: { id: string }, { deps, caller }: Context) =>
      orNull(getCollection(deps.store, requireScope(caller, 'knowledge:read').organizationId, id)),
  },

  File: {
    id: ({ _id }: FileRecord) => _id,
    checksum: ({ sha256 }: FileRecord) => `sha256:${sha256}`,
    status: () => 'uploaded',
    __resolveReference: ({ id }: { id: string }, { deps, caller }: Context) =>
      orNull(getFile(deps.store, requireScope(caller, 'knowledge:read').organizationId, id)),
  },

  Document: {
    id: ({ _id }: DocumentRecord) => _id,
    collection: ({ collectionId }: DocumentRecord, _args: unknown, { deps }: Context) =>
      deps.store.collections.findOne({ _id: collectionId }),
    file: ({ fileId }: DocumentRecord, _args: unknown, { deps }: Context) => deps.store.files.findOne({ _id: fileId }),
    __resolveReference: ({ id }: { id: string }, { deps, caller }: Context) =>
      orNull(getDocument(deps.store, requireScope(caller, 'knowledge:read').organizationId, id)),
  },

  Chunk: {
    id: ({ chunkId }: Chunk) => chunkId,
    document: ({ record }: Chunk) => record,
    file: ({ record }: Chunk, _args: unknown, { deps }: Context) => deps.store.files.findOne({ _id: record.fileId }),
    async __resolveReference({ id }: { id: string }, { deps, caller }: Context) {
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
    async quota({ id }: { id: string }, _args: unknown, { deps, caller }: Context) {
      const principal = requirePrincipal(caller)
      if (id !== principal.organizationId) return null
      const { storageBytes, vectors } = await usageOf(deps.store, id)
      const { plan } = principal
      return { storageBytes: { used: storageBytes, limit: plan.storageBytes }, vectors: { used: vectors, limit: plan.vectors } }
    },
    __resolveReference: ({ id }: { id: string }) => ({ id }),
  },
}
