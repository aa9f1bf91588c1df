import { refuse } from '../../../common/check.ts'
import type { Audio } from '../../ports/audio-reader.ts'
import type { Quantities } from '../../ports/billing.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { Model } from '../catalog.ts'
import { isCount, quantitiesOf, type Usage } from '../tokens/usage.ts'

/** 25 MiB last 10 hours at the least rate of speech codecs (Opus: 6 kbit/s, RFC 6716); a file that says more than this says nothing true. */
const MAX_AUDIO_MS = 24 * 3_600_000
/** 32 kbit/s: what a file of unknown length is taken to have, and the least for which money is held, whatever a file says of itself. */
const BYTES_PER_MS = 4
/** Engines report whole seconds, rounded up. */
const MARGIN_MS = 1_000

/** A second of sound has 10 tokens at models that are paid by the token (OpenAI, "Realtime and audio": one for 100 ms). */
const SOUND_TOKENS_PER_SECOND = 10
/** Nobody speaks 5 words a second for long, and a word of any language has fewer than 4 tokens. */
const TEXT_TOKENS_PER_SECOND = 20
/** What engines put around a prompt. */
const MARGIN_TOKENS = 64

/** The length of one file, before and after an engine has heard it. */
export interface AudioLength {
  /** What is held. */
  readonly ceiling: Quantities
  /** What is charged when the engine does not say more. */
  readonly own: Usage
}

/** @throws {KisError} `invalid_request`: longer than any file can be. */
export function audioLengthOf({ durationMs }: Audio, sizeBytes: number, promptTokens: number, model: Model): AudioLength {
  if (durationMs !== null && durationMs > MAX_AUDIO_MS)
    refuse('invalid_request', 'contentBase64', `The file is longer than ${MAX_AUDIO_MS / 3_600_000} hours.`)
  const bySizeMs = Math.ceil(sizeBytes / BYTES_PER_MS)
  const mostMs = Math.max(durationMs ?? 0, bySizeMs) + MARGIN_MS
  const mostSeconds = Math.ceil(mostMs / 1_000)
  const tokens = isPaidByToken(model)
    ? quantitiesOf(promptTokens + MARGIN_TOKENS + mostSeconds * SOUND_TOKENS_PER_SECOND, mostSeconds * TEXT_TOKENS_PER_SECOND)
    : quantitiesOf(0, 0)
  return {
    ceiling: { ...tokens, audioMilliseconds: mostMs },
    own: { quantities: audio(durationMs ?? bySizeMs), source: durationMs === null ? 'estimated' : 'counted' },
  }
}

/** What a heard file costs: its tokens, where the model is paid by them and the engine reports them; else the longer of what the engine says and `own`. */
export function heardUsage(answer: ProtocolObject, own: Usage, model: Model): Usage {
  const tokens = isPaidByToken(model) ? reportedTokens(answer) : null
  if (tokens) return { quantities: tokens, source: 'provider' }
  const saidMs = reportedMs(answer)
  // A length that is only estimated tells nothing against one that was heard.
  const isOwn = saidMs === null || (own.source === 'counted' && own.quantities.audioMilliseconds > saidMs)
  return isOwn ? own : { quantities: audio(saidMs), source: 'provider' }
}

/** Whether the catalog has prices of tokens beside that of a minute. */
function isPaidByToken({ price }: Model): boolean {
  return price.input !== null && price.output !== null
}

/** `usage` of the kind `tokens`. Tokens of a prompt cost what those of sound do. */
function reportedTokens({ usage }: ProtocolObject): Quantities | null {
  const { type, input_tokens: input, output_tokens: output } = (usage ?? {}) as ProtocolObject
  return type === 'tokens' && isCount(input) && isCount(output) && input > 0 ? quantitiesOf(input, output) : null
}

/** `usage` of the kind `duration`, else `duration`, which some write as a text. Null when it says nothing. */
function reportedMs({ usage, duration }: ProtocolObject): number | null {
  const { type, seconds } = (usage ?? {}) as { readonly type?: unknown; readonly seconds?: unknown }
  const said = [type === 'duration' ? seconds : undefined, duration].map(Number).find((value) => value > 0 && value * 1_000 <= MAX_AUDIO_MS)
  return said === undefined ? null : Math.ceil(said * 1_000)
}

function audio(audioMilliseconds: number): Quantities {
  return { ...quantitiesOf(0, 0), audioMilliseconds }
}
