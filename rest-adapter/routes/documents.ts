import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { NotFound } from '../../subgraphs/common/errors.ts'
import { PAGE_INFO, PAGE_NAMES, pageVariables, readId, toList } from '../http/lists.ts'
import { type Call, created, deleted, type JsonObject, ok, type Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'

export const DOCUMENT = `id collection { id } file { id } parent { id } name status stage progress { done total } error { code message }
  warnings { code message pages } pageCount chunkCount language metadata attempts createdAt`

export type DocumentData = Selected<'Document', typeof DOCUMENT>

const CREATE = gatewayOperation(
  `mutation CreateDocument($input: CreateDocumentInput!) { createDocument(input: $input) { created document { ${DOCUMENT} } } }`,
)
const LIST = gatewayOperation(`query Documents($id: ID!, $first: Int!, $after: String, $order: SortOrder, $status: DocumentStatus) {
  collection(id: $id) { documents(first: $first, after: $after, order: $order, status: $status) { edges { node { ${DOCUMENT} } } ${PAGE_INFO} } } }`)
const GET = gatewayOperation(`query Document($id: ID!) { document(id: $id) { ${DOCUMENT} } }`)
const UPDATE = gatewayOperation(
  `mutation UpdateDocument($input: UpdateDocumentInput!) { updateDocument(input: $input) { document { ${DOCUMENT} } } }`,
)
const RETRY = gatewayOperation(`mutation RetryDocument($id: ID!) { retryDocument(id: $id) { document { ${DOCUMENT} } } }`)
const DELETE = gatewayOperation('mutation DeleteDocument($id: ID!) { deleteDocument(id: $id) { id } }')

export function toDocument(data: DocumentData) {
  return {
    id: data.id,
    object: 'document',
    created_at: unixSeconds(data.createdAt),
    collection_id: data.collection.id,
    file_id: data.file.id,
    parent_id: data.parent?.id ?? null,
    file_name: data.name,
    status: data.status.toLowerCase(),
    stage: data.stage?.toLowerCase() ?? null,
    progress: data.progress,
    error: data.error && { code: data.error.code.toLowerCase(), message: data.error.message },
    warnings: data.warnings,
    page_count: data.pageCount,
    chunk_count: data.chunkCount,
    language: data.language,
    metadata: data.metadata,
    attempts: data.attempts,
  }
}

/** Finds the document of the path. One of another collection is not found. */
export async function getDocument({ ask, params }: Call): Promise<DocumentData> {
  const { document } = await ask(GET, { id: params.document_id })
  if (document?.collection.id !== params.id) throw new NotFound('document', params.document_id!)
  return document!
}

/** The fields of a file to attach. Fields that were left out stay out. */
export function toAttachment({ file_id, metadata }: JsonObject): JsonObject {
  return { fileId: file_id, metadata }
}

export const documentRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/collections/{id}/documents',
    async handle({ ask, params, body }) {
      const input = { collectionId: params.id, ...toAttachment(body) }
      const data = await ask(CREATE, { input })
      const document = toDocument(data.createDocument.document)
      return data.createDocument.created ? created(document) : ok(document)
    },
  },
  {
    method: 'GET',
    path: '/v1/collections/{id}/documents',
    async handle({ ask, params, query }) {
      const status = query.status === undefined ? {} : { status: (query.status as string).toUpperCase() }
      const { collection } = await ask(LIST, { id: params.id, ...status, ...pageVariables(query) }, PAGE_NAMES)
      if (!collection) throw new NotFound('collection', params.id!)
      return ok(toList(collection.documents, toDocument, readId))
    },
  },
  {
    method: 'GET',
    path: '/v1/collections/{id}/documents/{document_id}',
    handle: async (call) => ok(toDocument(await getDocument(call))),
  },
  {
    method: 'PATCH',
    path: '/v1/collections/{id}/documents/{document_id}',
    async handle(call) {
      const { id } = await getDocument(call)
      const input = { id, name: call.body.file_name, metadata: call.body.metadata }
      const data = await call.ask(UPDATE, { input }, { name: 'file_name' })
      return ok(toDocument(data.updateDocument.document))
    },
  },
  {
    method: 'DELETE',
    path: '/v1/collections/{id}/documents/{document_id}',
    async handle(call) {
      const { id } = await getDocument(call)
      await call.ask(DELETE, { id })
      return deleted('document', id)
    },
  },
  {
    method: 'POST',
    path: '/v1/collections/{id}/documents/{document_id}/retry',
    async handle(call) {
      const { id } = await getDocument(call)
      const data = await call.ask(RETRY, { id })
      return ok(toDocument(data.retryDocument.document))
    },
  },
]
