import { gatewayOperation } from '../../schema/operations.ts'
import { requireFilePart } from '../http/forms.ts'
import { type Answer, type Call, ok } from '../http/route.ts'
import { appendStream, PIECE_BYTES } from './append.ts'
import { FILE, type FileData, toOpenAiFile } from './file-object.ts'

export const UPLOAD = gatewayOperation(`mutation UploadFile($input: UploadFileInput!) { uploadFile(input: $input) { file { ${FILE} } } }`)
const CREATE = gatewayOperation('mutation CreateFormUpload($input: CreateUploadInput!) { createUpload(input: $input) { upload { id } } }')
const COMPLETE = gatewayOperation(`mutation CompleteFormUpload($input: CompleteUploadInput!) {
  completeUpload(input: $input) { upload { file { ${FILE} } } } }`)
const CANCEL = gatewayOperation('mutation CancelFormUpload($id: ID!) { cancelUpload(id: $id) { upload { id } } }')

/** Stores the file of a form. */
export async function uploadForm(call: Call): Promise<Answer> {
  const file = requireFilePart(call.body.file, 'file')
  const stored = file.size > PIECE_BYTES ? await storeInPieces(call, file) : await storeWhole(call, file)
  return ok(toOpenAiFile(stored, call.body.purpose ?? 'user_data'))
}

async function storeWhole({ ask }: Call, file: File): Promise<FileData> {
  const contentBase64 = Buffer.from(await file.arrayBuffer()).toString('base64')
  const data = await ask(UPLOAD, { input: { name: file.name, contentBase64 } }, { name: 'file', contentBase64: 'file' })
  return data.uploadFile.file
}

/** Others take their turns between the pieces. A large file as one text would hold up the whole process. */
async function storeInPieces(call: Call, file: File): Promise<FileData> {
  const { upload } = (await call.ask(CREATE, { input: { name: file.name, sizeBytes: file.size } }, { name: 'file', sizeBytes: 'file' }))
    .createUpload
  let isWhole = false
  try {
    await appendStream(call, upload.id, 0, file.stream())
    isWhole = true
    return (await call.ask(COMPLETE, { input: { id: upload.id } })).completeUpload.upload.file!
  } catch (error) {
    // If the client leaves during the completion, the file is made all the same, as with a small one.
    if (!isWhole || !call.context.signal.aborted) await call.cleanUp(CANCEL, { id: upload.id })
    throw error
  }
}
