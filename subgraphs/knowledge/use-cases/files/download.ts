import { type ByteRequest, type ByteResponse, respondWithBytes } from '../../../common/bytes/byte-response.ts'
import { isAbort } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import type { FileRecord } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { blobId } from './blobs.ts'
import { bytesLost, getFile } from './files.ts'
import { streamBlob } from './pieces.ts'

/**
 * Returns a path from which the file can be downloaded for one minute.
 * @throws {NotFound} if the organization has no such file.
 */
export async function signDownload(
  deps: Pick<Deps, 'store' | 'bytePaths'>,
  { caller }: LinkContext,
  id: string,
): Promise<{ readonly file: FileRecord; readonly path: string; readonly expiresAt: Date }> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  const file = await getFile(deps, organizationId, id)
  return { file, ...(await deps.bytePaths.sign({ kind: 'file', organizationId, key: id })) }
}

/**
 * Opens the file of a path that `signDownload` returned.
 * @throws {KisError} `permission_denied` if the path is forged or has expired.
 * @throws {NotFound} if the file is gone.
 */
export async function openDownload(
  { store, blobs, bytePaths, log }: Pick<Deps, 'store' | 'blobs' | 'bytePaths' | 'log'>,
  { requestId, signal }: Pick<LinkContext, 'requestId' | 'signal'>,
  request: ByteRequest,
): Promise<ByteResponse> {
  const { organizationId, key } = await bytePaths.verify(request.path)
  const file = await getFile({ store }, organizationId, key)
  const { name, mediaType, sizeBytes, sha256 } = file
  const blob = await store.blobs.findOne({ _id: blobId(organizationId, sha256) })
  const lost = () => bytesLost(store, file)
  if (!blob && sizeBytes > 0) throw await lost()
  const read = (range: { readonly offset: number; readonly length: number }) =>
    streamBlob(blobs, { bytesKey: '', ...blob, sizeBytes }, lost, range)
  const response = await respondWithBytes(request, { organizationId, name, mediaType, sizeBytes, sha256, read }, signal)
  // The client sees only a closed connection.
  response.body.once('error', (error) => {
    if (!isAbort(error)) log.error({ requestId, err: error, fileId: key }, 'a download was interrupted')
  })
  return response
}
