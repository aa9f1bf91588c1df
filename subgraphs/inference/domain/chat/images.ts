import { imageDimensionsFromData } from 'image-dimensions'
import { readBase64 } from '../../../common/base64.ts'
import { refuse } from '../../../common/check.ts'
import { sizeText } from '../../../common/sizes.ts'
import type { ChatRequest } from './chat-request.ts'

/** Types that every vendor with vision accepts. */
const TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const
type ImageType = (typeof TYPES)[number]

/** Largest image, decoded from base64. Vendors accept between 5 and 20 MB. */
export const MAX_IMAGE_BYTES = 10 * 2 ** 20
/**
 * More pixels than any vendor uses (all scale down 8,000 × 8,000), and as many as a server can decode without running
 * out of memory: 160 MB.
 */
const MAX_PIXELS = 40_000_000
/** The header of PNG, GIF and WebP states the size within these bytes. The library copies its input. */
const HEADER_BYTES = 64
/**
 * Most segments before the frame of a JPEG, of up to 64 KiB each: metadata, profiles, previews. Together they exceed
 * the largest image.
 */
const MAX_SEGMENTS = 1_024
/** Longest head of a `data:` URI, before its comma. */
const MAX_HEAD_LENGTH = 128
const HTTP_URL = /^https?:\/\//i
const DATA_URI = /^data:/i
/** Characters outside the standard base64 alphabet. */
const OTHER_THAN_STANDARD = /[^A-Za-z0-9+/=]/

/** An image of a request, and the path of its address in the request. */
export interface ImagePart {
  readonly url: string
  readonly param: string
}

interface Part {
  readonly type?: unknown
  readonly image_url?: { readonly url: string }
}

/** Lists every image of a checked request. */
export function listImageParts({ messages }: Pick<ChatRequest, 'messages'>): readonly ImagePart[] {
  return messages.flatMap(({ content }, message) => {
    if (!Array.isArray(content)) return []
    return (content as readonly Part[]).flatMap(({ type, image_url: image }, part) =>
      type === 'image_url' && image ? { url: image.url, param: `messages[${message}].content[${part}].image_url.url` } : [],
    )
  })
}

/** Returns the request with its image addresses replaced. `urls` maps old addresses to new ones. */
export function withImageUrls(request: ChatRequest, urls: ReadonlyMap<string, string>): ChatRequest {
  const replaced = (part: Part) => {
    const url = part.type === 'image_url' ? urls.get(part.image_url!.url) : undefined
    return url === undefined ? part : { ...part, image_url: { ...part.image_url, url } }
  }
  const messages = request.messages.map((message) =>
    Array.isArray(message.content) ? { ...message, content: (message.content as readonly Part[]).map(replaced) } : message,
  )
  return { ...request, messages }
}

/** Returns the request with its images in padded standard base64 of one line: vendors accept no other form. */
export function inStandardBase64(request: ChatRequest): ChatRequest {
  const urls = new Map<string, string>()
  for (const { url, param } of listImageParts(request)) {
    if (!isDataUri(url)) continue
    const { base64 } = splitDataUri(url, param)
    if (base64.length % 4 === 0 && !OTHER_THAN_STANDARD.test(base64)) continue
    const bytes = decodeImage(url, param)
    urls.set(url, toDataUri(checkImage(bytes, param), bytes))
  }
  return urls.size === 0 ? request : withImageUrls(request, urls)
}

export function isDataUri(url: string): boolean {
  return DATA_URI.test(url)
}

/**
 * Accepts an http or https address to any host, or a `data:` URI, whose image is checked here.
 * @throws {KisError} the address or the image is wrong
 */
export function checkImageUrl(url: string, param: string): void {
  if (HTTP_URL.test(url)) return
  if (!isDataUri(url)) refuse('invalid_request', param, 'An image is a public http or https address, or a data: URI of an image.')
  checkImage(decodeImage(url, param), param)
}

/**
 * Decodes a base64 `data:` URI (RFC 2397).
 * @throws {KisError} `invalid_request`: it is not a base64 `data:` URI
 */
function decodeImage(uri: string, param: string): Buffer {
  const { type, base64 } = splitDataUri(uri, param)
  if (!TYPES.includes(type as ImageType) && type !== 'image/jpg') refuseType(param)
  const { sizeBytes, decode } = readBase64(base64)
  if (sizeBytes > MAX_IMAGE_BYTES) refuseSize(param)
  return decode() ?? refuse('invalid_request', param, 'The image is not well-formed base64.')
}

/**
 * Returns the parts of a base64 `data:` URI.
 * @throws {KisError} `uri` is not a base64 `data:` URI
 */
export function splitDataUri(uri: string, param: string): { readonly type: string; readonly base64: string } {
  const comma = uri.slice(0, MAX_HEAD_LENGTH).indexOf(',')
  const [type = '', ...parameters] = uri.slice('data:'.length, Math.max(comma, 0)).toLowerCase().split(';')
  if (comma < 0 || parameters.at(-1) !== 'base64')
    return refuse('invalid_request', param, "The image is not a data: URI such as 'data:image/png;base64,…'.")
  return { type, base64: uri.slice(comma + 1) }
}

/**
 * Returns the type of the image by its first bytes, whatever its name says. The size comes from the header.
 * @throws {KisError} the bytes are not an accepted image, or the image is too large
 */
export function checkImage(bytes: Uint8Array, param: string): ImageType {
  if (bytes.length > MAX_IMAGE_BYTES) refuseSize(param)
  const type = typeOfImage(bytes) ?? refuseType(param)
  const { width, height } =
    (type === 'image/jpeg' ? sizeOfJpeg(bytes) : imageDimensionsFromData(bytes.subarray(0, HEADER_BYTES))) ?? refuseType(param)
  if (width === 0 || height === 0) refuse('invalid_request', param, `The image is ${width} × ${height} pixels.`)
  if (width * height > MAX_PIXELS) {
    const most = MAX_PIXELS / 1_000_000
    refuse('payload_too_large', param, `The image is ${width} × ${height} pixels; an image may have at most ${most} million.`)
  }
  return type
}

/** Reads the first 12 bytes. Null: none of the four types. */
export function typeOfImage(bytes: Uint8Array): ImageType | null {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 12)).toString('latin1')
  if (start.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (/^GIF8[79]a/.test(start)) return 'image/gif'
  return /^RIFF.{4}WEBP/s.test(start) ? 'image/webp' : null
}

/**
 * Width and height from the frame's header (ITU-T T.81, annex B). Null: no frame within `MAX_SEGMENTS`. The library
 * searches byte by byte, which blocks the event loop for 150 ms on a JPEG's first bytes followed by 10 MiB of zeros
 * (measured).
 */
function sizeOfJpeg(bytes: Uint8Array): { readonly width: number; readonly height: number } | null {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  let offset = 2
  for (let segments = 0; segments < MAX_SEGMENTS && offset + 9 <= view.length; segments++) {
    if (view[offset] !== 0xff) return null
    const marker = view[offset + 1]!
    // Markers from 0xc0 to 0xcf are frames, except three that are tables.
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
      return { height: view.readUInt16BE(offset + 5), width: view.readUInt16BE(offset + 7) }
    // Entropy-coded data, or the end, comes before a frame.
    if (marker === 0xda || marker === 0xd9) return null
    if (marker === 0xff) offset += 1
    else offset += 2 + view.readUInt16BE(offset + 2)
  }
  return null
}

export function toDataUri(type: ImageType, bytes: Buffer): string {
  return `data:${type};base64,${bytes.toString('base64')}`
}

function refuseType(param: string): never {
  return refuse('unsupported_file_type', param, 'The image is not a png, jpeg, gif or webp.')
}

/** @throws {KisError} `payload_too_large`: always */
export function refuseSize(param: string): never {
  return refuse('payload_too_large', param, `An image may have at most ${sizeText(MAX_IMAGE_BYTES)}.`)
}
