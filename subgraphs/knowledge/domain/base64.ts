import { KisError } from '../../common/errors.ts'

/**
 * Decodes standard base64, padded or not. Checks the whole text, because Buffer skips what it does not know.
 * @throws {KisError} `invalid_request`: it is not base64
 * @throws {KisError} `payload_too_large`: it has more than `maxBytes`, which is checked before decoding
 */
export function decodeBase64(text: string, maxBytes: number, param: string): Uint8Array {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const digits = text.length - padding
  const sizeBytes = Math.floor((digits * 3) / 4)
  if (sizeBytes > maxBytes) {
    throw new KisError('payload_too_large', `The file has ${sizeBytes} bytes; the plan allows ${maxBytes}.`, { param })
  }
  const wellFormed = digits % 4 !== 1 && (padding === 0 || text.length % 4 === 0) && !/[^A-Za-z0-9+/]/.test(text.slice(0, digits))
  if (!wellFormed) throw new KisError('invalid_request', 'The content is not standard base64.', { param })
  return Buffer.from(text, 'base64')
}
