import type { FastifyRequest } from 'fastify'
import { KisError } from '../../subgraphs/common/errors.ts'
import { sizeText } from '../../subgraphs/common/sizes.ts'
import type { RestConfig } from '../config.ts'
import { isForm, isJson } from '../http/forms.ts'
import { type Call, created, type JsonObject, ok, type RouteResponse } from '../http/route.ts'
import { toFile, toOpenAiFile } from './file-object.ts'
import { readFormStream, requireUploaded } from './form-stream.ts'
import { type ReceivedFile, receiveFile, UPLOAD } from './receive-file.ts'

/** Bytes of a form beside its file. */
const FORM_BYTES = 64 * 1024

/** Takes a file as base64 in JSON, or as a form, which is stored while it comes in. */
export async function uploadFile(call: Call): Promise<RouteResponse> {
  if (isForm(call)) return uploadForm(call)
  const { execute, body } = call
  const input = { name: body.file_name, contentBase64: body.content_base64 }
  const data = await execute(UPLOAD, { input }, { name: 'file_name' })
  return created({ message: toFile(data.uploadFile.file) })
}

async function uploadForm(call: Call): Promise<RouteResponse> {
  const { fields, file } = await receiveForm(call)
  const stored = await file.store()
  return ok({ ...toOpenAiFile(stored, fields.purpose ?? 'user_data'), message: toFile(stored) })
}

/** The form may turn out wrong after its file has come in. Then nothing of the file is left. */
async function receiveForm(call: Call): Promise<{ readonly fields: JsonObject; readonly file: ReceivedFile }> {
  let received: ReceivedFile | undefined
  try {
    const { fields, uploaded } = await readFormStream(call, {
      param: 'file',
      async upload(name, bytes) {
        received = await receiveFile(call, name, bytes)
        return received
      },
    })
    call.checkForm(fields)
    return { fields, file: requireUploaded('file', uploaded) }
  } catch (error) {
    await received?.discard()
    throw error
  }
}

/**
 * Refuses, before it is read, a body that is neither JSON nor a form, and a form by its length. One of an unknown length
 * is refused when it has become too long.
 */
export function requireUpload({ headers }: FastifyRequest, { fileBytes }: Pick<RestConfig, 'fileBytes'>): void {
  if (isJson({ headers })) return
  if (!isForm({ headers }))
    throw new KisError(
      'invalid_request',
      'Send the file as a form, with `content-type: multipart/form-data`, or as base64 in JSON, with `content-type: application/json`.',
    )
  if (Number(headers['content-length'] ?? 0) > fileBytes + FORM_BYTES)
    throw new KisError('payload_too_large', `A file has at most ${sizeText(fileBytes)}. Split it into smaller files.`, { param: 'file' })
}
