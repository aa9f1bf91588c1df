import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { KisError, NotFound } from '../../subgraphs/common/errors.ts'
import * as operations from '../contract/documents.ts'
import { PAGE_INFO, PAGE_NAMES, pageVariables, readId, toList } from '../http/lists.ts'
import { type Call, created, deleted, type JsonObject, ok, type Route, route } from '../http/route.ts'
import { lowerCase, toEnum, unixSeconds } from '../http/values.ts'

export const DOCUMENT = `id collection { id } file { id } parent { id } name externalId status stage progress { done total } error { code message }
  version replacement { file { id } name status stage progress { done total } error { code message } createdAt }
  warnings { code message pages } transcriptionModel { id } pageCount chunkCount language metadata attempts createdAt`

export type DocumentData = Selected<'Document', typeof DOCUMENT>

const CREATE = gatewayOperation(
  `mutation CreateDocument($input: CreateDocumentInput!) { createDocument(input: $input) { created outcome document { ${DOCUMENT} } } }`,
)
const CREATE_FROM_WEB = gatewayOperation(
  `mutation CreateWebDocument($input: CreateWebDocumentInput!) { createWebDocument(input: $input) { created outcome document { ${DOCUMENT} } } }`,
)
const LIST = gatewayOperation(`query Documents($id: ID!, $first: Int!, $after: String, $order: SortOrder, $status: DocumentStatus) {
  collection(id: $id) { documents(first: $first, after: $after, order: $order, status: $status) { edges { node { ${DOCUMENT} } } ${PAGE_INFO} } } }`)
const LIST_ALL = gatewayOperation(`query AllDocuments($first: Int!, $after: String, $order: SortOrder, $status: DocumentStatus!) {
  documents(first: $first, after: $after, order: $order, status: $status) { edges { node { ${DOCUMENT} } } ${PAGE_INFO} } }`)
const GET = gatewayOperation(`query Document($id: ID!) { document(id: $id) { ${DOCUMENT} } }`)
const UPDATE = gatewayOperation(
  `mutation UpdateDocument($input: UpdateDocumentInput!) { updateDocument(input: $input) { document { ${DOCUMENT} } } }`,
)
const RETRY = gatewayOperation(`mutation RetryDocument($id: ID!) { retryDocument(id: $id) { document { ${DOCUMENT} } } }`)
const DELETE = gatewayOperation('mutation DeleteDocument($id: ID!) { deleteDocument(id: $id) { id } }')

function toIngestion({
  status,
  stage,
  progress,
  error,
}: Pick<DocumentData, 'stage' | 'progress' | 'error'> & { readonly status: DocumentData['status'] }) {
  return {
    status: lowerCase(status),
    stage: lowerCase(stage),
    progress,
    error: error && { code: lowerCase(error.code), message: error.message },
  }
}

export function toDocument(data: DocumentData): operations.Document {
  return {
    id: data.id,
    object: 'document',
    created_at: unixSeconds(data.createdAt),
    collection_id: data.collection.id,
    file_id: data.file.id,
    parent_id: data.parent?.id ?? null,
    file_name: data.name,
    external_id: data.externalId,
    ...toIngestion(data),
    version: data.version,
    replacement: data.replacement && {
      file_id: data.replacement.file?.id ?? null,
      file_name: data.replacement.name,
      created_at: unixSeconds(data.replacement.createdAt),
      ...(toIngestion(data.replacement) as Omit<NonNullable<operations.Document['replacement']>, 'file_id' | 'file_name' | 'created_at'>),
    },
    warnings: data.warnings,
    transcription_model: data.transcriptionModel?.id ?? null,
    page_count: data.pageCount,
    chunk_count: data.chunkCount,
    language: data.language,
    metadata: data.metadata as operations.Document['metadata'],
    attempts: data.attempts,
  }
}

/** Returns the document of the path. One of another collection counts as not found. */
async function getDocument({ execute, params }: Call): Promise<DocumentData> {
  const { document } = await execute(GET, { id: params.document_id })
  if (document?.collection.id !== params.id) throw new NotFound('document', params.document_id!)
  return document!
}

/** Converts the fields of a file to attach. Absent fields stay absent. */
export function toAttachment({ file_id, metadata, external_id, document_id, on_conflict, transcription_model }: JsonObject): JsonObject {
  const onConflict = (on_conflict as string | undefined)?.toUpperCase()
  return {
    fileId: file_id,
    metadata,
    externalId: external_id,
    documentId: document_id,
    onConflict,
    transcriptionModel: transcription_model,
  }
}

export const documentRoutes: readonly Route[] = [
  route({
    operation: operations.listAllDocuments,
    async handle({ execute, query }) {
      const data = await execute(LIST_ALL, { ...pageVariables(query), status: toEnum(String(query.status)) }, PAGE_NAMES)
      return ok(toList(data.documents, toDocument, readId))
    },
  }),
  route({
    operation: operations.createDocument,
    async handle({ execute, params, body }) {
      const { metadata, url, refresh_seconds: refreshSeconds, file_id: fileId } = body
      if ((url === undefined) === (fileId === undefined))
        throw new KisError('invalid_request', 'Send either `file_id` or `url`.', { param: url === undefined ? 'file_id' : 'url' })
      const data =
        url === undefined
          ? (await execute(CREATE, { input: { collectionId: params.id, ...toAttachment(body) } })).createDocument
          : (await execute(CREATE_FROM_WEB, { input: { collectionId: params.id, url, metadata, refreshSeconds } })).createWebDocument
      const responseBody = { ...toDocument(data.document), outcome: lowerCase(data.outcome) }
      return data.created ? created(responseBody) : ok(responseBody)
    },
  }),
  route({
    operation: operations.listDocuments,
    async handle({ execute, params, query }) {
      const status = query.status === undefined ? {} : { status: (query.status as string).toUpperCase() }
      const { collection } = await execute(LIST, { id: params.id, ...status, ...pageVariables(query) }, PAGE_NAMES)
      if (!collection) throw new NotFound('collection', params.id!)
      return ok(toList(collection.documents, toDocument, readId))
    },
  }),
  route({
    operation: operations.getDocument,
    handle: async (call) => ok(toDocument(await getDocument(call))),
  }),
  route({
    operation: operations.updateDocument,
    async handle(call) {
      const { id } = await getDocument(call)
      const input = { id, name: call.body.file_name, metadata: call.body.metadata }
      const data = await call.execute(UPDATE, { input }, { name: 'file_name' })
      return ok(toDocument(data.updateDocument.document))
    },
  }),
  route({
    operation: operations.deleteDocument,
    async handle(call) {
      const { id } = await getDocument(call)
      await call.execute(DELETE, { id })
      return deleted('document', id)
    },
  }),
  route({
    operation: operations.retryDocument,
    async handle(call) {
      const { id } = await getDocument(call)
      const data = await call.execute(RETRY, { id })
      return ok(toDocument(data.retryDocument.document))
    },
  }),
]
