import { refuse } from '../../common/check.ts'
import type { Audio } from '../ports/audio-reader.ts'
import type { Quantities } from '../ports/billing.ts'
import type { ProtocolObject } from '../ports/engines.ts'
import { quantitiesOf, type Usage } from './usage.ts'

/** 25 MiB last 10 hours at the least rate of speech codecs (Opus: 6 kbit/s, RFC 6716); a file that says more than this says nothing true. */
const MAX_AUDIO_MS = 24 * 3_600_000
/** 32 kbit/s: what a file of unknown length is taken to have, and the least for which money is held, whatever a file says of itself. */
const BYTES_PER_MS = 4
/** Engines report whole seconds, rounded up. */
const MARGIN_MS = 1_000

/** The length of one file, before and after an engine has heard it. */
export interface AudioLength {
  /** What is held. */
  readonly ceiling: Quantities
  /** What is charged when the engine does not say how much it heard. */
  readonly own: Usage
}

/** @throws {KisError} `invalid_request`: longer than any file can be. */
export function audioLengthOf({ durationMs }: Audio, sizeBytes: number): AudioLength {
  if (durationMs !== null && durationMs > MAX_AUDIO_MS)
    refuse('invalid_request', 'contentBase64', `The file says that it is longer than ${MAX_AUDIO_MS / 3_600_000} hours.`)
  const bySizeMs = Math.ceil(sizeBytes / BYTES_PER_MS)
  return {
    ceiling: audio(Math.max(durationMs ?? 0, bySizeMs) + MARGIN_MS),
    own: { quantities: audio(durationMs ?? bySizeMs), source: durationMs === null ? 'estimated' : 'counted' },
  }
}

/** What the engine says that it heard: `usage` of the kind `duration`, else `duration`, which some write as a text. Null when it says nothing. */
export function reportedAudio({ usage, duration }: ProtocolObject): Usage | null {
  const { type, seconds } = (usage ?? {}) as { readonly type?: unknown; readonly seconds?: unknown }
  const said = [type === 'duration' ? seconds : undefined, duration].map(Number).find((value) => value > 0 && value * 1_000 <= MAX_AUDIO_MS)
  return said === undefined ? null : { quantities: audio(Math.ceil(said * 1_000)), source: 'provider' }
}

function audio(audioMilliseconds: number): Quantities {
  return { ...quantitiesOf(0, 0), audioMilliseconds }
}
