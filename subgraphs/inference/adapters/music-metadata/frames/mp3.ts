import { type Measured, PACKED_BITS_PER_SECOND } from './measured.ts'

/** kbit/s by version (1; 2 and 2.5), layer (I, II, III) and index (ISO/IEC 11172-3, 2.4.2.3; 13818-3). */
const KBITS: Readonly<Record<string, readonly number[]>> = {
  '1-1': [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  '1-2': [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  '1-3': [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  '2-1': [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  '2-2': [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  '2-3': [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
}
const HERTZ = [44_100, 48_000, 32_000]
/** Follows the frame's header and at most 32 bytes of side information. */
const FACTS = /Xing|Info|VBRI/
const FACTS_BYTES = 40

/** Frames of MPEG audio, wherever they are. Other data is skipped, as decoders do. */
export function measureMp3(bytes: Buffer): Measured {
  const start = tagBytes(bytes)
  let seconds = 0
  let frames = 0
  for (let at = bytes.indexOf(0xff, start); at !== -1 && at + 4 <= bytes.length; ) {
    const frame = frameAt(bytes, at)
    // The first frame may contain facts about the others instead of audio.
    if (frame && !(frames++ === 0 && FACTS.test(bytes.toString('latin1', at, at + FACTS_BYTES)))) seconds += frame.seconds
    at = bytes.indexOf(0xff, at + (frame?.size ?? 1))
  }
  return { ms: seconds * 1_000, soundBytes: bytes.length - start, mostBitsPerSecond: PACKED_BITS_PER_SECOND }
}

/**
 * ID3v2 gives its size in four bytes of seven bits. With one of eight, or a version of 255, it is not a tag (ID3v2.4.0,
 * section 3.1), and decoders play its contents.
 */
function tagBytes(bytes: Buffer): number {
  if (bytes.toString('latin1', 0, 3) !== 'ID3' || bytes.length < 10) return 0
  if (bytes[3] === 0xff || bytes[4] === 0xff || bytes.subarray(6, 10).some((byte) => byte & 0x80)) return 0
  const size = bytes.subarray(6, 10).reduce((sum, byte) => sum * 128 + byte, 0)
  return Math.min(10 + size, bytes.length)
}

function frameAt(bytes: Buffer, at: number): { readonly seconds: number; readonly size: number } | null {
  const [second, third] = [bytes[at + 1]!, bytes[at + 2]!]
  if ((second & 0xe0) !== 0xe0) return null
  const version = (second >> 3) & 3
  const layer = 4 - ((second >> 1) & 3)
  const kbits = KBITS[`${version === 3 ? 1 : 2}-${layer}`]?.[third >> 4]
  const base = HERTZ[(third >> 2) & 3]
  if (version === 1 || !kbits || !base) return null
  const hertz = base / (version === 3 ? 1 : version === 2 ? 2 : 4)
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1_152
  const padding = ((third >> 1) & 1) * (layer === 1 ? 4 : 1)
  const size = Math.floor((samples / 8) * ((kbits * 1_000) / hertz)) + padding
  return { seconds: samples / hertz, size }
}
