import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { NotFound } from '../../subgraphs/common/errors.ts'
import { PAGE_INFO, PAGE_NAMES, pageVariables, readId, toList } from '../http/lists.ts'
import { PAGE_BOXES, toPageBoxes } from '../http/page-boxes.ts'
import { type Call, ok, type Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'
import { DOCUMENT, toDocument } from './documents.ts'

/** What was read from a document's file. */

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

/** The documents of an answer when the caller does not say how many. */
const DEFAULT_SIMILAR = 10
/** The characters of an answer when the caller does not say how many. */
const DEFAULT_LENGTH = 65_536

const NOTHING_READ = { text: '', charStart: 0, charEnd: 0, totalChars: 0, nextOffset: null, pages: [] }

/** The document of the path. One of another collection is not found. */
function inCollection<T extends { readonly collection: { readonly id: string } }>({ params }: Call, document: T | null): T {
  if (document?.collection.id !== params.id) throw new NotFound('document', params.document_id!)
  return document!
}

function toChunk(chunk: Selected<'Chunk', typeof CHUNK> & Parameters<typeof toPageBoxes>[0]) {
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
  {
    method: 'GET',
    path: '/v1/collections/{id}/documents/{document_id}/text',
    async handle(call) {
      const { page_start: pageStart, page_end: pageEnd, offset, length = DEFAULT_LENGTH, format } = call.query
      const variables = { id: call.params.document_id, pageStart, pageEnd, offset, length }
      const { status, text } = inCollection(call, (await call.execute(TEXT, variables)).document)
      const part = text ?? NOTHING_READ
      if (format === 'text') {
        const headers = {
          'content-type': 'text/plain; charset=utf-8',
          // A stored page must not run as one of our own.
          'x-content-type-options': 'nosniff',
          'x-document-status': status.toLowerCase(),
          ...(part.nextOffset !== null && { 'x-next-offset': String(part.nextOffset) }),
        }
        return { status: 200, headers, body: part.text }
      }
      return ok({
        object: 'document_text',
        document_id: call.params.document_id,
        document_status: status.toLowerCase(),
        text: part.text,
        char_start: part.charStart,
        char_end: part.charEnd,
        total_chars: part.totalChars,
        next_offset: part.nextOffset,
        pages: part.pages.map(({ page, charStart, charEnd }) => ({ page, char_start: charStart, char_end: charEnd })),
      })
    },
  },
  {
    method: 'GET',
    path: '/v1/collections/{id}/documents/{document_id}/chunks',
    async handle(call) {
      const variables = { id: call.params.document_id, ...pageVariables(call.query) }
      const operation = call.query.page_boxes === true ? CHUNKS_WITH_BOXES : CHUNKS
      const { status, chunks } = inCollection(call, (await call.execute(operation, variables, PAGE_NAMES)).document)
      return ok({ ...toList(chunks, toChunk, readId), document_status: status.toLowerCase() })
    },
  },
  {
    method: 'GET',
    path: '/v1/collections/{id}/documents/{document_id}/versions',
    async handle(call) {
      const { versions } = inCollection(call, (await call.execute(VERSIONS, { id: call.params.document_id })).document)
      const data = versions.map(({ version, file, name, createdAt, replacedAt }) => ({
        object: 'document_version',
        version,
        file_id: file?.id ?? null,
        file_name: name,
        created_at: unixSeconds(createdAt),
        replaced_at: unixSeconds(replacedAt),
      }))
      return ok({ object: 'list', data })
    },
  },
  {
    method: 'GET',
    path: '/v1/collections/{id}/documents/{document_id}/similar',
    async handle(call) {
      const variables = { id: call.params.document_id, first: call.query.limit ?? DEFAULT_SIMILAR }
      const { similarDocuments } = inCollection(call, (await call.execute(SIMILAR, variables, PAGE_NAMES)).document)
      const data = similarDocuments.map(({ similarity, document }) => ({
        object: 'similar_document',
        similarity,
        document: toDocument(document),
      }))
      return ok({ object: 'list', data })
    },
  },
]
