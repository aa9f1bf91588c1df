import { type Measured, OPUS_BITS_PER_SECOND } from './measured.ts'
import { opusPacketMs } from './opus.ts'

const PAGE = Buffer.from('OggS')
const HEADER_BYTES = 27
const NOTHING = Buffer.alloc(0)
/** Flags of a page: its first packet continues from the page before; it begins a stream. */
const CONTINUED = 1
const BEGINS = 2
/** `OpusHead` and `OpusTags` are not audio. */
const OPUS = Buffer.from('Opus').readUInt32BE()

interface Stream {
  readonly isOpus: boolean
  /** The first bytes of the packet that continues in the next page. */
  open: Buffer
}

/**
 * Packets of Opus in pages of Ogg (RFC 3533, RFC 7845), by their own length; for other codecs only their bytes. Streams
 * are played one after the other. A page is also looked for inside another: one with a wrong checksum is not a page,
 * and decoders continue after its header.
 */
export function measureOgg(bytes: Buffer): Measured {
  const streams = new Map<number, Stream>()
  let ms = 0
  let soundBytes = 0
  for (let at = bytes.indexOf(PAGE); at !== -1 && at + HEADER_BYTES <= bytes.length; at = bytes.indexOf(PAGE, at + HEADER_BYTES)) {
    const serial = bytes.readUInt32LE(at + 14)
    const lacing = bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + bytes[at + 26]!)
    let from = at + HEADER_BYTES + lacing.length
    let stream = streams.get(serial)
    const flags = bytes[at + 5]!
    if (!stream || flags & BEGINS) {
      stream = { isOpus: bytes.toString('latin1', from, from + 8) === 'OpusHead', open: NOTHING }
      streams.set(serial, stream)
    }
    if (!(flags & CONTINUED)) stream.open = NOTHING
    let size = 0
    for (const length of lacing) {
      size += length
      if (length === 255) continue
      if (stream.isOpus && stream.open.length + size > 0) ms += packetMs(stream.open, bytes, from)
      stream.open = NOTHING
      from += size
      soundBytes += size
      size = 0
    }
    if (size > 0) {
      stream.open = Buffer.concat([stream.open, bytes.subarray(from, from + 2)]).subarray(0, 2)
      soundBytes += size
    }
  }
  return { ms, soundBytes: Math.min(soundBytes, bytes.length), mostBitsPerSecond: OPUS_BITS_PER_SECOND }
}

/** For a packet whose first bytes may be in an earlier page. */
function packetMs(open: Buffer, bytes: Buffer, from: number): number {
  if (open.length === 0 && from + 4 <= bytes.length && bytes.readUInt32BE(from) === OPUS) return 0
  const [toc = bytes[from] ?? 0, second = bytes[from + (open.length === 0 ? 1 : 0)] ?? 0] = open
  return opusPacketMs(toc, second)
}
