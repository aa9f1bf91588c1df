import { crc32, deflateSync } from 'node:zlib'

function chunk(type: string, content: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(content.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

/**
 * Returns a black PNG (RFC 2083). `claims` puts another size into the header than the rows have. `padding` adds that
 * many bytes of text.
 */
export function png(
  width = 2,
  height = 2,
  { claims = [width, height], padding = 0 }: { claims?: readonly [number, number]; padding?: number } = {},
): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(claims[0], 0)
  header.writeUInt32BE(claims[1], 4)
  header.set([8, 0], 8)
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    ...(padding > 0 ? [chunk('tEXt', Buffer.alloc(padding, 'a'))] : []),
    chunk('IDAT', deflateSync(Buffer.alloc((width + 1) * height))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** A complete GIF of one pixel. */
export const GIF = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')
/** The header of a JPEG of 3 × 2 pixels, up to its frame. */
export const JPEG = Buffer.from('ffd8ffe000104a46494600010100000100010000ffc0001108000200030301220002110103110100', 'hex')
/** A lossless WebP of one pixel. */
export const WEBP = Buffer.from('UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==', 'base64')

export function dataUri(bytes: Uint8Array, type = 'image/png'): string {
  return `data:${type};base64,${Buffer.from(bytes).toString('base64')}`
}
