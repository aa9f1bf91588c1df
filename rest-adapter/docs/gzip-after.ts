import { constants, crc32, deflateRawSync } from 'node:zlib'

/** The gzip header for deflated data without a time, a name and a system (RFC 1952, section 2.3). */
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255])

/**
 * Compresses a long prefix once. The returned function compresses a suffix and returns both as one gzip, at the CPU
 * cost of the suffix.
 */
export function gzipAfter(beginning: Buffer): (end: Buffer) => Buffer {
  // `Z_FULL_FLUSH` ends at a whole byte, so that other blocks can follow.
  const blocks = deflateRawSync(beginning, { level: 9, finishFlush: constants.Z_FULL_FLUSH })
  const crcOfBeginning = crc32(beginning)
  return (end) => {
    const trailer = Buffer.alloc(8)
    trailer.writeUInt32LE(crc32(end, crcOfBeginning), 0)
    trailer.writeUInt32LE(beginning.length + end.length, 4)
    return Buffer.concat([HEADER, blocks, deflateRawSync(end), trailer])
  }
}
