import { AAC_BITS_PER_SECOND, type Measured, USUAL_PACKET_MS } from './measured.ts'

/** Descriptors in `esds` (ISO/IEC 14496-1, 7.2.6): the bytes before those inside. */
const DESCRIPTORS: Readonly<Record<number, number>> = { 3: 3, 4: 13 }
const DECODER_SPECIFIC = 5
/** With this index, the rate follows in full. */
const EXPLICIT_HERTZ = 15
/** Boxes that contain others (ISO/IEC 14496-12). */
const PARENTS = ['moov', 'mvex', 'trak', 'mdia', 'minf', 'stbl', 'moof', 'traf']
const SAMPLES_OF_FRAME = 1_024
/** ISO/IEC 14496-3, table 1.18. */
const HERTZ = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350]
const DEFAULT_HERTZ = 48_000
/** Codecs of which each sample is a packet: Opus, AMR, MP3 and AC-3. Of PCM a sample is none. */
const PACKETS = ['Opus', 'samr', 'sawb', '.mp3', 'ac-3', 'ec-3']
/** Flags of `tfhd` and `trun` for their optional fields, and the fields' sizes. */
const TFHD_FIELDS: readonly (readonly [number, number])[] = [
  [0x1, 8],
  [0x2, 4],
  [0x8, 4],
]
const TFHD_DEFAULT_SIZE = 0x10
const TRUN_OFFSET = 0x1
const TRUN_FIRST_FLAGS = 0x4
const TRUN_SIZE = 0x200
const TRUN_SAMPLE_FIELDS = [0x100, TRUN_SIZE, 0x400, 0x800]

interface Track {
  id: number
  isSound: boolean
  isAac: boolean
  isPackets: boolean
  hertz: number
  frames: number
  bytes: number
}

/**
 * Frames of AAC in MP4, by the tables of their sizes; packets of others by their usual length; all else by bytes only. Fragments count for the track
 * that they name.
 */
export function measureMp4(bytes: Buffer): Measured {
  const tracks: Track[] = []
  let current = newTrack()
  let sizeOfSample = 0
  /** By track. */
  const defaultSizes = new Map<number, number>()
  for (let at = 0; at + 8 <= bytes.length; ) {
    const name = bytes.toString('latin1', at + 4, at + 8)
    const given = bytes.readUInt32BE(at)
    const header = given === 1 ? 16 : 8
    const size = given === 1 && at + 16 <= bytes.length ? Number(bytes.readBigUInt64BE(at + 8)) : given === 0 ? bytes.length - at : given
    if (size < header) break
    const box = bytes.subarray(at + header, at + size)
    if (name === 'trak') {
      current = newTrack()
      tracks.push(current)
    } else if (name === 'tkhd' && box.length >= 24) current.id = box.readUInt32BE(box[0] === 1 ? 20 : 12)
    else if (name === 'hdlr') current.isSound = box.toString('latin1', 8, 12) === 'soun'
    else if (name === 'stsd') readDescription(box, current)
    else if (name === 'stsz' && box.length >= 12) countSizes(box, current)
    else if (name === 'stz2' && box.length >= 12) countSmallSizes(box, current)
    else if (name === 'trex' && box.length >= 20) defaultSizes.set(box.readUInt32BE(4), box.readUInt32BE(16))
    else if (name === 'tfhd' && box.length >= 8) {
      const id = box.readUInt32BE(4)
      current = tracks.find((track) => track.id === id) ?? newTrack()
      sizeOfSample = defaultSize(box) || (defaultSizes.get(id) ?? 0)
    } else if (name === 'trun' && box.length >= 8) countRun(box, current, sizeOfSample)
    at += PARENTS.includes(name) ? header : size
  }
  const sound = tracks.filter(({ isSound }) => isSound)
  const ms = Math.max(0, ...sound.map(msOf))
  const soundBytes = Math.min(bytes.length, Math.max(0, ...sound.map((track) => track.bytes)))
  return { ms, soundBytes, mostBitsPerSecond: AAC_BITS_PER_SECOND }
}

const newTrack = (): Track => ({ id: 0, isSound: false, isAac: false, isPackets: false, hertz: DEFAULT_HERTZ, frames: 0, bytes: 0 })

function msOf({ isAac, isPackets, frames, hertz }: Track): number {
  return isAac ? (frames * SAMPLES_OF_FRAME * 1_000) / hertz : isPackets ? frames * USUAL_PACKET_MS : 0
}

/** The rate is in the decoder's own description, after `esds`. The track's box may give another. */
function readDescription(box: Buffer, track: Track): void {
  const codec = box.toString('latin1', 12, 16)
  track.isAac = codec === 'mp4a'
  track.isPackets = PACKETS.includes(codec)
  const esds = box.indexOf('esds')
  const start = esds === -1 ? -1 : decoderInfoAt(box, esds + 8)
  if (start === -1 || start + 2 > box.length) return
  const index = ((box[start]! & 7) << 1) | (box[start + 1]! >> 7)
  if (index !== EXPLICIT_HERTZ) track.hertz = HERTZ[index] ?? DEFAULT_HERTZ
  else if (start + 5 <= box.length) track.hertz = (box.readUInt32BE(start + 1) >>> 7) & 0xffffff || DEFAULT_HERTZ
}

/**
 * Where the content of DecoderSpecificInfo begins, inside the others; -1: there is none. Lengths take one to four
 * bytes.
 */
function decoderInfoAt(box: Buffer, from: number): number {
  for (let at = from; at < box.length; ) {
    const tag = box[at++]!
    while (at < box.length && box[at]! & 0x80) at++
    at++
    if (tag === DECODER_SPECIFIC) return at
    const before = DESCRIPTORS[tag]
    if (before === undefined) return -1
    at += before
  }
  return -1
}

function countSizes(box: Buffer, track: Track): void {
  const [size, count] = [box.readUInt32BE(4), box.readUInt32BE(8)]
  if (size > 0) {
    track.frames += count
    track.bytes += size * count
    return
  }
  const end = Math.min(box.length - 3, 12 + 4 * count)
  for (let at = 12; at < end; at += 4) {
    track.frames += 1
    track.bytes += box.readUInt32BE(at)
  }
}

/** Sizes of 4, 8 or 16 bits. */
function countSmallSizes(box: Buffer, track: Track): void {
  const bits = box[7]!
  if (![4, 8, 16].includes(bits)) return
  const count = Math.min(box.readUInt32BE(8), Math.floor(((box.length - 12) * 8) / bits))
  track.frames += count
  for (let index = 0; index < count; index++) {
    const at = 12 + Math.floor((index * bits) / 8)
    track.bytes += bits === 16 ? box.readUInt16BE(at) : bits === 8 ? box[at]! : (box[at]! >> (index % 2 === 0 ? 4 : 0)) & 15
  }
}

function defaultSize(box: Buffer): number {
  const flags = box.readUInt32BE(0) & 0xffffff
  if (!(flags & TFHD_DEFAULT_SIZE)) return 0
  const at = TFHD_FIELDS.reduce((sum, [flag, size]) => sum + (flags & flag ? size : 0), 8)
  return at + 4 <= box.length ? box.readUInt32BE(at) : 0
}

function countRun(box: Buffer, track: Track, sizeOfSample: number): void {
  const flags = box.readUInt32BE(0) & 0xffffff
  const count = box.readUInt32BE(4)
  const fields = TRUN_SAMPLE_FIELDS.filter((flag) => flags & flag)
  const from = 8 + (flags & TRUN_OFFSET ? 4 : 0) + (flags & TRUN_FIRST_FLAGS ? 4 : 0)
  const step = 4 * fields.length
  const there = step === 0 ? count : Math.min(count, Math.max(0, Math.floor((box.length - from) / step)))
  track.frames += there
  if (!fields.includes(TRUN_SIZE)) track.bytes += there * sizeOfSample
  else for (let index = 0; index < there; index++) track.bytes += box.readUInt32BE(from + index * step + 4 * fields.indexOf(TRUN_SIZE))
}
