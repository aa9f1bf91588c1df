import { type Measured, PCM_BITS_PER_SECOND } from './measured.ts'

const HERTZ = [0, 88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000]
/** Offset in STREAMINFO, with which every file begins (RFC 9639, section 8.2). The rate has 20 bits. */
const RATE_AT = 18

/** Frames of FLAC (RFC 9639, section 9.1), recognised by their sync code and the checksum of their header. */
export function measureFlac(bytes: Buffer): Measured {
  const streamHertz = bytes.length > RATE_AT + 3 ? bytes.readUIntBE(RATE_AT, 3) >> 4 : 0
  let seconds = 0
  for (let at = bytes.indexOf(0xff); at !== -1 && at + 6 <= bytes.length; at = bytes.indexOf(0xff, at + 1)) {
    if ((bytes[at + 1]! & 0xfe) === 0xf8) seconds += secondsOfFrame(bytes, at, streamHertz)
  }
  return { ms: seconds * 1_000, soundBytes: bytes.length, mostBitsPerSecond: PCM_BITS_PER_SECOND }
}

function secondsOfFrame(bytes: Buffer, start: number, streamHertz: number): number {
  const [third, fourth] = [bytes[start + 2]!, bytes[start + 3]!]
  const [sizeCode, rateCode] = [third >> 4, third & 15]
  if (sizeCode === 0 || rateCode === 15 || fourth >> 4 > 10 || (fourth & 1) === 1) return 0
  // The frame's number, in UTF-8 of up to 7 bytes.
  const lead = Math.clz32(~(bytes[start + 4]! << 24))
  let at = start + 4 + Math.max(1, lead)
  if (lead === 1 || lead > 7) return 0
  const take = (count: number) => {
    const value = at + count <= bytes.length ? bytes.readUIntBE(at, count) : 0
    at += count
    return value
  }
  const samples = sizeCode === 1 ? 192 : sizeCode < 6 ? 144 << sizeCode : sizeCode < 8 ? take(sizeCode - 5) + 1 : 1 << sizeCode
  const hertz =
    rateCode === 0
      ? streamHertz
      : rateCode < 12
        ? HERTZ[rateCode]!
        : rateCode === 12
          ? take(1) * 1_000
          : take(2) * (rateCode === 14 ? 10 : 1)
  if (at >= bytes.length || hertz === 0 || crc8(bytes.subarray(start, at)) !== bytes[at]) return 0
  // Some decoders use the stream's rate, others the frame's.
  return samples / (streamHertz > 0 ? Math.min(hertz, streamHertz) : hertz)
}

function crc8(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80 ? (crc << 1) ^ 0x07 : crc << 1) & 0xff
  }
  return crc
}
