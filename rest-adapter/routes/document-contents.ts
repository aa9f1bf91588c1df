import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { NotFound } from '../../subgraphs/common/errors.ts'
import * as operations from '../contract/documents.ts'
import { PAGE_INFO, PAGE_NAMES, pageVariables, readId, toList } from '../http/lists.ts'
import { PAGE_BOXES, toPageBoxes } from '../http/page-boxes.ts'
import { type Call, ok, type Route, route } from '../http/route.ts'
import { lowerCase, unixSeconds } from '../http/values.ts'
import { DOCUMENT, toDocument } from './documents.ts'

/** Routes for what was read from a document's file. */

const CHUNK = 'id text headingPath pageStart pageEnd charStart charEnd'

const TEXT = gatewayOperation(`query DocumentText($id: ID!, $pageStart: Int, $pageEnd: Int, $offset: Int, $length: Int!) {
  document(id: $id) { collection { id } status text(pageStart: $pageStart, pageEnd: $pageEnd, offset: $offset, length: $length) {
    text charStart charEnd totalChars nextOffset pages { page charStart charEnd } } } }`)
const CHUNKS = gatewayOperation(`query DocumentChunks($id: ID!, $first: Int!, $after: String) {
  document(id: $id) { collection { id } status chunks(first: $first, after: $after) { edges { node { ${CHUNK} } } ${PAGE_INFO} } } }`)
const CHUNKS_WITH_BOXES = gatewayOperation(`query DocumentChunksWithBoxes($id: ID!, $first: Int!, $after: String) {
  document(id: $id) { collection { id } status chunks(first: $first, after: $after) { edges { node { ${CHUNK} ${PAGE_BOXES} } } ${PAGE_INFO} } } }`)
const VERSIONS = gatewayOperation(`query DocumentVersions($id: ID!) {
  document(id: $id) { collection { id } versions { version file { id } name createdAt replacedAt } } }`)
const SIMILAR = gatewayOperation(`query SimilarDocuments($id: ID!, $first: Int!) {
  document(id: $id) { collection { id } similarDocuments(first: $first) { similarity document { ${DOCUMENT} } } } }`)

/** Similar documents returned when the caller does not say how many. */
const DEFAULT_SIMILAR = 10
/** Characters returned when the caller does not say how many. */
const DEFAULT_LENGTH = 65_536

const NOTHING_READ = { text: '', charStart: 0, charEnd: 0, totalChars: 0, nextOffset: null, pages: [] }

/** Returns the document of the path. One of another collection counts as not found. */
function inCollection<T extends { readonly collection: { readonly id: string } }>({ params }: Call, document: T | null): T {
  if (document?.collection.id !== params.id) throw new NotFound('document', params.document_id!)
  return document!
}

function toChunk(chunk: Selected<'Chunk', typeof CHUNK> & Parameters<typeof toPageBoxes>[0]): operations.Chunk {
  return {
    id: chunk.id,
    object: 'chunk',
    text: chunk.text,
    heading_path: chunk.headingPath,
    page_start: chunk.pageStart,
    page_end: chunk.pageEnd,
    char_start: chunk.charStart,
    char_end: chunk.charEnd,
    ...toPageBoxes(chunk),
  }
}

export const documentContentRoutes: readonly Route[] = [
  route({
    operation: operations.getDocumentText,
    async handle(call) {
      const { page_start: pageStart, page_end: pageEnd, offset, length = DEFAULT_LENGTH, format } = call.query
      const variables = { id: call.params.document_id, pageStart, pageEnd, offset, length }
      const { status, text } = inCollection(call, (await call.execute(TEXT, variables)).document)
      const part = text ?? NOTHING_READ
      if (format === 'text') {
        const headers = {
          'content-type': 'text/plain; charset=utf-8',
          // The header keeps a stored page from running as one of our own pages.
          'x-content-type-options': 'nosniff',
          'x-document-status': lowerCase(status),
          ...(part.nextOffset !== null && { 'x-next-offset': String(part.nextOffset) }),
        }
        return { status: 200, headers, body: part.text }
      }
      return ok({
        object: 'document_text',
        document_id: call.params.document_id,
        document_status: lowerCase(status),
        text: part.text,
        char_start: part.charStart,
        char_end: part.charEnd,
        total_chars: part.totalChars,
        next_offset: part.nextOffset,
        pages: part.pages.map(({ page, charStart, charEnd }) => ({ page, char_start: charStart, char_end: charEnd })),
      })
    },
  }),
  route({
    operation: operations.listDocumentChunks,
    async handle(call) {
      const variables = { id: call.params.document_id, ...pageVariables(call.query) }
      const operation = call.query.page_boxes === true ? CHUNKS_WITH_BOXES : CHUNKS
      const { status, chunks } = inCollection(call, (await call.execute(operation, variables, PAGE_NAMES)).document)
      return ok({ ...toList(chunks, toChunk, readId), document_status: lowerCase(status) })
    },
  }),
  route({
    operation: operations.listDocumentVersions,
    async handle(call) {
      const { versions } = inCollection(call, (await call.execute(VERSIONS, { id: call.params.document_id })).document)
      const data = versions.map(({ version, file, name, createdAt, replacedAt }) => ({
        object: 'document_version' as const,
        version,
        file_id: file?.id ?? null,
        file_name: name,
        created_at: unixSeconds(createdAt),
        replaced_at: unixSeconds(replacedAt),
      }))
      return ok({ object: 'list', data })
    },
  }),
  route({
    operation: operations.listSimilarDocuments,
    async handle(call) {
      const variables = { id: call.params.document_id, first: call.query.limit ?? DEFAULT_SIMILAR }
      const { similarDocuments } = inCollection(call, (await call.execute(SIMILAR, variables, PAGE_NAMES)).document)
      const data = similarDocuments.map(({ similarity, document }) => ({
        object: 'similar_document' as const,
        similarity,
        document: toDocument(document),
      }))
      return ok({ object: 'list', data })
    },
  }),
]
