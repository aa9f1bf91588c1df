import { refuse } from '../../../common/check.ts'
import type { Audio } from '../../ports/audio-reader.ts'
import type { Quantities } from '../../ports/billing.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { Model } from '../catalog.ts'
import { isCount, toQuantities, type Usage } from '../tokens/usage.ts'

/**
 * 25 MiB last 10 hours at the lowest rate of speech codecs (Opus: 6 kbit/s, RFC 6716). A file that states more than
 * this is wrong.
 */
export const MAX_AUDIO_MS = 24 * 3_600_000
/** 32 kbit/s: the assumed rate of a file of unknown length. The hold covers at least this, whatever the file states. */
const BYTES_PER_MS = 4
/** Opus at its lowest rate, 6 kbit/s (RFC 6716): no file lasts longer than its bytes at this rate, silence excepted. */
const LEAST_BYTES_PER_MS = 0.75
/** Engines report whole seconds, rounded up. */
const MARGIN_MS = 1_000

/**
 * A second of audio has 10 tokens with models that are paid by the token (OpenAI, "Realtime and audio": one for 100
 * ms).
 */
const AUDIO_TOKENS_PER_SECOND = 10
/** Nobody speaks 5 words a second for long, and a word of any language has fewer than 4 tokens. */
const TEXT_TOKENS_PER_SECOND = 20
/** What engines add around a prompt. */
const MARGIN_TOKENS = 64

/** The length of one file, before and after an engine has processed it. */
interface AudioLength {
  /** What the hold reserves. */
  readonly ceiling: Quantities
  /** What is charged unless the engine reports more. */
  readonly own: Usage
  /** The longest that the file can last. An engine that reports more is wrong. */
  readonly longestMs: number
}

/** @throws {KisError} `invalid_request`: the file is longer than any can be */
export function measureAudio({ durationMs }: Audio, sizeBytes: number, promptTokens: number, model: Model): AudioLength {
  if (durationMs !== null && durationMs > MAX_AUDIO_MS)
    refuse('invalid_request', 'contentBase64', `The file is longer than ${MAX_AUDIO_MS / 3_600_000} hours.`)
  const bySizeMs = Math.ceil(sizeBytes / BYTES_PER_MS)
  const mostMs = Math.max(durationMs ?? 0, bySizeMs) + MARGIN_MS
  const mostSeconds = Math.ceil(mostMs / 1_000)
  const tokens = isPaidByToken(model)
    ? toQuantities(promptTokens + MARGIN_TOKENS + mostSeconds * AUDIO_TOKENS_PER_SECOND, mostSeconds * TEXT_TOKENS_PER_SECOND)
    : toQuantities(0, 0)
  return {
    ceiling: { ...tokens, audioMilliseconds: mostMs },
    own: { quantities: audio(durationMs ?? bySizeMs), source: durationMs === null ? 'estimated' : 'counted' },
    longestMs: MARGIN_MS + Math.max(durationMs ?? 0, sizeBytes / LEAST_BYTES_PER_MS),
  }
}

/**
 * What a processed file costs: its tokens, if the model is paid by them and the engine reports them; else the longer of
 * the engine's length, if that is possible, and `own`.
 */
export function heardUsage(response: ProtocolObject, { own, longestMs }: AudioLength, model: Model): Usage {
  const tokens = isPaidByToken(model) ? reportedTokens(response) : null
  if (tokens) return { quantities: tokens, source: 'provider' }
  const saidMs = reportedMs(response, longestMs)
  // A length that was only estimated does not count against one from the engine.
  const isOwn = saidMs === null || (own.source === 'counted' && own.quantities.audioMilliseconds > saidMs)
  return isOwn ? own : { quantities: audio(saidMs), source: 'provider' }
}

/** Whether the catalog has token prices besides the price of a minute. */
function isPaidByToken({ price }: Model): boolean {
  return price.input !== null && price.output !== null
}

/** `usage` of the kind `tokens`, without zeros. Tokens of the prompt cost the same as those of audio. */
function reportedTokens({ usage, text }: ProtocolObject): Quantities | null {
  const { type, input_tokens: input, output_tokens: output } = (usage ?? {}) as ProtocolObject
  if (type !== 'tokens' || !isCount(input) || !isCount(output)) return null
  return input > 0 && (output > 0 || text === '') ? toQuantities(input, output) : null
}

/**
 * `usage` of the kind `duration`, or else `duration`, which some engines write as text. Null: neither says anything that
 * is possible.
 */
function reportedMs({ usage, duration }: ProtocolObject, longestMs: number): number | null {
  const { type, seconds } = (usage ?? {}) as { readonly type?: unknown; readonly seconds?: unknown }
  const said = [type === 'duration' ? seconds : undefined, duration].map(Number).find((value) => value > 0 && value * 1_000 <= longestMs)
  return said === undefined ? null : Math.ceil(said * 1_000)
}

function audio(audioMilliseconds: number): Quantities {
  return { ...toQuantities(0, 0), audioMilliseconds }
}
