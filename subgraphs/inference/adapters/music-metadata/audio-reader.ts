import { parseBuffer } from 'music-metadata'
import type { AudioFormat, AudioReader } from '../../ports/audio-reader.ts'

const MEDIA_TYPES: Readonly<Record<AudioFormat, string>> = {
  flac: 'audio/flac',
  mp3: 'audio/mpeg',
  mp4: 'audio/mp4',
  ogg: 'audio/ogg',
  wav: 'audio/wav',
  webm: 'audio/webm',
}

/** Reads the headers of sound with music-metadata. Its parsers of other formats never see a file: they are not needed, and could be attacked. */
export const audioReader: AudioReader = {
  async read(bytes) {
    const format = formatOf(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    if (!format) return null
    const metadata = await parseBuffer(bytes, { mimeType: MEDIA_TYPES[format] }, { duration: true, skipCovers: true }).catch(() => null)
    const { sampleRate, duration } = metadata?.format ?? {}
    if (!sampleRate) return null
    return { format, durationMs: duration !== undefined && duration > 0 ? Math.ceil(duration * 1_000) : null }
  },
}

/** By the first bytes, as each format's specification has them. */
function formatOf(bytes: Buffer): AudioFormat | null {
  const at = (start: number, end: number) => bytes.toString('latin1', start, end)
  if (at(0, 4) === 'fLaC') return 'flac'
  if (at(0, 4) === 'OggS') return 'ogg'
  if (at(0, 4) === 'RIFF' && at(8, 12) === 'WAVE') return 'wav'
  if (at(4, 8) === 'ftyp') return 'mp4'
  if (at(0, 4) === '\x1a\x45\xdf\xa3') return 'webm'
  // A tag, or the sync word of an MPEG frame whose layer is not the reserved one.
  if (at(0, 3) === 'ID3' || (bytes[0] === 0xff && (bytes[1]! & 0xe0) === 0xe0 && (bytes[1]! & 0x06) !== 0)) return 'mp3'
  return null
}
