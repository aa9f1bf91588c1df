import { type Static, Type } from '@sinclair/typebox'
import {
  array,
  boolean,
  constant,
  define,
  described,
  integer,
  mapOf,
  nullable,
  number,
  object,
  oneOf,
  operation,
  optional,
  string,
} from './build.ts'
import { CollectionId } from './collections.ts'
import { PageBoxes } from './search.ts'
import { After, Deletion, Limit, listOf, Page, Progress, UnixSeconds } from './shared.ts'

export const DocumentStatus = define('DocumentStatus').as(
  oneOf(
    ['queued', 'processing', 'ready', 'failed'],
    'The status of the ingestion. `queued`: the document waits for a worker. `processing`: a worker processes it, and searches ' +
      'find the chunks of a first version as they are embedded. `ready`: searches find all of it. `failed`: `error` says why.',
  ),
)

export const DocumentMetadata = define('DocumentMetadata').as(
  mapOf(
    Type.Unsafe<string | number | boolean>({ type: ['string', 'number', 'boolean'] }),
    'Your own fields, for filters: a flat object with at most 32 fields, each a string of at most 512 characters, a whole ' +
      'number or a boolean.',
    { maxProperties: 32 },
  ),
)

/** The fields of a file to attach. */
const ATTACHMENT_FIELDS = {
  file_id: string('The id of an uploaded file.', { minLength: 1, maxLength: 200 }),
  metadata: optional(DocumentMetadata),
  external_id: optional(string('Your own id of the document, unique in the collection.', { minLength: 1, maxLength: 200 })),
  document_id: optional(
    string(
      'The id of a document of the collection. The file becomes its next version, whatever their names are. Leave out ' +
        '`external_id` and `on_conflict` then.',
      { minLength: 1, maxLength: 200 },
    ),
  ),
  on_conflict: optional(
    oneOf(
      ['keep_both', 'replace'],
      "What happens if the collection has a document with this `external_id` or, if you send none, with the file's name. With " +
        '`replace` the file becomes its next version; it keeps its `metadata` if you send none. With `keep_both` the file becomes ' +
        'another document; an `external_id` that is taken fails with `already_exists`.',
      { default: 'keep_both' },
    ),
  ),
  transcription_model: optional(
    string("The id of a transcription model, if the file is audio of at most 25 MiB and 4 hours. Leave it out to use the collection's.", {
      minLength: 1,
      maxLength: 200,
    }),
  ),
}

export const DocumentCreation = define('DocumentCreation').closed(ATTACHMENT_FIELDS)

export const DocumentAddition = define('DocumentAddition').closed('Has either `file_id` or `url`.', {
  ...ATTACHMENT_FIELDS,
  file_id: optional(ATTACHMENT_FIELDS.file_id),
  url: optional(
    string(
      'The http or https address of a page, a PDF or another format on a public host. The service fetches it and obeys the ' +
        "site's robots.txt. If the collection has the address already, it is fetched again.",
      { minLength: 1, maxLength: 2048 },
    ),
  ),
  refresh_seconds: optional(
    integer('With `url`. The number of seconds after which it is fetched again.', { minimum: 900, maximum: 31_536_000 }),
  ),
})

export const DocumentFailure = define('DocumentFailure').object('Why an ingestion failed.', {
  code: oneOf(
    [
      'empty',
      'corrupt',
      'password_required',
      'no_text',
      'unsupported_type',
      'limit_exceeded',
      'timeout',
      'poison',
      'embedding_failed',
      'transcription_failed',
      'insufficient_quota',
      'model_not_found',
      'residency_policy_violation',
      'storage_quota_exceeded',
    ],
    'The error code, for programs.',
  ),
  message: string('The error message, for people.'),
})

export const DocumentReplacement = define('DocumentReplacement').object('The next version of a document.', {
  file_id: nullable(string('The id of its file.')),
  file_name: string('The name that the document gets.'),
  created_at: UnixSeconds,
  status: oneOf(
    ['queued', 'processing', 'failed'],
    'The status of the ingestion. If it is `failed`, the live version stays: retry the document, or attach another file.',
  ),
  stage: nullable(
    oneOf(
      ['parsing', 'transcribing', 'chunking', 'embedding', 'indexing'],
      'The current step of the ingestion. Null unless the status is `processing`.',
    ),
  ),
  progress: described(nullable(Progress), 'The progress of the current step. Null unless the status is `processing`.'),
  error: described(nullable(DocumentFailure), 'Why the ingestion failed. Null unless the status is `failed`.'),
})

export const DocumentWarning = define('DocumentWarning').object('Something that is missing from a document.', {
  code: string('The code of the warning, for programs.'),
  message: string('The message, for people.'),
  pages: array(integer(), 'The pages concerned. The first page is 1. Empty if the warning concerns the whole document.'),
})

export const Document = define('Document').object('A file attached to a collection, with the text extracted from it.', {
  id: string('The id: `doc_…`.'),
  object: constant('document'),
  created_at: UnixSeconds,
  collection_id: string('The id of the collection.'),
  file_id: string('The id of the file.'),
  parent_id: nullable(
    string(
      'The id of the document whose file contained this one: an archive, or a message that it was attached to. Null for a ' +
        'document that you attached yourself. It is deleted with its parent.',
    ),
  ),
  file_name: string('The name of the document. It is the name of its file until you change it.'),
  status: DocumentStatus,
  stage: nullable(
    oneOf(
      ['parsing', 'transcribing', 'chunking', 'embedding', 'indexing'],
      'The current step of the ingestion. Null unless the status is `processing`.',
    ),
  ),
  progress: described(nullable(Progress), 'The progress of the current step, in pages or chunks. Null unless the status is `processing`.'),
  error: described(nullable(DocumentFailure), 'Why the ingestion failed. Null unless the status is `failed`.'),
  external_id: nullable(string('Your own id of the document. Null if you set none.')),
  version: integer('The number of the version that searches find. The first is 1.'),
  replacement: described(
    nullable(DocumentReplacement),
    'The next version of the document, while its ingestion is running or after it failed. Searches find the live version ' +
      'meanwhile. Null if there is none.',
  ),
  warnings: array(DocumentWarning, 'What is missing from a document that is ready.'),
  transcription_model: nullable(string('The id of the speech model that you named for this document. Null if you named none.')),
  page_count: nullable(integer('The number of pages. Null for formats without pages.')),
  chunk_count: integer('The number of chunks. 0 until the document is ready.'),
  language: nullable(string('The BCP 47 code of the main language: `ar` or `en`. Null for any other language.')),
  metadata: DocumentMetadata,
  attempts: integer('How many times a worker has started to process the document.'),
})
export type Document = Static<typeof Document>

export const AttachOutcome = define('AttachOutcome').as(
  nullable(
    oneOf(
      ['created', 'unchanged', 'replacing'],
      'What the call did with the file: `created` a document, `unchanged` because the collection has these bytes already, or ' +
        '`replacing` because the file becomes the next version of the document. Null if the call failed.',
    ),
  ),
)

export const AttachedDocument = define('AttachedDocument').extend([Document], { outcome: AttachOutcome })

export const DocumentVersions = define('DocumentVersions').object({
  object: constant('list'),
  data: array(
    object({
      object: constant('document_version'),
      version: integer('The number of the version. The first is 1.'),
      file_id: nullable(string('The id of its file. Null if you have deleted it.')),
      file_name: string('The name that the document had.'),
      created_at: UnixSeconds,
      replaced_at: UnixSeconds,
    }),
    'The versions, newest first.',
  ),
})

export const SimilarDocuments = define('SimilarDocuments').object({
  object: constant('list'),
  data: array(
    object({
      object: constant('similar_document'),
      similarity: number(
        'The estimated share of four-word sequences that both texts have: 0.7 to 1. The true share differs by at most 0.12.',
      ),
      document: Document,
    }),
    'The documents, most similar first.',
  ),
})

export const DocumentChange = define('DocumentChange').closed(
  {
    file_name: optional(string('The new name. The name of the file does not change.', { minLength: 1, maxLength: 255 })),
    metadata: optional(DocumentMetadata),
  },
  { example: { file_name: 'contract-2026.pdf', metadata: { year: 2026 } } },
)

export const DocumentsCreation = define('DocumentsCreation').closed(
  { documents: array(DocumentCreation, 'The files to attach.', { minItems: 1, maxItems: 100 }) },
  { example: { documents: [{ file_id: 'file_0190', metadata: { year: 2026 } }] } },
)

export const DocumentSelection = define('DocumentSelection').closed(
  { document_ids: array(string(undefined, { minLength: 1, maxLength: 200 }), 'The ids of the documents.', { minItems: 1, maxItems: 100 }) },
  { example: { document_ids: ['doc_0190'] } },
)

export const ItemError = define('ItemError').as(
  nullable(
    object('Why the call failed for this one, as the call for it alone would have. Null if it did not.', {
      code: string('The error code, for programs.'),
      message: string('The error message, for people.'),
      param: nullable(string('The wrong field of the request. Null if no field is wrong.')),
    }),
  ),
)

export const DocumentAttachments = define('DocumentAttachments').object({
  object: constant('list'),
  data: array(
    object({
      object: constant('document_result'),
      file_id: string('The id of the file.'),
      created: boolean('Whether this call created the document.'),
      outcome: AttachOutcome,
      document: described(nullable(Document), 'The document. Null if the call failed for this file.'),
      error: ItemError,
    }),
    'The results, in the order of the request.',
  ),
})

export const DocumentRetries = define('DocumentRetries').object({
  object: constant('list'),
  data: array(
    object({
      object: constant('document_result'),
      document_id: string('The id of the document.'),
      document: described(nullable(Document), 'The current document. Null if the call failed for it.'),
      error: ItemError,
    }),
    'The results, in the order of the request.',
  ),
})

export const DocumentDeletions = define('DocumentDeletions').object({
  object: constant('list'),
  data: array(
    object({
      object: constant('document_result'),
      document_id: string('The id of the document.'),
      deleted: boolean('Whether this call deleted it.'),
      error: ItemError,
    }),
    'The results, in the order of the request.',
  ),
})

export const DocumentText = define('DocumentText').object(
  "Part of a document's text. All offsets are UTF-16 code units of the whole text.",
  {
    object: constant('document_text'),
    document_id: string('The id of the document.'),
    document_status: DocumentStatus,
    text: string('The text from `char_start` to `char_end`.'),
    char_start: integer('Where the part begins.'),
    char_end: integer('Where the part ends: the offset after its last character.'),
    total_chars: integer('The length of the whole text.'),
    next_offset: nullable(integer('Send it as `offset` to get what comes next. Null if nothing is left.')),
    pages: array(
      object({
        page: integer('The number of the page. The first page is 1.'),
        char_start: integer('Where its text begins, or where the part does.'),
        char_end: integer('Where its text ends, or where the part does.'),
      }),
      'The pages with text in this part, in order. Empty for formats without pages, and for documents that an earlier version of ' +
        'the service ingested.',
    ),
  },
)

export const Chunk = define('Chunk').object('A part of a document: the unit that searches find.', {
  id: string('The id of the chunk: `chunk_…`.'),
  object: constant('chunk'),
  text: string('The text of the chunk, exactly as in the document.'),
  heading_path: array(string(), 'The headings above the chunk, outermost first.'),
  page_start: nullable(integer('The first page of the chunk. Null for formats without pages.')),
  page_end: nullable(integer('The last page of the chunk. Null for formats without pages.')),
  char_start: integer("Where the chunk begins in the document's text."),
  char_end: integer("Where the chunk ends in the document's text."),
  page_boxes: optional(PageBoxes),
})
export type Chunk = Static<typeof Chunk>

export const ChunkList = define('ChunkList').as(listOf(Chunk))

export const DocumentChunks = define('DocumentChunks').extend([ChunkList], { document_status: DocumentStatus })

export const SiteCreation = define('SiteCreation').closed({
  url: string('The URL of a sitemap, or of a page with links.', { minLength: 1, maxLength: 2048 }),
  limit: optional(integer('The most links that are added.', { minimum: 1, maximum: 500, default: 100 })),
  metadata: optional(
    mapOf(Type.Unsafe<string | number | boolean>({ type: ['string', 'number', 'boolean'] }), 'The fields of every document.', {
      maxProperties: 32,
    }),
  ),
  refresh_seconds: optional(
    integer('The number of seconds after which each page is fetched again.', { minimum: 900, maximum: 31_536_000 }),
  ),
})

export const Source = define('Source').object('A URL whose content is a document of a collection.', {
  id: string('The id: `web_…`.'),
  object: constant('source'),
  created_at: UnixSeconds,
  url: string('The address.'),
  document_id: nullable(string('The document of what was fetched last. Null until it was fetched, and once it is deleted.')),
  refresh_seconds: nullable(integer('The number of seconds after which it is fetched again.')),
  checked_at: nullable(integer('When it was fetched or tried last (Unix seconds).')),
  changed_at: nullable(integer('When its content was last seen to be new (Unix seconds).')),
  error: nullable(string('Why it could not be fetched or read the last time.')),
  error_reason: nullable(
    oneOf(
      [
        'not_public',
        'unreachable',
        'status',
        'robots_forbid',
        'robots_unreadable',
        'too_large',
        'unsupported_type',
        'unreadable',
        'residency_policy_violation',
        'storage_quota_exceeded',
        'insufficient_quota',
        'key_ended',
        'other',
      ],
      'The reason in `error`, for programs.',
    ),
  ),
})
export type Source = Static<typeof Source>

export const SourceList = define('SourceList').as(listOf(Source))

export const DocumentList = define('DocumentList').as(listOf(Document))

export const DocumentId = string('The id of the document, `doc_…`.')
export const SourceId = string('The id of the source, `web_…`.')

export const createDocument = operation('createDocument', 'POST', '/v1/collections/{id}/documents', {
  tag: 'Knowledge',
  summary: 'Attach a file to a collection',
  description:
    'Attaches a file to a collection. The service then parses, chunks and embeds it; `status` shows the progress. If you ' +
    'attach the same bytes again, even as another file, you get the same document. With `on_conflict: replace` the file ' +
    'becomes the next version of a document: searches find the live version until the file has been ingested, then the new ' +
    'one. Requires the scope `knowledge:write`.',
  params: { id: CollectionId },
  body: DocumentAddition,
  responses: {
    200: {
      description: 'The existing document, because the bytes were attached before or the file becomes its next version.',
      json: AttachedDocument,
    },
    201: { description: 'The new document.', json: AttachedDocument },
  },
})

export const listDocuments = operation('listDocuments', 'GET', '/v1/collections/{id}/documents', {
  tag: 'Knowledge',
  summary: "List a collection's documents",
  description: 'Lists the documents of a collection. Requires the scope `knowledge:read`.',
  params: { id: CollectionId },
  query: { ...Page, status: optional(described(DocumentStatus, 'Lists only documents with this status.')) },
  responses: { 200: { description: 'One page of the list.', json: DocumentList } },
})

export const listAllDocuments = operation('listAllDocuments', 'GET', '/v1/documents', {
  tag: 'Knowledge',
  summary: 'List the documents of all collections with a status',
  description:
    'Lists the documents of all your collections that have a status, such as all that failed. Requires the scope `knowledge:read`.',
  query: { ...Page, status: described(DocumentStatus, 'The status that the documents have.', { example: 'failed' }) },
  responses: { 200: { description: 'One page of the list.', json: DocumentList } },
})

export const getDocument = operation('getDocument', 'GET', '/v1/collections/{id}/documents/{document_id}', {
  tag: 'Knowledge',
  summary: 'Get a document',
  description: 'Gets a document. Requires the scope `knowledge:read`.',
  params: { id: CollectionId, document_id: DocumentId },
  responses: { 200: { description: 'The document.', json: Document } },
})

export const updateDocument = operation('updateDocument', 'PATCH', '/v1/collections/{id}/documents/{document_id}', {
  tag: 'Knowledge',
  summary: 'Change a document',
  description:
    'Changes the name and the metadata of a document. Fields that you leave out keep their values. Searches that start later ' +
    'see the change; nothing is embedded again, and it costs nothing. Requires the scope `knowledge:write`.',
  params: { id: CollectionId, document_id: DocumentId },
  body: DocumentChange,
  isBodyRequired: false,
  responses: { 200: { description: 'The document.', json: Document } },
})

export const deleteDocument = operation('deleteDocument', 'DELETE', '/v1/collections/{id}/documents/{document_id}', {
  tag: 'Knowledge',
  summary: 'Detach a file from a collection',
  description:
    'Deletes a document and its chunks. Searches that start later do not find them. The file stays. Requires the scope `knowledge:write`.',
  params: { id: CollectionId, document_id: DocumentId },
  responses: { 200: { description: 'The document was deleted.', json: Deletion } },
})

export const retryDocument = operation('retryDocument', 'POST', '/v1/collections/{id}/documents/{document_id}/retry', {
  tag: 'Knowledge',
  summary: 'Retry a failed document',
  description:
    'Starts the ingestion of a failed document again. A document with another status does not change. Takes no body. Requires ' +
    'the scope `knowledge:write`.',
  params: { id: CollectionId, document_id: DocumentId },
  responses: { 200: { description: 'The document.', json: Document } },
})

export const getDocumentText = operation('getDocumentText', 'GET', '/v1/collections/{id}/documents/{document_id}/text', {
  tag: 'Knowledge',
  summary: "Read a document's text",
  description:
    'Returns part of the text that was read from the file: from an offset or from a page on, to the end of a page or of the ' +
    'text, and at most `length` characters. The text is not a list, so there is no `limit`. To get the next part, send ' +
    '`next_offset` as `offset`, with the same `page_end`. While a document is ingested for the first time, and after that has ' +
    'failed, it is the text that has been read so far, which is empty before the file has been read. `document_status` shows ' +
    'which it is. The file as you uploaded it is at `/v1/files/{id}/content`. Requires the scope `knowledge:read`.',
  params: { id: CollectionId, document_id: DocumentId },
  query: {
    page_start: optional(
      integer(
        'The page to begin with, from 1. Leave it out if you send `offset`, and for a document without pages, such as one of plain ' +
          'text: it is refused then.',
        { minimum: 1 },
      ),
    ),
    page_end: optional(
      integer(
        'The last page to return, at least `page_start`. By default the last page of the document. Refused for a document without pages.',
        { minimum: 1 },
      ),
    ),
    offset: optional(
      integer('The offset of the first character to return, in UTF-16 code units. 0 by default.', { minimum: 0, maximum: 2_147_483_647 }),
    ),
    length: optional(
      integer('The most characters to return, in UTF-16 code units. `next_offset` says where the rest begins.', {
        minimum: 1,
        maximum: 262_144,
        default: 65536,
      }),
    ),
    format: optional(
      oneOf(
        ['json', 'text'],
        'With `text`, the response is the text alone. The header `x-next-offset` has `next_offset`, and `x-document-status` has ' +
          '`document_status`.',
        { default: 'json' },
      ),
    ),
  },
  responses: { 200: { description: 'The part of the text.', json: DocumentText, content: { 'text/plain': string() } } },
})

export const listDocumentChunks = operation('listDocumentChunks', 'GET', '/v1/collections/{id}/documents/{document_id}/chunks', {
  tag: 'Knowledge',
  summary: "List a document's chunks",
  description:
    'Lists the chunks of a document in the order of its text. While a document is ingested for the first time, the list has ' +
    'those that are embedded so far, and after that has failed, those that had been; `document_status` shows which it is. ' +
    'Requires the scope `knowledge:read`.',
  params: { id: CollectionId, document_id: DocumentId },
  query: { limit: Limit, after: After, page_boxes: optional(boolean('With `true`, each chunk has `page_boxes`.', { default: false })) },
  responses: { 200: { description: 'One page of the list.', json: DocumentChunks } },
})

export const listDocumentVersions = operation('listDocumentVersions', 'GET', '/v1/collections/{id}/documents/{document_id}/versions', {
  tag: 'Knowledge',
  summary: "List a document's former versions",
  description:
    'Lists the versions before the live one, newest first. The service stores the last 20, and of each only its file, until you ' +
    'delete it. Requires the scope `knowledge:read`.',
  params: { id: CollectionId, document_id: DocumentId },
  responses: { 200: { description: 'The versions.', json: DocumentVersions } },
})

export const listSimilarDocuments = operation('listSimilarDocuments', 'GET', '/v1/collections/{id}/documents/{document_id}/similar', {
  tag: 'Knowledge',
  summary: 'List near-duplicates of a document',
  description:
    'Lists the ready documents of the collection with nearly the same text, most similar first. The list is empty unless the ' +
    'document is ready, and if an earlier version of the service read it. Requires the scope `knowledge:read`.',
  params: { id: CollectionId, document_id: DocumentId },
  query: { limit: optional(integer('The most documents to return.', { minimum: 1, maximum: 20, default: 10 })) },
  responses: { 200: { description: 'The documents.', json: SimilarDocuments } },
})

export const createDocuments = operation('createDocuments', 'POST', '/v1/collections/{id}/documents/attach', {
  tag: 'Knowledge',
  summary: 'Attach many files to a collection',
  description:
    'Attaches at most 100 files to a collection. Each file has its own result, in the order of the request. If one fails, the ' +
    'others are still attached. Requires the scope `knowledge:write`.',
  params: { id: CollectionId },
  body: DocumentsCreation,
  responses: { 200: { description: 'The results.', json: DocumentAttachments } },
})

export const retryDocuments = operation('retryDocuments', 'POST', '/v1/collections/{id}/documents/retry', {
  tag: 'Knowledge',
  summary: 'Retry many failed documents',
  description:
    'Starts the ingestion of at most 100 failed documents again. Documents with another status do not change. Each has its own ' +
    'result, in the order of the request. Requires the scope `knowledge:write`.',
  params: { id: CollectionId },
  body: DocumentSelection,
  responses: { 200: { description: 'The results.', json: DocumentRetries } },
})

export const deleteDocuments = operation('deleteDocuments', 'POST', '/v1/collections/{id}/documents/delete', {
  tag: 'Knowledge',
  summary: 'Detach many files from a collection',
  description:
    'Deletes at most 100 documents and their chunks. Each has its own result, in the order of the request. The files stay. ' +
    'Requires the scope `knowledge:write`.',
  params: { id: CollectionId },
  body: DocumentSelection,
  responses: { 200: { description: 'The results.', json: DocumentDeletions } },
})

export const addSite = operation('addSite', 'POST', '/v1/collections/{id}/sites', {
  tag: 'Knowledge',
  summary: 'Add the pages of a site',
  description:
    'Adds the pages that a sitemap or a page of links names, of the same host. They are fetched one after the other, a second ' +
    "apart. List the sources to see their progress. The service obeys the site's robots.txt. Requires the scope `knowledge:write`.",
  params: { id: CollectionId },
  body: SiteCreation,
  responses: { 200: { description: 'The URLs, including those that the collection already had.', json: SourceList } },
})

export const listSources = operation('listSources', 'GET', '/v1/collections/{id}/sources', {
  tag: 'Knowledge',
  summary: 'List the addresses of a collection',
  description: 'Lists the URLs whose content is in the collection. Requires the scope `knowledge:read`.',
  params: { id: CollectionId },
  query: { ...Page },
  responses: { 200: { description: 'One page of the list.', json: SourceList } },
})

export const deleteSource = operation('deleteSource', 'DELETE', '/v1/collections/{id}/sources/{source_id}', {
  tag: 'Knowledge',
  summary: 'Stop fetching an address',
  description: 'The service no longer fetches the address. The document stays. Requires the scope `knowledge:write`.',
  params: { id: CollectionId, source_id: SourceId },
  responses: { 200: { description: 'The object was deleted.', json: Deletion } },
})

export const refreshSource = operation('refreshSource', 'POST', '/v1/collections/{id}/sources/{source_id}/refresh', {
  tag: 'Knowledge',
  summary: 'Fetch an address again',
  description:
    'Fetches the address now. Content that has not changed costs nothing. Changed content becomes the next version of the ' +
    'document. Requires the scope `knowledge:write`.',
  params: { id: CollectionId, source_id: SourceId },
  responses: { 200: { description: 'The URL after the change.', json: Source } },
})
