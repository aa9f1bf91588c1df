import type { LanguageModelV4FilePart } from '@ai-sdk/provider'
import { refuse } from '../../../common/check.ts'
import type { Vendor } from './vendors.ts'

/**
 * An `image_url` part. `detail` is a hint, which goes to the vendors that have one. @throws {KisError} an address, and the vendor fetches
 * none; or a `data:` URI that cannot be read.
 */
export function imageOf(
  vendor: Vendor,
  image: { readonly url: string; readonly detail?: unknown },
  param: string,
): LanguageModelV4FilePart {
  const providerOptions = vendor.imageOptions?.(image.detail)
  const options = providerOptions ? { providerOptions } : {}
  if (image.url.slice(0, 5).toLowerCase() === 'data:') return { type: 'file', ...dataOf(image.url, param), ...options }
  if (!vendor.fetchesImages) refuse('unsupported_value', param, 'This model takes images as data: URIs, not from an address.')
  const url = URL.parse(image.url)
  if (!url) return refuse('invalid_request', param, `'${param}' is no address.`)
  return { type: 'file', mediaType: 'image/*', data: { type: 'url', url }, ...options }
}

/** RFC 2397. Base64 stays as it is: the vendors want it so. */
function dataOf(uri: string, param: string): Pick<LanguageModelV4FilePart, 'mediaType' | 'data'> {
  const comma = uri.indexOf(',')
  const head = uri.slice(5, comma)
  if (comma < 0 || head === '') return refuse('invalid_request', param, `'${param}' is no data: URI with a media type.`)
  const [mediaType = '', ...parameters] = head.toLowerCase().split(';')
  const content = uri.slice(comma + 1)
  if (parameters.at(-1) === 'base64') return { mediaType, data: { type: 'data', data: content } }
  try {
    return { mediaType, data: { type: 'data', data: Buffer.from(decodeURIComponent(content), 'utf8') } }
  } catch {
    return refuse('invalid_request', param, `'${param}' is no well-formed data: URI.`)
  }
}
