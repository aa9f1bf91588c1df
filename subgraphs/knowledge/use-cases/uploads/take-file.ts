import { KisError, NotFound } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import type { FileRecord } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { uploadFile } from '../files/files.ts'
import { completeUpload } from './complete-upload.ts'
import { findFileOf } from './uploads.ts'

export interface GivenFile {
  readonly name?: string | null
  readonly contentBase64?: string | null
  /** The id of an upload that has all its bytes. */
  readonly file?: string | null
}

/**
 * Stores a file whose bytes are given, or have been uploaded.
 * @throws {KisError} what `uploadFile` and `completeUpload` throw; `invalid_request` if both are given, or neither is
 */
export async function takeFile(deps: Deps, context: LinkContext, { name, contentBase64, file }: GivenFile): Promise<FileRecord> {
  requireScope(context.caller, 'knowledge:write')
  if (typeof file === 'string') {
    if (typeof contentBase64 === 'string')
      throw new KisError('invalid_request', 'Give `file` or `contentBase64`, not both.', { param: 'input.file' })
    const stored = await findFileOf(deps, await completeUpload(deps, context, { id: file, ...(name && { name }) }))
    if (!stored) throw new NotFound('upload', file, 'input.file')
    return stored
  }
  for (const [param, value] of Object.entries({ name, contentBase64 }))
    if (typeof value !== 'string')
      throw new KisError('missing_required_parameter', 'Give `file` of a multipart request, or `name` and `contentBase64`.', {
        param: `input.${param}`,
      })
  return uploadFile(deps, context, { name: name!, contentBase64: contentBase64! })
}
