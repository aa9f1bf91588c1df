import { KisError } from '../../../common/errors.ts'
import { FairThreads } from '../../../common/process/threads/thread.ts'
import type { AudioFormat, AudioReader } from '../../ports/audio-reader.ts'
import type { Found, Question } from './thread.ts'

const MEDIA_TYPES: Readonly<Record<AudioFormat, string>> = {
  flac: 'audio/flac',
  mp3: 'audio/mpeg',
  mp4: 'audio/mp4',
  ogg: 'audio/ogg',
  wav: 'audio/wav',
  webm: 'audio/webm',
}

const THREAD = new URL('./thread.ts', import.meta.url)
/** A real file takes milliseconds. */
const MAX_READ_MS = 5_000
/** Files read at once, each in a thread. Others wait; an organization has one thread at most. */
const MAX_THREADS = 2
/** Waiting files of one organization. `LargeBodies` bounds their bytes. */
const MAX_WAITING = 64
const HEAP_MB = 256
const IDLE_MS = 60_000

/**
 * Reads the length of audio with music-metadata. A header may claim anything, so a file is at least as long as its bytes
 * can be. The library's parsers of other formats never get a file, because they are not needed and could be attacked.
 * Those of these formats can be stalled (25 MiB of 0xff after an MP3's first bytes take minutes), so they run in threads
 * with a deadline.
 */
export function createAudioReader(maxReadMs = MAX_READ_MS): AudioReader {
  const limits = { cpuMs: maxReadMs, wallMs: maxReadMs, heapMb: HEAP_MB }
  const threads = new FairThreads('audio reader', { maxThreads: MAX_THREADS, limits, idleMs: IDLE_MS })
  return {
    async read(bytes, organizationId, signal) {
      const format = detectFormat(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
      if (!format) return null
      const question: Question = { bytes, mimeType: MEDIA_TYPES[format], format }
      const caller = { organizationId, maxWaiting: MAX_WAITING, signal }
      const found = await threads.call<Found>(THREAD, question, caller).catch((error) => {
        // Whatever the file does to its thread, it cannot be read.
        if (error instanceof KisError || signal.aborted) throw error
        return null
      })
      return found?.hasAudio ? { format, durationMs: found.ms > 0 ? Math.ceil(found.ms) : null } : null
    },
  }
}

/** By the first bytes, as each format's specification defines them. */
function detectFormat(bytes: Buffer): AudioFormat | null {
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
