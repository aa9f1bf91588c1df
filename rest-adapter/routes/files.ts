import { Readable } from 'node:stream'
import { gatewayOperation } from '../../schema/operations.ts'
import { KisError, NotFound } from '../../subgraphs/common/errors.ts'
import { NAMED_PAGE_INFO, NAMED_PAGE_NAMES, namedList, namedPageVariables } from '../http/lists.ts'
import { type Call, deleted, ok, type Route } from '../http/route.ts'
import { FILE, type FileData, toFile } from '../uploads/file-object.ts'
import { requireLength, uploadFile } from '../uploads/upload-file.ts'

interface PieceData {
  readonly content: string
  readonly length: number
  readonly file: Pick<FileData, 'name' | 'mediaType' | 'sizeBytes'>
}

const LIST = gatewayOperation(`query Files($first: Int!, $after: String, $order: SortOrder, $sortBy: ListSort, $filter: FileFilter) {
  files(first: $first, after: $after, order: $order, sortBy: $sortBy, filter: $filter) {
    edges { node { ${FILE} } } ${NAMED_PAGE_INFO} } }`)
const GET = gatewayOperation(`query File($id: ID!) { file(id: $id) { ${FILE} } }`)
const DELETE = gatewayOperation('mutation DeleteFile($id: ID!) { deleteFile(id: $id) { id } }')
const CONTENT = gatewayOperation(`query FileContent($id: ID!, $offset: Float!, $length: Int!) {
  fileContent(id: $id, offset: $offset, length: $length) { content length file { name mediaType sizeBytes } } }`)

/** Bytes of one piece of a download: the most that `fileContent` gives. */
const PIECE_BYTES = 1024 * 1024

async function pieceAt({ ask, params }: Call, offset: number): Promise<PieceData> {
  const data = await ask(CONTENT, { id: params.id, offset, length: PIECE_BYTES })
  return data.fileContent
}

async function* readBytes(call: Call, first: PieceData): AsyncGenerator<Buffer> {
  let offset = 0
  for (let piece = first; ; piece = await pieceAt(call, offset)) {
    offset += piece.length
    yield Buffer.from(piece.content, 'base64')
    if (offset >= first.file.sizeBytes) return
    // Without this, a store that has lost bytes would be asked forever.
    if (piece.length === 0) throw new KisError('internal', 'The file is shorter than its record says.')
  }
}

/** Writes the header as in RFC 6266: the name in UTF-8 (RFC 5987), and in ASCII for old clients. */
function attachment(name: string): string {
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  // JSON can carry a lone surrogate, which UTF-8 cannot.
  const utf8 = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${ascii}"; filename*=UTF-8''${utf8}`
}

export const fileRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/files',
    body: 'upload',
    refuse: requireLength,
    handle: uploadFile,
  },
  {
    method: 'GET',
    path: '/v1/files',
    async handle({ ask, query }) {
      const data = await ask(LIST, namedPageVariables(query), NAMED_PAGE_NAMES)
      return ok(namedList(data.files, toFile, query))
    },
  },
  {
    method: 'GET',
    path: '/v1/files/{id}',
    async handle({ ask, params }) {
      const { file } = await ask(GET, { id: params.id })
      if (!file) throw new NotFound('file', params.id!)
      return ok(toFile(file))
    },
  },
  {
    method: 'DELETE',
    path: '/v1/files/{id}',
    async handle({ ask, params }) {
      const data = await ask(DELETE, { id: params.id })
      return deleted('file', data.deleteFile.id)
    },
  },
  {
    method: 'GET',
    path: '/v1/files/{id}/content',
    asIs: true,
    async handle(call) {
      const first = await pieceAt(call, 0)
      const { name, mediaType, sizeBytes } = first.file
      const headers = {
        'content-type': mediaType,
        'content-length': String(sizeBytes),
        'content-disposition': attachment(name),
        // A stored page must not run as one of our own.
        'x-content-type-options': 'nosniff',
      }
      // HEAD requests also come here. They must not read the whole file.
      const bytes = call.method === 'HEAD' ? [] : readBytes(call, first)
      return { status: 200, headers, body: Readable.from(bytes, { objectMode: false }) }
    },
  },
]
