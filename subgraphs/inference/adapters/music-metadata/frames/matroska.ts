import { AAC_BITS_PER_SECOND, type Measured, OPUS_BITS_PER_SECOND, USUAL_PACKET_MS } from './measured.ts'
import { opusPacketMs } from './opus.ts'

/** Elements that contain others are entered; all others are read or skipped (RFC 9559). */
const ID = {
  segment: 0x18538067,
  info: 0x1549a966,
  timestampScale: 0x2ad7b1,
  tracks: 0x1654ae6b,
  trackEntry: 0xae,
  trackNumber: 0xd7,
  trackType: 0x83,
  codecId: 0x86,
  cluster: 0x1f43b675,
  timestamp: 0xe7,
  blockGroup: 0xa0,
  block: 0xa1,
  simpleBlock: 0xa3,
} as const
const NUMBERS: readonly number[] = [ID.timestampScale, ID.trackNumber, ID.trackType, ID.timestamp]
const BLOCKS: readonly number[] = [ID.block, ID.simpleBlock]
const PARENTS: readonly number[] = [ID.segment, ID.info, ID.tracks, ID.trackEntry, ID.cluster, ID.blockGroup]
const CLUSTER = Buffer.from([0x1f, 0x43, 0xb6, 0x75])
const MAX_CODEC_LENGTH = 32
const AUDIO = 2
/** Other codecs that decoders find here, each frame a packet. */
const PACKETS = /^A_(AAC|MPEG|AC3|EAC3)/
/** The default scale, in nanoseconds. */
const DEFAULT_SCALE = 1_000_000

interface Track {
  type: number
  isOpus: boolean
  isPackets: boolean
  packetsMs: number
  first: number
  last: number
}

/**
 * Audio blocks of WebM: packets of Opus by their own length, those of AAC, MP3 and AC-3 by their usual one, other codecs
 * by the times of their blocks.
 */
export function measureMatroska(bytes: Buffer): Measured {
  const tracks = new Map<number, Track>()
  let entry: Track = newTrack()
  let scale = DEFAULT_SCALE
  let clusterTime = 0
  let soundBytes = 0
  for (let at = 0; at < bytes.length; ) {
    const element = elementAt(bytes, at)
    if (!element) {
      // As decoders do: after broken data, continue at the next cluster.
      at = bytes.indexOf(CLUSTER, at + 1)
      if (at === -1) break
      continue
    }
    const { id, from, to } = element
    if (id === ID.trackEntry) entry = newTrack()
    else if (id === ID.trackNumber) tracks.set(readNumber(bytes, from, to), entry)
    else if (id === ID.trackType) entry.type = readNumber(bytes, from, to)
    else if (id === ID.codecId) {
      const codec = bytes.toString('latin1', from, Math.min(to, from + MAX_CODEC_LENGTH))
      entry.isOpus = codec.startsWith('A_OPUS')
      entry.isPackets = PACKETS.test(codec)
    } else if (id === ID.timestampScale) scale = readNumber(bytes, from, to)
    else if (id === ID.timestamp) clusterTime = readNumber(bytes, from, to)
    else if (id === ID.simpleBlock || id === ID.block) {
      const number = vintAt(bytes, from)
      const track = number && tracks.get(number.value)
      if (number && track?.type === AUDIO && number.to + 3 <= to) {
        const time = clusterTime + bytes.readInt16BE(number.to)
        track.first = Math.min(track.first, time)
        track.last = Math.max(track.last, time)
        if (track.isOpus) track.packetsMs += packetsMs(bytes, number.to + 2, to)
        else if (track.isPackets) track.packetsMs += countPackets(bytes, number.to + 2) * USUAL_PACKET_MS
        soundBytes += to - number.to - 3
      }
    }
    at = PARENTS.includes(id) ? from : to
  }
  const lengths = [...tracks.values()].map(({ packetsMs, first, last }) => Math.max(packetsMs, ((last - first) * scale) / 1e6))
  const mostBitsPerSecond = [...tracks.values()].every(({ type, isOpus }) => isOpus || type !== AUDIO)
    ? OPUS_BITS_PER_SECOND
    : AAC_BITS_PER_SECOND
  return { ms: Math.max(0, ...lengths.filter(Number.isFinite)), soundBytes, mostBitsPerSecond }
}

/**
 * Duration of the packets of a block, whose flags are at `flags`. Laced packets have equal lengths (RFC 9559, section
 * 10.3), and their sizes precede the first.
 */
function packetsMs(bytes: Buffer, flags: number, to: number): number {
  const lacing = lacingOf(bytes, flags)
  if (lacing === 0) return opusPacketMs(bytes[flags + 1] ?? 0, bytes[flags + 2] ?? 0)
  const count = countPackets(bytes, flags)
  // Each size takes a byte, or a few more. The packets follow.
  const first = Math.min(lacing === 2 ? flags + 2 : flags + 1 + count, to - 1)
  return count * opusPacketMs(bytes[first]!, bytes[first + 1] ?? 0)
}

function countPackets(bytes: Buffer, flags: number): number {
  return lacingOf(bytes, flags) === 0 ? 1 : (bytes[flags + 1] ?? 0) + 1
}

function lacingOf(bytes: Buffer, flags: number): number {
  return (bytes[flags]! >> 1) & 3
}

const newTrack = (): Track => ({
  type: 0,
  isOpus: false,
  isPackets: false,
  packetsMs: 0,
  first: Number.POSITIVE_INFINITY,
  last: Number.NEGATIVE_INFINITY,
})

/**
 * An element's id and the place of its content. Null when there is none, or none that a decoder would skip: of unknown
 * size, too long for a number, or beyond the end.
 */
function elementAt(bytes: Buffer, at: number): { readonly id: number; readonly from: number; readonly to: number } | null {
  const idLength = Math.clz32(bytes[at]!) - 23
  if (idLength > 4 || at + idLength >= bytes.length) return null
  const size = vintAt(bytes, at + idLength)
  if (!size) return null
  const id = bytes.readUIntBE(at, idLength)
  const end = size.isUnknown ? bytes.length : size.to + size.value
  if (!PARENTS.includes(id)) {
    if (size.isUnknown || (NUMBERS.includes(id) && size.value > 8)) return null
    if (end > bytes.length && !BLOCKS.includes(id)) return null
  }
  return { id, from: size.to, to: Math.min(end, bytes.length) }
}

/** A number whose first byte gives its length (RFC 8794, section 4). All ones means "unknown". */
function vintAt(bytes: Buffer, at: number): { readonly value: number; readonly isUnknown: boolean; readonly to: number } | null {
  const length = at < bytes.length ? Math.clz32(bytes[at]!) - 23 : 9
  if (length > 8 || at + length > bytes.length) return null
  const mask = 0xff >> length
  let value = bytes[at]! & mask
  let isUnknown = value === mask
  for (let index = 1; index < length; index++) {
    const byte = bytes[at + index]!
    value = value * 256 + byte
    isUnknown &&= byte === 0xff
  }
  return { value, isUnknown, to: at + length }
}

function readNumber(bytes: Buffer, from: number, to: number): number {
  let value = 0
  for (const byte of bytes.subarray(from, Math.min(to, from + 8))) value = value * 256 + byte
  return value
}
