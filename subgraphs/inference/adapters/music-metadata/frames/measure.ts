import type { AudioFormat } from '../../../ports/audio-reader.ts'
import { measureFlac } from './flac.ts'
import { measureMatroska } from './matroska.ts'
import { type Measured, PCM_BITS_PER_SECOND } from './measured.ts'
import { measureMp3 } from './mp3.ts'
import { measureMp4 } from './mp4.ts'
import { measureOgg } from './ogg.ts'
import { measureWav } from './wav.ts'

const MEASURES: Readonly<Record<AudioFormat, (bytes: Buffer) => Measured>> = {
  flac: measureFlac,
  mp3: measureMp3,
  mp4: measureMp4,
  ogg: measureOgg,
  wav: measureWav,
  webm: measureMatroska,
}

/**
 * The least time in milliseconds for which a decoder plays the file, whatever its header says: by its frames, by its
 * audio bytes at the codec's highest rate, and by all its bytes at the highest rate of any codec.
 */
export function measure(bytes: Buffer, format: AudioFormat): { readonly framesMs: number; readonly leastMs: number } {
  const { ms, soundBytes, mostBitsPerSecond } = MEASURES[format](bytes)
  return { framesMs: ms, leastMs: Math.max((soundBytes * 8_000) / mostBitsPerSecond, (bytes.length * 8_000) / PCM_BITS_PER_SECOND) }
}
