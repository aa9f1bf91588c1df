import { readBase64 } from '../../../common/base64.ts'
import { checkLength, checkNumber, isAbsent, refuse, textAt } from '../../../common/check.ts'
import { sizeTexts } from '../../../common/sizes.ts'
import type { TranscriptionOptions, VoiceActivity } from '../../ports/engines.ts'

/** Bytes of one file: the limit of OpenAI's own transcriptions. */
export const MAX_AUDIO_BYTES = 25 * 1024 * 1024
/** In UTF-16 units. Far above what models read: the last few hundred tokens of a prompt. */
const MAX_PROMPT_LENGTH = 16_384

/** Longer pieces and pauses are not pauses between words. */
const MAX_VOICE_MS = 60_000

export type TranscriptionFormat = 'json' | 'verbose_json' | 'srt' | 'vtt' | 'diarized_json'

/** How the audio is cut. The numbers are for `server_vad`. */
interface ChunkingInput {
  readonly strategy: 'auto' | 'server_vad'
  readonly threshold?: number | null
  readonly prefixPaddingMs?: number | null
  readonly silenceDurationMs?: number | null
}

export interface TranscriptionInput {
  readonly model: string
  readonly contentBase64: string
  readonly language?: string | null
  readonly prompt?: string | null
  readonly temperature?: number | null
  readonly responseFormat?: TranscriptionFormat | null
  readonly timestampGranularities?: readonly ('segment' | 'word')[] | null
  readonly include?: readonly 'logprobs'[] | null
  readonly chunking?: ChunkingInput | null
}

export interface TranscriptionRequest {
  readonly model: string
  readonly bytes: Uint8Array
  readonly format: TranscriptionFormat
  readonly options: TranscriptionOptions
}

/** @throws {KisError} a field is wrong; has the name of the first one */
export function checkTranscriptionRequest(input: TranscriptionInput): TranscriptionRequest {
  if (textAt(input.model, 'model') === '') refuse('missing_required_parameter', 'model', 'You must provide a model.')
  const { language, prompt, temperature } = input
  const format = input.responseFormat ?? 'json'
  const granularities = input.timestampGranularities ?? []
  const include = input.include ?? []
  if (!isAbsent(language) && !/^[a-z]{2,3}$/.test(language))
    refuse('unsupported_value', 'language', "'language' must be a code of ISO 639, like 'ar' or 'en'.")
  if (!isAbsent(prompt)) checkLength(prompt, 'prompt', MAX_PROMPT_LENGTH)
  checkNumber(temperature, 'temperature', 0, 1)
  if (granularities.length > 0 && format !== 'verbose_json')
    refuse('invalid_request', 'timestampGranularities', 'Timestamp granularities need the response format `verbose_json`.')
  if (include.length > 0 && format !== 'json') refuse('invalid_request', 'include', '`include` needs the response format `json`.')
  return {
    model: input.model,
    bytes: decodeAudio(input.contentBase64),
    format,
    options: {
      // The service writes subtitles from the segments, so that they look the same with every engine.
      format: format === 'srt' || format === 'vtt' ? 'verbose_json' : format,
      language: language ?? null,
      prompt: prompt ?? null,
      temperature: temperature ?? null,
      granularities: [...new Set(granularities)],
      include: [...new Set(include)],
      chunking: input.chunking ? checkChunking(input.chunking) : null,
    },
  }
}

function checkChunking({ strategy, threshold, prefixPaddingMs, silenceDurationMs }: ChunkingInput): TranscriptionOptions['chunking'] {
  checkNumber(threshold, 'chunking.threshold', 0, 1)
  checkNumber(prefixPaddingMs, 'chunking.prefixPaddingMs', 0, MAX_VOICE_MS)
  checkNumber(silenceDurationMs, 'chunking.silenceDurationMs', 0, MAX_VOICE_MS)
  const settings: Omit<VoiceActivity, 'type'> = {
    ...(!isAbsent(threshold) && { threshold }),
    ...(!isAbsent(prefixPaddingMs) && { prefix_padding_ms: prefixPaddingMs }),
    ...(!isAbsent(silenceDurationMs) && { silence_duration_ms: silenceDurationMs }),
  }
  if (strategy === 'server_vad') return { type: 'server_vad', ...settings }
  if (Object.keys(settings).length > 0)
    refuse('invalid_request', 'chunking.strategy', 'Threshold, padding and duration need the strategy `server_vad`.')
  return 'auto'
}

/** The size is checked before decoding. */
function decodeAudio(text: string): Uint8Array {
  const { sizeBytes, decode } = readBase64(text)
  if (sizeBytes > MAX_AUDIO_BYTES) {
    const [has, most] = sizeTexts(sizeBytes, MAX_AUDIO_BYTES)
    refuse('payload_too_large', 'contentBase64', `The file has ${has}; at most ${most} are accepted.`)
  }
  const bytes = decode() ?? refuse('invalid_request', 'contentBase64', 'The content is not base64.')
  if (sizeBytes === 0) refuse('invalid_request', 'contentBase64', 'The file is empty.')
  return bytes
}
