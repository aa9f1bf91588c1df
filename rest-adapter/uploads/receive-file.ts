import { gatewayOperation } from '../../schema/operations.ts'
import type { Call } from '../http/route.ts'
import { appendStream, PIECE_BYTES } from './append-stream.ts'
import { FILE, type FileData } from './file-object.ts'

export const UPLOAD = gatewayOperation(`mutation UploadFile($input: UploadFileInput!) { uploadFile(input: $input) { file { ${FILE} } } }`)
const CREATE = gatewayOperation('mutation CreateFormUpload($input: CreateUploadInput!) { createUpload(input: $input) { upload { id } } }')
const COMPLETE = gatewayOperation(`mutation CompleteFormUpload($input: CompleteUploadInput!) {
  completeUpload(input: $input) { upload { file { ${FILE} } } } }`)
/** What the form calls the name and the content. */
const NAMES = { name: 'file', contentBase64: 'file' }

const CANCEL = gatewayOperation('mutation CancelFormUpload($id: ID!) { cancelUpload(id: $id) { upload { id } } }')

/**
 * A file whose bytes have come in, and which is not stored yet. Call one of the two. It is stored also if the client has
 * left by then.
 */
export interface ReceivedFile {
  /** Stores it. If that fails, nothing of it is left. */
  store(): Promise<FileData>
  discard(): Promise<void>
}

/**
 * Reads the bytes of a form's file, whose length is unknown. It holds one piece: a small file, or the next piece of an
 * upload. If it fails, nothing of the file is left.
 */
export async function receiveFile(call: Call, name: string, source: AsyncIterable<Uint8Array>): Promise<ReceivedFile> {
  const chunks = source[Symbol.asyncIterator]()
  const held: Uint8Array[] = []
  let heldBytes = 0
  while (heldBytes <= PIECE_BYTES) {
    const { done, value } = await chunks.next()
    if (done) return smallFile(call, name, Buffer.concat(held))
    held.push(value)
    heldBytes += value.length
  }
  const { id } = (await call.executeDetached(CREATE, { input: { name } }, NAMES)).createUpload.upload
  const discard = () => call.cleanUp(CANCEL, { id })
  try {
    await appendStream(call, id, 0, joined(held, chunks), NAMES)
  } catch (error) {
    await discard()
    throw error
  }
  return {
    discard,
    async store() {
      try {
        return (await call.executeDetached(COMPLETE, { input: { id } })).completeUpload.upload.file!
      } catch (error) {
        await discard()
        throw error
      }
    },
  }
}

/** A large file as one text would hold up the whole process; a small one takes one call. */
function smallFile(call: Call, name: string, bytes: Buffer): ReceivedFile {
  return {
    discard: async () => undefined,
    async store() {
      const input = { name, contentBase64: bytes.toString('base64') }
      return (await call.executeDetached(UPLOAD, { input }, NAMES)).uploadFile.file
    },
  }
}

async function* joined(first: readonly Uint8Array[], rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* first
  yield* { [Symbol.asyncIterator]: () => rest }
}
