import type { Static } from '@sinclair/typebox'
import { constant, define, integer, oneOf, operation, optional, string } from './build.ts'
import { AfterPlace, Deletion, Limit, listOf, NameContains, Order, Since, SortBy, UnixSeconds, Until } from './shared.ts'

export const FileUpload = define('FileUpload').closed({
  file_name: string(
    'The file name with its extension: 1 to 255 characters, without path separators, control characters and characters that ' +
      'turn text (U+202A to U+202E, U+2066 to U+206F).',
    { minLength: 1, maxLength: 255 },
  ),
  content_base64: string(
    'The content in base64, standard or URL-safe, with or without padding and line breaks. At most 25 MiB of content, unless ' +
      'the plan allows less. Send a larger file as a form or as a resumable upload.',
  ),
})

export const FileForm = define('FileForm').closed({
  file: string("The file, with its name: at most the plan's largest file.", { format: 'binary' }),
  purpose: optional(string('Any word. It comes back in this response only.', { maxLength: 64 })),
})

export const File = define('File').object('A file that you uploaded.', {
  id: string('The id: `file_…`.'),
  object: constant('file'),
  created_at: UnixSeconds,
  file_name: string('The file name, as uploaded.'),
  media_type: string('The media type. The service detects it from the bytes, and distinguishes text formats by the extension.'),
  status: oneOf(['uploaded'], 'Always `uploaded`. For the progress of the ingestion, see the status of its documents.'),
  checksum: string('The checksum of the content: `sha256:` and 64 hexadecimal digits.'),
  size_bytes: integer('The size of the content in bytes.'),
})
export type File = Static<typeof File>

export const OpenAiFile = define('OpenAiFile').extend(
  [File],
  "A file as OpenAI's clients know it, beside the fields that the service has.",
  { bytes: integer('The size of the content in bytes.'), filename: string('The file name.'), purpose: string('As you sent it.') },
)

export const FileUploaded = define('FileUploaded').object({ message: File })

export const FileOfForm = define('FileOfForm').extend(
  [OpenAiFile, FileUploaded],
  "A file as OpenAI's clients know it, and the response to an upload in JSON.",
  {},
)

export const FileList = define('FileList').as(listOf(File))

export const UploadId = string('The id of the upload, `upload_…`.')
export const FileId = string('The id of the file, `file_…`.')

export const uploadFile = operation('uploadFile', 'POST', '/v1/files', {
  tag: 'Knowledge',
  summary: 'Upload a file',
  description:
    'Uploads a file. The service reads PDF, DOCX, DOC, ODT, RTF, XLSX, ODS, CSV, TSV, PPTX, ODP, EPUB, HTML, MHT, Markdown, ' +
    'plain text, source code, JSON and JSON Lines, XML, EML, MBOX, MSG, SRT, VTT, ZIP. It detects the format from the content, ' +
    'not from the name. It also takes images (PNG, JPEG, TIFF, WebP) for collections with OCR, and audio for collections with ' +
    'a speech model and for workflows. Any other file fails with `unsupported_file_type`. An organization stores and counts ' +
    'the same bytes only once. If the file exceeds the plan, the request fails with `storage_quota_exceeded` and nothing is ' +
    "stored. You may send the bytes as base64 in JSON, or as a form, which may be as large as the plan's largest file. " +
    'Requires the scope `knowledge:write`.',
  // Also for openapi-python-client 0.29: it imports `Unset`, which bodies of two types need, for parameters alone.
  headers: { 'X-Request-Id': optional(string('An id of your own. The response has it as `x-client-request-id`.')) },
  body: FileUpload,
  form: FileForm,
  responses: {
    200: { description: 'The file, if you sent a form.', json: FileOfForm },
    201: { description: 'The file, if you sent JSON.', json: FileUploaded },
  },
})

export const listFiles = operation('listFiles', 'GET', '/v1/files', {
  tag: 'Knowledge',
  summary: 'List files',
  description:
    'Lists the files of your organization. Requires the scope `knowledge:read`. With `name_contains` a page may have fewer ' +
    'items than you request, or none, while `has_more` is true. Then, and with `sort_by=name`, `last_id` is a cursor: send it ' +
    'as `after`, with the same filters.',
  query: { limit: Limit, after: AfterPlace, order: Order, sort_by: SortBy, name_contains: NameContains, since: Since, until: Until },
  responses: { 200: { description: 'One page of the list.', json: FileList } },
})

export const createTusUpload = operation('createTusUpload', 'POST', '/v1/uploads/tus', {
  tag: 'Knowledge',
  summary: 'Begin a resumable upload (tus)',
  description:
    'Begins a resumable upload by the [tus protocol](https://tus.io/protocols/resumable-upload) 1.0.0, with the extensions ' +
    'creation, creation-with-upload, expiration and termination. Use one of its clients, with this address as endpoint and ' +
    'your key in `authorization`. The header `upload-length` has the size of the file, and `upload-metadata` its `filename`. ' +
    '`location` of the response is the address of the upload. Requires the scope `knowledge:write`.',
  responses: { 201: { description: 'The upload is at `location`.' } },
})

export const headTusUpload = operation('headTusUpload', 'HEAD', '/v1/uploads/tus/{id}', {
  tag: 'Knowledge',
  summary: 'Get the offset of a resumable upload',
  description:
    'The header `upload-offset` of the response has the number of stored bytes. Once the upload is complete, `x-kis-file-id` is ' +
    'the id of its file. Requires the scope `knowledge:write`.',
  params: { id: UploadId },
  responses: { 200: { description: 'The upload is there.' } },
})

export const patchTusUpload = operation('patchTusUpload', 'PATCH', '/v1/uploads/tus/{id}', {
  tag: 'Knowledge',
  summary: 'Continue a resumable upload',
  description:
    'Appends the body, of the type `application/offset+octet-stream`, at `upload-offset`. What has come in stays if the ' +
    'connection breaks. The response to the last bytes has the id of the file in `x-kis-file-id`, or the reason why the file is ' +
    'refused. A request may take 5 minutes. Requires the scope `knowledge:write`.',
  params: { id: UploadId },
  bytes: { 'application/offset+octet-stream': string(undefined, { format: 'binary' }) },
  responses: { 204: { description: 'The bytes are stored.' } },
})

export const deleteTusUpload = operation('deleteTusUpload', 'DELETE', '/v1/uploads/tus/{id}', {
  tag: 'Knowledge',
  summary: 'Cancel a resumable upload',
  description: 'Ends the upload and deletes its bytes. Requires the scope `knowledge:write`.',
  params: { id: UploadId },
  responses: { 204: { description: 'The upload has ended.' } },
})

export const getFile = operation('getFile', 'GET', '/v1/files/{id}', {
  tag: 'Knowledge',
  summary: 'Get a file',
  description: 'Gets the record of a file, without its content. Requires the scope `knowledge:read`.',
  params: { id: FileId },
  responses: { 200: { description: 'The file.', json: File } },
})

export const deleteFile = operation('deleteFile', 'DELETE', '/v1/files/{id}', {
  tag: 'Knowledge',
  summary: 'Delete a file',
  description: 'Deletes a file. Fails with `in_use` while the file is attached to a collection. Requires the scope `knowledge:write`.',
  params: { id: FileId },
  responses: { 200: { description: 'The object was deleted.', json: Deletion } },
})

export const downloadFile = operation('downloadFile', 'GET', '/v1/files/{id}/content', {
  tag: 'Knowledge',
  summary: 'Download a file',
  description:
    'Returns the bytes as you uploaded them. The header `content-type` has the media type, and `content-disposition` the file ' +
    'name. A download counts as one request of your key, and fails with `rate_limit_exceeded` while your organization has too ' +
    'many unfinished. To resume a download, send `range` and, as `if-range`, the `etag` that you got; with several ranges you ' +
    'get the whole file. Requires the scope `knowledge:read`.',
  params: { id: FileId },
  headers: {
    Range: optional(string('The bytes to return, such as `bytes=1048576-`.')),
    'If-Range': optional(string('An `etag`. If the file has another one, `range` is ignored.')),
    'If-None-Match': optional(string('The `etag` of bytes that you have. If the file has it, the response is 304.')),
  },
  responses: {
    200: { description: 'The bytes of the file.', content: { '*/*': string(undefined, { format: 'binary' }) } },
    206: { description: 'A range of the bytes.', content: { '*/*': string(undefined, { format: 'binary' }) } },
    304: { description: 'You have the bytes.' },
    416: { description: 'The file has no bytes in the range. The header `content-range` has its length.' },
  },
})
