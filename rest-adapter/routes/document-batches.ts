import { gatewayOperation, type OperationText } from '../../schema/operations.ts'
import * as operations from '../contract/documents.ts'
import { restParam } from '../http/param-names.ts'
import { type Call, type JsonObject, ok, type Route, route } from '../http/route.ts'
import { lowerCase } from '../http/values.ts'
import { DOCUMENT, type DocumentData, toAttachment, toDocument } from './documents.ts'

/** Operations on many documents of a collection at once. Each document has its own result. */

const ERROR = 'error { code message param }'
const ATTACH = gatewayOperation(`mutation CreateDocuments($input: CreateDocumentsInput!) {
  createDocuments(input: $input) { results { id created outcome document { ${DOCUMENT} } ${ERROR} } } }`)
const RETRY = gatewayOperation(`mutation RetryDocuments($input: DocumentsInput!) {
  retryDocuments(input: $input) { results { id document { ${DOCUMENT} } ${ERROR} } } }`)
const DELETE = gatewayOperation(`mutation DeleteDocuments($input: DocumentsInput!) {
  deleteDocuments(input: $input) { results { id ${ERROR} } } }`)

interface ResultData {
  readonly id: string
  readonly document?: DocumentData | null
  readonly error: { readonly code: string; readonly message: string; readonly param: string | null } | null
}

function toResults<T extends ResultData, const Own extends object>(results: readonly T[], toOwn: (result: T) => Own) {
  return ok({
    object: 'list' as const,
    data: results.map((result) => ({
      object: 'document_result' as const,
      ...toOwn(result),
      error: result.error && { ...result.error, param: result.error.param && restParam(result.error.param, {}) },
    })),
  })
}

const readDocument = ({ document }: ResultData) => (document ? toDocument(document) : null)

/** Runs an operation on documents named by their IDs, and returns its result. */
async function ofIds<Data>({ execute, params, body }: Call, operation: OperationText<Data, never>): Promise<Data> {
  return execute(operation, { input: { collectionId: params.id, ids: body.document_ids } }, { ids: 'document_ids' })
}

export const documentBatchRoutes: readonly Route[] = [
  route({
    operation: operations.createDocuments,
    async handle({ execute, params, body }) {
      const documents = (body.documents as readonly JsonObject[]).map(toAttachment)
      const { createDocuments } = await execute(ATTACH, { input: { collectionId: params.id, documents } })
      return toResults(createDocuments.results, (result) => ({
        file_id: result.id,
        created: result.created,
        outcome: lowerCase(result.outcome),
        document: readDocument(result),
      }))
    },
  }),
  route({
    operation: operations.retryDocuments,
    async handle(call) {
      const { retryDocuments } = await ofIds(call, RETRY)
      return toResults(retryDocuments.results, (result) => ({ document_id: result.id, document: readDocument(result) }))
    },
  }),
  route({
    operation: operations.deleteDocuments,
    async handle(call) {
      const { deleteDocuments } = await ofIds(call, DELETE)
      return toResults(deleteDocuments.results, ({ id, error }) => ({ document_id: id, deleted: error === null }))
    },
  }),
]
