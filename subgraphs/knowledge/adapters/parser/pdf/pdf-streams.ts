import { constants, inflateSync } from 'node:zlib'
import { ParseFailure } from '../../../ports/document-parser.ts'

const STREAM = Buffer.from('stream')
/** A stream's dictionary stands right before it; no sane one is longer. */
const DICTIONARY_BYTES = 1_024

/**
 * Inflates what pdf.js would inflate for text, and counts: 300 MB of zeros take it half a minute. Pictures are left
 * out, because their pixels are never asked for. What hides from this (other filters, damage) meets the watchdogs of
 * time and memory.
 * @throws {ParseFailure} `limit_exceeded`
 */
export function checkPdfStreams(bytes: Uint8Array, maxInflatedBytes: number): void {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let left = maxInflatedBytes
  for (let at = file.indexOf(STREAM); at >= 0; at = file.indexOf(STREAM, at + STREAM.length)) {
    const data = startOfData(file, at + STREAM.length)
    if (data === undefined || isPicture(file, at)) continue
    left -= measureInflated(file.subarray(data), left)
    if (left <= 0) throw new ParseFailure('limit_exceeded', `The PDF inflates to more than ${maxInflatedBytes} bytes.`)
  }
}

/** Where the data begins, after the line end that the keyword must have, if it looks like zlib's (RFC 1950, 2.2). */
function startOfData(file: Buffer, after: number): number | undefined {
  const data = file[after] === 0x0d && file[after + 1] === 0x0a ? after + 2 : after + 1
  if (file[after] !== 0x0a && file[after] !== 0x0d) return undefined
  const first = file[data] ?? 0
  return (first & 0x0f) === 8 && ((first << 8) | (file[data + 1] ?? 0)) % 31 === 0 ? data : undefined
}

function isPicture(file: Buffer, keyword: number): boolean {
  const before = file.toString('latin1', Math.max(0, keyword - DICTIONARY_BYTES), keyword)
  return /\/Subtype\s*\/Image\b/.test(before.slice(before.lastIndexOf(' obj') + 1))
}

function measureInflated(data: Buffer, most: number): number {
  try {
    return inflateSync(data, { maxOutputLength: most, finishFlush: constants.Z_SYNC_FLUSH }).length
  } catch (error) {
    return (error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE' ? most : 0
  }
}
