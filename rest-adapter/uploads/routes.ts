import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { NotFound } from '../../subgraphs/common/errors.ts'
import { readFormStream, requireFileTaken } from '../http/form-stream.ts'
import { requireForm } from '../http/forms.ts'
import { type Answer, type Call, ok, type Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'
import { appendStream } from './append.ts'
import { FILE, toOpenAiFile } from './file-object.ts'

const UPLOAD = `id name sizeBytes status metadata createdAt expiresAt file { ${FILE} }` as const

/** Bytes of one part: as many as OpenAI takes. */
const MAX_PART_BYTES = 64 * 1024 * 1024

type UploadData = Selected<'Upload', typeof UPLOAD>

const CREATE = gatewayOperation(`mutation CreatePendingUpload($input: CreateUploadInput!) {
  createUpload(input: $input) { upload { ${UPLOAD} } } }`)
const CREATE_PART = gatewayOperation(`mutation CreateUploadPart($input: CreateUploadInput!) {
  createUpload(input: $input) { upload { id createdAt } } }`)
const GET = gatewayOperation(`query PendingUpload($id: ID!) { upload(id: $id) { ${UPLOAD} } }`)
const COMPLETE = gatewayOperation(`mutation CompletePendingUpload($input: CompleteUploadInput!) {
  completeUpload(input: $input) { upload { ${UPLOAD} } } }`)
const CANCEL = gatewayOperation(`mutation CancelPendingUpload($id: ID!) { cancelUpload(id: $id) { upload { ${UPLOAD} } } }`)
const CANCEL_PART = gatewayOperation('mutation CancelUploadPart($id: ID!) { cancelUpload(id: $id) { upload { id } } }')

const NAMES = { name: 'filename', sizeBytes: 'bytes', partIds: 'part_ids', partOf: 'upload_id' }

const STATUSES = { OPEN: 'pending', COMPLETED: 'completed', CANCELLED: 'cancelled' } as const

function toUpload({ id, name, sizeBytes, status, metadata, createdAt, expiresAt, file }: UploadData) {
  const purpose = readPurpose(metadata)
  return {
    id,
    object: 'upload',
    bytes: sizeBytes,
    created_at: unixSeconds(createdAt),
    expires_at: unixSeconds(expiresAt),
    filename: name,
    purpose,
    status: STATUSES[status],
    file: file && toOpenAiFile(file, purpose),
  }
}

/** An upload by another protocol has something else in its metadata. */
function readPurpose(metadata: string | null): string {
  return /^purpose=([\w-]{1,64})$/.exec(metadata ?? '')?.[1] ?? 'user_data'
}

async function addPart(call: Call): Promise<Answer> {
  const uploadId = call.params.id!
  let partId: string | undefined
  try {
    const { fields, taken } = await readFormStream(call, {
      param: 'data',
      maxBytes: MAX_PART_BYTES,
      async take(_fileName, bytes) {
        const { upload } = (await call.ask(CREATE_PART, { input: { name: 'part', partOf: uploadId } }, NAMES)).createUpload
        partId = upload.id
        await appendStream(call, upload.id, 0, bytes, { contentBase64: 'data' })
        return upload
      },
    })
    call.checkForm(fields)
    const { id, createdAt } = requireFileTaken('data', taken)
    return ok({ id, object: 'upload.part', created_at: unixSeconds(createdAt), upload_id: uploadId })
  } catch (error) {
    if (partId !== undefined) await call.cleanUp(CANCEL_PART, { id: partId })
    throw error
  }
}

/** Uploads in parts, as OpenAI's clients send them. */
export const uploadRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/uploads',
    async handle({ ask, body }) {
      const input = { name: body.filename, sizeBytes: body.bytes, metadata: `purpose=${body.purpose}` }
      return ok(toUpload((await ask(CREATE, { input }, NAMES)).createUpload.upload))
    },
  },
  {
    method: 'GET',
    path: '/v1/uploads/{id}',
    async handle({ ask, params }) {
      const { upload } = await ask(GET, { id: params.id })
      if (!upload) throw new NotFound('upload', params.id!)
      return ok(toUpload(upload))
    },
  },
  { method: 'POST', path: '/v1/uploads/{id}/parts', body: 'stream', refuse: requireForm, handle: addPart },
  {
    method: 'POST',
    path: '/v1/uploads/{id}/complete',
    async handle({ ask, body, params }) {
      const input = { id: params.id, partIds: body.part_ids, md5: body.md5 }
      return ok(toUpload((await ask(COMPLETE, { input }, NAMES)).completeUpload.upload))
    },
  },
  {
    method: 'POST',
    path: '/v1/uploads/{id}/cancel',
    async handle({ ask, params }) {
      return ok(toUpload((await ask(CANCEL, { id: params.id })).cancelUpload.upload))
    },
  },
]
