import type { LanguageModelV4FilePart } from '@ai-sdk/provider'
import { refuse } from '../../../common/check.ts'
import { isDataUri, splitDataUri, typeOfImage } from '../../domain/chat/images.ts'
import type { Vendor } from './vendors.ts'

/** Base64 characters that are enough to detect the type of an image. */
const BEGINNING = 16

/**
 * Translates an `image_url` part. `detail` is a hint for vendors that support it.
 * @throws {KisError} `invalid_request`: the part has an address and the vendor fetches none, or a malformed `data:` URI
 */
export function toFilePart(
  vendor: Vendor,
  image: { readonly url: string; readonly detail?: unknown },
  param: string,
): LanguageModelV4FilePart {
  const providerOptions = vendor.imageOptions?.(image.detail)
  const options = providerOptions ? { providerOptions } : {}
  if (isDataUri(image.url)) {
    const { type, base64 } = splitDataUri(image.url, param)
    // Vendors refuse an image with a wrong type, and callers often declare every image as JPEG.
    const mediaType = typeOfImage(Buffer.from(base64.slice(0, BEGINNING), 'base64')) ?? type
    // Base64 stays unchanged, because the vendors accept it as it is.
    return { type: 'file', mediaType, data: { type: 'data', data: base64 }, ...options }
  }
  if (!vendor.fetchesImages) refuse('unsupported_value', param, 'This model accepts images as data: URIs, not from an address.')
  const url = URL.parse(image.url)
  if (!url) return refuse('invalid_request', param, `'${param}' is not an address.`)
  return { type: 'file', mediaType: 'image/*', data: { type: 'url', url }, ...options }
}
