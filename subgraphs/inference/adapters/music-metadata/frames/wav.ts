import { type Measured, PACKED_BITS_PER_SECOND, PCM_BITS_PER_SECOND } from './measured.ts'

const PCM = 1
const FLOATS = 3
/** A-law and µ-law: one byte for each sample, whatever the file says. */
const BYTES = [6, 7]
/** The format is given further on. */
const EXTENSIBLE = 0xfffe

/**
 * Samples of a WAV file by the bytes that it has, whatever it says about them. For compressed formats only the bytes
 * count, because only the file gives their rate.
 */
export function measureWav(bytes: Buffer): Measured {
  const rates: number[] = []
  let at = 12
  for (; at + 8 <= bytes.length && bytes.toString('latin1', at, at + 4) !== 'data'; at = behind(bytes, at))
    if (bytes.toString('latin1', at, at + 4) === 'fmt ' && at + 24 <= bytes.length) rates.push(readBytesPerSecond(bytes, at + 8))
  const soundBytes = soundBytesFrom(bytes, at)
  // If a file has several formats, decoders differ in which one they use.
  const least = Math.min(...rates)
  if (rates.length === 0 || least === 0) return { ms: 0, soundBytes, mostBitsPerSecond: PACKED_BITS_PER_SECOND }
  return { ms: (soundBytes / least) * 1_000, soundBytes, mostBitsPerSecond: PCM_BITS_PER_SECOND }
}

/** 0: compressed, or no format at all. */
function readBytesPerSecond(bytes: Buffer, at: number): number {
  const told = bytes.readUInt16LE(at)
  const format = told === EXTENSIBLE && at + 26 <= bytes.length ? bytes.readUInt16LE(at + 24) : told
  const bits = BYTES.includes(format) ? 8 : format === PCM || format === FLOATS ? bytes.readUInt16LE(at + 14) : 0
  return (bits * bytes.readUInt16LE(at + 2) * bytes.readUInt32LE(at + 4)) / 8
}

/**
 * The audio chunks, if chunks follow one another to the end of the file; otherwise everything after the first chunk's
 * header.
 */
function soundBytesFrom(bytes: Buffer, start: number): number {
  let sound = 0
  let at = start
  for (; at + 8 <= bytes.length; at = behind(bytes, at)) {
    if (!/^[ -~]{4}$/.test(bytes.toString('latin1', at, at + 4))) break
    if (bytes.toString('latin1', at, at + 4) !== 'data') continue
    const size = bytes.readUInt32LE(at + 4)
    // Written by a stream of unknown length: it goes to the end.
    if (size === 0) break
    sound += size
  }
  const isWhole = at === bytes.length || at === bytes.length + 1
  return isWhole ? Math.min(sound, bytes.length) : Math.max(0, bytes.length - start - 8)
}

/** Where the next chunk begins. Sizes are padded to two bytes. */
function behind(bytes: Buffer, at: number): number {
  const size = bytes.readUInt32LE(at + 4)
  return at + 8 + size + (size % 2)
}
