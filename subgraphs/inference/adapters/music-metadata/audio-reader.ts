import { Worker } from 'node:worker_threads'
import { FairPlaces, orTooBusy } from '../../../common/process/fair-places.ts'
import type { AudioFormat, AudioReader } from '../../ports/audio-reader.ts'

const MEDIA_TYPES: Readonly<Record<AudioFormat, string>> = {
  flac: 'audio/flac',
  mp3: 'audio/mpeg',
  mp4: 'audio/mp4',
  ogg: 'audio/ogg',
  wav: 'audio/wav',
  webm: 'audio/webm',
}

/** A real file takes about 50 ms, most of it to start the thread. */
const MAX_READ_MS = 5_000
/** Files read at once, each in a thread. Others wait; an organization has one thread at most. */
const MAX_THREADS = 2
/** Waiting files of one organization. `LargeBodies` bounds their bytes. */
const MAX_WAITING = 64

interface Found {
  readonly hasSound: boolean
  /** 0: unknown. */
  readonly ms: number
}

/**
 * Reads the length of audio with music-metadata. A header may claim anything, so a file is at least as long as its bytes
 * can be. The library's parsers of other formats never get a file, because they are not needed and could be attacked.
 * Those of these formats can be stalled (25 MiB of 0xff after an MP3's first bytes take minutes), so each file has its own thread and a
 * deadline.
 */
export function createAudioReader(maxReadMs = MAX_READ_MS): AudioReader {
  const places = new FairPlaces(MAX_THREADS, MAX_WAITING)
  return {
    async read(bytes, organizationId, signal) {
      const format = detectFormat(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
      if (!format) return null
      const leave = await places.take(organizationId, signal).catch(orTooBusy('Too many sound files of your organization wait to be read.'))
      const found = await inThread(bytes, format, maxReadMs).finally(leave)
      return found?.hasSound ? { format, durationMs: found.ms > 0 ? Math.ceil(found.ms) : null } : null
    },
  }
}

/** Null when the file cannot be read, or not in time. */
async function inThread(bytes: Uint8Array, format: AudioFormat, maxReadMs: number): Promise<Found | null> {
  const { promise, resolve } = Promise.withResolvers<Found | null>()
  const copy = new Uint8Array(bytes)
  const thread = new Worker(new URL('./thread.ts', import.meta.url), {
    workerData: { bytes: copy, mimeType: MEDIA_TYPES[format], format },
    transferList: [copy.buffer],
  })
  thread.once('message', resolve)
  thread.once('error', () => resolve(null))
  thread.once('exit', () => resolve(null))
  const timer = setTimeout(() => resolve(null), maxReadMs)
  const found = await promise
  clearTimeout(timer)
  await thread.terminate()
  return found
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
