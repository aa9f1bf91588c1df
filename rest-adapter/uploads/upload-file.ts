import type { IncomingHttpHeaders } from 'node:http'
import { MIMEType } from 'node:util'
import type { FastifyRequest } from 'fastify'
import { KisError } from '../../subgraphs/common/errors.ts'
import { sizeText } from '../../subgraphs/common/sizes.ts'
import type { RestConfig } from '../config.ts'
import { isForm, isJson } from '../http/forms.ts'
import { type Answer, type Call, created, type JsonObject, ok } from '../http/route.ts'
import { toFile, toOpenAiFile } from './file-object.ts'
import { readBytes, readFormStream, requireFileTaken } from './form-stream.ts'
import { type ReceivedFile, receiveFile, UPLOAD } from './receive-file.ts'

/** Bytes of a form beside its file. */
export const FORM_BYTES = 64 * 1024

/** Takes a file as base64 in JSON, as a form, or as bare bytes. All but JSON is stored while it comes in. */
export async function uploadFile(call: Call): Promise<Answer> {
  if (isForm(call)) return uploadForm(call)
  if (call.stream) return uploadBytes(call)
  const { ask, body } = call
  const input = { name: body.file_name, contentBase64: body.content_base64 }
  const data = await ask(UPLOAD, { input }, { name: 'file_name' })
  return created({ message: toFile(data.uploadFile.file) })
}

async function uploadForm(call: Call): Promise<Answer> {
  const { fields, file } = await receiveForm(call)
  const stored = await file.store()
  return ok({ ...toOpenAiFile(stored, fields.purpose ?? 'user_data'), message: toFile(stored) })
}

/** The form may turn out wrong after its file has come in. Then nothing of the file is left. */
async function receiveForm(call: Call): Promise<{ readonly fields: JsonObject; readonly file: ReceivedFile }> {
  let received: ReceivedFile | undefined
  try {
    const { fields, taken } = await readFormStream(call, {
      param: 'file',
      async take(name, bytes) {
        received = await receiveFile(call, name, bytes, { name: 'file', contentBase64: 'file' })
        return received
      },
    })
    call.checkForm(fields)
    return { fields, file: requireFileTaken('file', taken) }
  } catch (error) {
    await received?.discard()
    throw error
  }
}

async function uploadBytes(call: Call): Promise<Answer> {
  const name = call.query.name ?? readFileName(call.headers)
  if (typeof name !== 'string')
    throw new KisError(
      'missing_required_parameter',
      'Name the file: `?name=report.pdf` in the address, or `content-disposition: attachment; filename="report.pdf"`. If the body is JSON, say so with `content-type: application/json`.',
      { param: 'name' },
    )
  const file = await receiveFile(call, name, readBytes(call.stream!), { name: 'name', contentBase64: 'body' })
  return created({ message: toFile(await file.store()) })
}

/** The file name of `content-disposition` (RFC 6266), whose parameters are written as those of a media type. */
function readFileName({ 'content-disposition': header }: IncomingHttpHeaders): string | undefined {
  if (header === undefined) return undefined
  try {
    const { params } = new MIMEType(header.replace(/^[^;]*/, 'a/b'))
    const extended = /^utf-8'[^']*'(.*)$/i.exec(params.get('filename*') ?? '')?.[1]
    if (extended !== undefined) return decodeURIComponent(extended)
    // Node reads headers as Latin-1; clients write names in UTF-8.
    const plain = params.get('filename')
    return plain === null ? undefined : Buffer.from(plain, 'latin1').toString('utf8')
  } catch (cause) {
    throw new KisError('invalid_request', 'The header `content-disposition` is malformed.', { cause })
  }
}

/** Refuses an upload by its length before it is read. Of an unknown length it is refused when it has become too long. */
export function requireLength({ headers }: FastifyRequest, { fileBytes }: Pick<RestConfig, 'fileBytes'>): void {
  if (isJson({ headers }) || Number(headers['content-length'] ?? 0) <= fileBytes + FORM_BYTES) return
  throw new KisError('payload_too_large', `A file has at most ${sizeText(fileBytes)}. Split it into smaller files.`, { param: 'file' })
}
