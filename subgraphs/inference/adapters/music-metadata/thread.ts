import { type IFormat, parseBuffer } from 'music-metadata'
import { answering } from '../../../common/process/threads/thread-calls.ts'
import type { AudioFormat } from '../../ports/audio-reader.ts'
import { recordingMs } from './recording-length.ts'

/** Stereo of 24 bits at 192 kHz: the highest rate of any file. */
const MOST_BITS_PER_SECOND = 9_216_000
/**
 * The highest rate of compressed audio in each container. MP3 and WAV: MPEG audio; ADPCM and GSM, which WAV may have,
 * have lower rates. MP4: AAC in stereo at 48 kHz (ISO/IEC 14496-3, 4.5.3.3); WebM has lower rates. Ogg: Opus (RFC 6716,
 * section 2.1.1); Vorbis has a lower rate. FLAC is lossless, so its rate is that of its samples.
 */
const PACKED_BITS_PER_SECOND: Readonly<Record<AudioFormat, number>> = {
  flac: MOST_BITS_PER_SECOND,
  mp3: 448_000,
  mp4: 576_000,
  ogg: 510_000,
  wav: 448_000,
  webm: 576_000,
}

/** Codecs of WAV that are not compressed; the last one is WAVE_FORMAT_EXTENSIBLE. */
const SAMPLES = ['PCM', 'IEEE_FLOAT', 'ALAW', 'MULAW', 'non-PCM (65534)']

/** A request to the thread: the bytes of an audio file. */
export interface Question {
  readonly bytes: Uint8Array
  readonly mimeType: string
  readonly format: AudioFormat
}

/** What the header and the size of an audio file say of its length. */
export interface Found {
  readonly hasAudio: boolean
  /** 0: unknown. */
  readonly ms: number
}

export const call = answering(async ({ bytes, mimeType, format }: Question): Promise<Found> => {
  const { format: header, common } = await parseBuffer(bytes, { mimeType }, { duration: true })
  const audioBytes = bytes.length - (common.picture ?? []).reduce((sum, { data }) => sum + data.length, 0)
  const isPacked = format === 'wav' ? !SAMPLES.includes(header.codec ?? '') : !header.lossless && !header.hasVideo
  const mostBitsPerSecond = isPacked ? PACKED_BITS_PER_SECOND[format] : MOST_BITS_PER_SECOND
  const leastMs = (audioBytes * 8_000) / mostBitsPerSecond
  const ms = header.duration ? header.duration * 1_000 : unstatedMs(bytes, format, header, audioBytes)
  return { hasAudio: (header.sampleRate ?? 0) > 0, ms: ms > 0 ? Math.max(ms, leastMs) : 0 }
})

/** The length of a file that was written as a stream and states no length. 0: unknown. */
function unstatedMs(bytes: Uint8Array, format: AudioFormat, header: IFormat, audioBytes: number): number {
  if (format === 'webm') return recordingMs(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  const { sampleRate = 0, numberOfChannels = 0, bitsPerSample = 0 } = header
  const bitsPerSecond = sampleRate * numberOfChannels * bitsPerSample
  // FLAC is smaller than its samples.
  return format === 'flac' && bitsPerSecond > 0 ? (audioBytes * 8_000) / bitsPerSecond : 0
}
