import { constants, inflateSync } from 'node:zlib'
import { sizeText } from '../../../../common/sizes.ts'
import { ParseFailure } from '../../../ports/document-parser.ts'

const STREAM = Buffer.from('stream')
/** Bytes before a stream that may contain its dictionary. Real dictionaries are shorter. */
const DICTIONARY_BYTES = 1_024

/** The keys of fonts, of functions, and of lists of objects. */
const NOT_DRAWN = /\/(?:Length1|FunctionType|First|Index)\b|\/Subtype\s*\/(?!Form\b)/

/**
 * Inflates the streams that pdf.js would inflate for text, and counts the bytes. pdf.js takes half a minute for 300 MB
 * of zeros. Images are skipped, because reading text does not need their pixels. The limits of time and memory catch
 * what this check misses, such as other filters and corrupted streams.
 * @returns the bytes of the largest stream that a page may draw
 * @throws {ParseFailure} `limit_exceeded` if the streams inflate to more than `maxInflatedBytes`.
 */
export function checkPdfStreams(bytes: Uint8Array, maxInflatedBytes: number): number {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let left = maxInflatedBytes
  let largest = 0
  for (let at = file.indexOf(STREAM); at >= 0; at = file.indexOf(STREAM, at + STREAM.length)) {
    const data = startOfData(file, at + STREAM.length)
    const dictionary = readDictionary(file, at)
    if (data === undefined || /\/Subtype\s*\/Image\b/.test(dictionary)) continue
    const inflated = measureInflated(file.subarray(data), left)
    if (!NOT_DRAWN.test(dictionary)) largest = Math.max(largest, inflated)
    left -= inflated
    if (left <= 0) throw new ParseFailure('limit_exceeded', `The PDF inflates to more than ${sizeText(maxInflatedBytes)}.`)
  }
  return largest
}

/**
 * Returns the start of a stream's data, after the line end that follows the keyword. Returns undefined if the data does
 * not look like zlib's (RFC 1950, 2.2).
 */
function startOfData(file: Buffer, after: number): number | undefined {
  const data = file[after] === 0x0d && file[after + 1] === 0x0a ? after + 2 : after + 1
  if (file[after] !== 0x0a && file[after] !== 0x0d) return undefined
  const first = file[data] ?? 0
  return (first & 0x0f) === 8 && ((first << 8) | (file[data + 1] ?? 0)) % 31 === 0 ? data : undefined
}

function readDictionary(file: Buffer, keyword: number): string {
  const before = file.toString('latin1', Math.max(0, keyword - DICTIONARY_BYTES), keyword)
  return before.slice(before.lastIndexOf(' obj') + 1)
}

function measureInflated(data: Buffer, most: number): number {
  try {
    return inflateSync(data, { maxOutputLength: most, finishFlush: constants.Z_SYNC_FLUSH }).length
  } catch (error) {
    return (error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE' ? most : 0
  }
}
