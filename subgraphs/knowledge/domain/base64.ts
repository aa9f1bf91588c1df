import { readBase64 } from '../../common/base64.ts'
import { KisError } from '../../common/errors.ts'
import { sizeTexts } from '../../common/sizes.ts'

/**
 * Decodes base64 in any common variant.
 * @throws {KisError} `invalid_request`: the text is not base64
 * @throws {KisError} `payload_too_large`: the result would exceed `maxBytes`, which is checked before decoding
 */
export function decodeBase64(text: string, maxBytes: number, param: string): Uint8Array {
  const { sizeBytes, decode } = readBase64(text)
  if (sizeBytes > maxBytes) {
    const [has, most] = sizeTexts(sizeBytes, maxBytes)
    const message = `The content has ${has}; ${most} are allowed here. Send a larger file in parts, by a resumable upload.`
    throw new KisError('payload_too_large', message, { param })
  }
  const bytes = decode()
  if (!bytes) throw new KisError('invalid_request', 'The content is not base64. Check that nothing was cut off or added.', { param })
  return bytes
}
