import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { type Lock, type Locker, MemoryLocker, Server } from '@tus/server'
import { DataStore, Metadata, Upload } from '@tus/utils'
import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { KisError, NotFound } from '../../subgraphs/common/errors.ts'
import type { Call, RouteResponse } from '../http/route.ts'
import { appendStream } from './append-stream.ts'
import { EXTENSIONS, PATH, TUS_HEADERS } from './tus.ts'

const UPLOAD = 'id sizeBytes offset status metadata createdAt expiresAt file { id }'

type UploadData = Selected<'Upload', typeof UPLOAD>

const CREATE = gatewayOperation(`mutation CreateUpload($input: CreateUploadInput!) {
  createUpload(input: $input) { upload { ${UPLOAD} } } }`)
const GET = gatewayOperation(`query Upload($id: ID!) { upload(id: $id) { ${UPLOAD} } }`)
const COMPLETE = gatewayOperation(`mutation CompleteUpload($input: CompleteUploadInput!) {
  completeUpload(input: $input) { upload { file { id } } } }`)
const CANCEL = gatewayOperation('mutation CancelUpload($id: ID!) { cancelUpload(id: $id) { upload { id } } }')

const NAMES = { name: 'filename', sizeBytes: 'Upload-Length', metadata: 'Upload-Metadata' }

/** The service's error codes by the statuses of the protocol that are more specific than a bad request. */
const CODES = { 404: 'not_found', 409: 'in_use', 410: 'not_found', 413: 'payload_too_large' } as const

/**
 * Allows one writer of an upload at a time in this process: a client that returns ends its own earlier request, which
 * may hang. The offset separates writers in other processes.
 */
const locker = new MemoryLocker()

/**
 * The uploads of one caller, behind the library's interface. It has no state: any process may handle the next request.
 */
class CallersUploads extends DataStore {
  readonly #call: Call
  /** The file of the upload of this request, once it is complete. */
  fileId: string | undefined

  constructor(call: Call) {
    super()
    this.#call = call
    this.extensions = EXTENSIONS
  }

  override async create(upload: Upload): Promise<Upload> {
    if (upload.size === undefined)
      throw new KisError('invalid_request', 'Send the size of the file in the header `Upload-Length`.', { param: 'Upload-Length' })
    const { filename, name } = upload.metadata ?? {}
    const input = {
      name: filename ?? name ?? 'upload',
      sizeBytes: upload.size,
      metadata: this.#call.headers['upload-metadata'] as string | undefined,
    }
    const { createUpload } = await this.#call.execute(CREATE, { input }, NAMES)
    return Object.assign(upload, this.#describe(createUpload.upload))
  }

  override write(stream: Readable, id: string, offset: number): Promise<number> {
    return appendStream(this.#call, id, offset, stream)
  }

  override async getUpload(id: string): Promise<Upload> {
    const { upload } = await this.#call.execute(GET, { id })
    if (!upload || upload.status === 'CANCELLED') throw new NotFound('upload', id)
    this.fileId = upload.file?.id
    // A client that has sent everything returns for the response that it missed.
    if (upload.status === 'OPEN' && upload.offset === upload.sizeBytes && this.#call.method === 'HEAD') await this.complete(id)
    return this.#describe(upload)
  }

  override async remove(id: string): Promise<void> {
    await this.#call.execute(CANCEL, { id })
  }

  override getExpiration(): number {
    return this.#lifeMs
  }

  #lifeMs = 24 * 60 * 60_000

  async complete(id: string): Promise<void> {
    const { completeUpload } = await this.#call.execute(COMPLETE, { input: { id } })
    this.fileId = completeUpload.upload.file?.id
  }

  #describe({ id, sizeBytes, offset, metadata, createdAt, expiresAt }: UploadData): Upload {
    this.#lifeMs = Date.parse(expiresAt) - Date.parse(createdAt)
    return new Upload({
      id,
      size: sizeBytes,
      offset,
      ...(metadata !== null && { metadata: Metadata.parse(metadata) }),
      creation_date: createdAt,
    })
  }
}

/** Handles one request of the tus protocol. */
export async function handleTus(call: Call): Promise<RouteResponse> {
  const uploads = new CallersUploads(call)
  let failure: unknown
  const server = new Server({
    path: PATH,
    datastore: uploads,
    relativeLocation: true,
    locker: lockerOf(call.context.caller),
    async onUploadFinish(_request, { id }) {
      await uploads.complete(id)
      return {}
    },
    async onResponseError(_request, error) {
      failure = error
      return undefined
    },
  })
  let cut: unknown
  call.stream?.once('error', (error) => {
    cut = error
    // If bytes came in after the end of the body, `Readable.toWeb` would throw where nobody catches it.
    call.stream!.removeAllListeners('data')
  })
  const response = await server.handleWeb(toRequest(call))
  // The library reports everything that ends a body as an abort.
  if (cut instanceof KisError) throw cut
  if (failure instanceof Error) throw failure
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !name.startsWith('access-control-')))
  delete headers['content-length']
  if (uploads.fileId !== undefined) headers['x-kis-file-id'] = uploads.fileId
  if (response.status < 400) return { status: response.status, headers, body: null }
  const code = CODES[response.status as keyof typeof CODES] ?? 'invalid_request'
  call.setHeaders(TUS_HEADERS)
  throw new KisError(code, (await response.text()).trim() || 'The request does not follow the tus protocol.')
}

/** Returns a locker of the caller's own: callers cannot name each other's locks. */
function lockerOf(caller: string): Locker {
  return { newLock: (id: string): Lock => locker.newLock(`${caller} ${id}`) }
}

function toRequest({ headers, method, params, stream }: Call): Request {
  const url = `http://service${PATH}${params.id === undefined ? '' : `/${encodeURIComponent(params.id)}`}`
  const headerEntries = Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  const body = stream ? (Readable.toWeb(stream) as ReadableStream<Uint8Array>) : null
  return new Request(url, { method, headers: headerEntries, ...(body && { body, duplex: 'half' }) } as RequestInit)
}
