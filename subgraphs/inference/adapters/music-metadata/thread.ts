import { parseBuffer } from 'music-metadata'
import { answering } from '../../../common/process/threads/thread-calls.ts'
import type { AudioFormat } from '../../ports/audio-reader.ts'
import { measure } from './frames/measure.ts'

/**
 * Encoders add silence before and after, which the frames include and a header may leave out: two frames of AAC at 8
 * kHz.
 */
const SILENCE_MS = 256

export interface Question {
  readonly bytes: Uint8Array
  readonly mimeType: string
  readonly format: AudioFormat
}

export interface Found {
  readonly hasSound: boolean
  /** 0: unknown. */
  readonly ms: number
}

export const call = answering(async ({ bytes, mimeType, format }: Question): Promise<Found> => {
  const { format: header } = await parseBuffer(bytes, { mimeType }, { duration: true, skipCovers: true })
  const { framesMs, leastMs } = measure(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), format)
  const headerMs = (header.duration ?? 0) * 1_000
  const saidMs = headerMs > 0 && headerMs >= framesMs - SILENCE_MS ? headerMs : framesMs
  return { hasSound: (header.sampleRate ?? 0) > 0, ms: saidMs > 0 ? Math.max(saidMs, leastMs) : 0 }
})
