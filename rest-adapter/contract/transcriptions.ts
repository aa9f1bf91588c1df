import { Type } from '@sinclair/typebox'
import { anyObject, array, boolean, define, extend, integer, number, oneOf, open, operation, optional, string } from './build.ts'
import { TokenLogprob } from './chat.ts'
import { ErrorDetail, IdempotencyKey, IdempotentReplayed, RateLimitHeaders } from './shared.ts'

export const TranscriptionRequest = define('TranscriptionRequest').closed({
  file: string(
    'The file, at most 25 MiB: flac, mp3 (mpeg, mpga), mp4, m4a, ogg, wav or webm. The service detects the format from the bytes.',
    { format: 'binary' },
  ),
  model: string('The id of a speech model that your key may call.', { minLength: 1, maxLength: 200 }),
  language: optional(
    string('The language of the speech, as an ISO 639 code. Without it, the engine detects the language.', { pattern: '^[a-z]{2,3}$' }),
  ),
  prompt: optional(string('Words or a style to expect.', { maxLength: 16384 })),
  response_format: optional(
    oneOf(
      ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'],
      'The format of the result. All but `json` and `text` need a model that returns segments, and `diarized_json` one that ' +
        'tells speakers apart.',
      { default: 'json' },
    ),
  ),
  temperature: optional(number('How freely the model guesses.', { minimum: 0, maximum: 1 })),
  'timestamp_granularities[]': optional(
    array(oneOf(['word', 'segment']), 'What to return times for. Only with `verbose_json`.', { maxItems: 2 }),
  ),
  'include[]': optional(
    array(oneOf(['logprobs']), 'Whether to return log probabilities. Only with `json`, and from engines that support it.', { maxItems: 1 }),
  ),
  stream: optional(
    boolean('Whether to stream events instead of returning an object. Only with `json`, `text` and `diarized_json`.', { default: false }),
  ),
  chunking_strategy: optional(
    oneOf(
      ['auto'],
      'How the engine cuts the audio, if it supports that: `auto` lets the engine decide. Models with diarization need it for ' +
        'more than 30 seconds of audio.',
    ),
  ),
  'chunking_strategy[type]': optional(oneOf(['server_vad'], 'Instead of `auto`: cut at pauses in the speech.')),
  'chunking_strategy[threshold]': optional(number('How loud sound must be to count as speech.', { minimum: 0, maximum: 1 })),
  'chunking_strategy[prefix_padding_ms]': optional(
    integer('How many milliseconds before the speech to include in the piece.', { minimum: 0, maximum: 60000 }),
  ),
  'chunking_strategy[silence_duration_ms]': optional(
    integer('How many milliseconds of silence end a piece.', { minimum: 0, maximum: 60000 }),
  ),
})

export const TranscriptionSegment = define('TranscriptionSegment').open('A piece of what was said.', {
  id: optional(
    Type.Unsafe<number | string>({ type: ['integer', 'string'], description: 'The id: the position from 0, or a text of the engine.' }),
  ),
  start: number('When it begins, in seconds.'),
  end: number('When it ends, in seconds.'),
  text: string('What was said.'),
  speaker: optional(string('With `diarized_json`: who said it.')),
})

export const TranscriptionWord = define('TranscriptionWord').open('A word that was said.', {
  word: string('The word.'),
  start: number('When it begins, in seconds.'),
  end: number('When it ends, in seconds.'),
})

export const Transcription = define('Transcription').open({
  text: string('The whole text.'),
  usage: open(
    'The usage as the engine reported it. If it reported none, `type` is `duration` and `seconds` is the length of the audio, rounded up.',
    {
      type: string('`duration`, or `tokens` if the engine counts them.'),
      seconds: optional(number('Of `duration`: the length of the audio.')),
      input_tokens: optional(integer('Of `tokens`: the input tokens.')),
      output_tokens: optional(integer('Of `tokens`: the output tokens.')),
      total_tokens: optional(integer('Of `tokens`: their sum.')),
    },
  ),
  task: optional(string('With `verbose_json`: always `transcribe`.')),
  language: optional(string('With `verbose_json`: the language of the speech, as the engine names it.')),
  duration: optional(number('With `verbose_json` and `diarized_json`: the length of the audio in seconds.')),
  segments: optional(
    array(
      TranscriptionSegment,
      'With `verbose_json` and `diarized_json`: the segments, with `id`, `start`, `end` and `text`, with `diarized_json` also ' +
        '`speaker`, and what else the engine returns.',
    ),
  ),
  words: optional(array(TranscriptionWord, 'With `verbose_json` and the granularity `word`: the words, with `word`, `start` and `end`.')),
  logprobs: optional(array(TokenLogprob, 'With `include[]` set to `logprobs`: the log probabilities.')),
})

export const TranscriptionEvent = define('TranscriptionEvent').open('An event of a streamed transcription.', {
  type: optional(string('`transcript.text.delta`, `transcript.text.segment` or `transcript.text.done`. Absent in an error.')),
  delta: optional(string('Of a delta: more text.')),
  text: optional(string('Of a segment its text, at the end the whole text.')),
  usage: optional(anyObject('At the end: the usage, as in the object.')),
  error: optional(extend([ErrorDetail], 'Why the transcription failed, in the last event.', {})),
})

export const createTranscription = operation('createTranscription', 'POST', '/v1/audio/transcriptions', {
  tag: 'Inference',
  summary: 'Transcribe a file',
  description: [
    "Transcribes the speech in a file. You pay for the length of the audio: what the engine reports or the file's own",
    "length, whichever is longer. If neither is known, you pay for one second for each 4,000 bytes. The file's own",
    'length is what it states, and at least what its bytes can last. If the model has a price per token and the engine',
    'reports tokens, you pay for the tokens.',
    '',
    "Before the call, the service holds the price of the file's own length or of its size at 32 kbit/s, whichever is",
    'longer, and of one more second. If you disconnect, you pay for the whole file.',
    '',
    'With the formats `text`, `srt` and `vtt` the response is plain text. With `stream` it is server-sent events:',
    '`transcript.text.delta`, with `diarized_json` also `transcript.text.segment`, and at the end',
    "`transcript.text.done`. If the model's engine does not stream, the text arrives at the end, in one event. A",
    'failure after the first event is an event with `error`. Requires the scope `inference`.',
  ].join('\n'),
  headers: { 'Idempotency-Key': IdempotencyKey },
  form: TranscriptionRequest,
  responses: {
    200: {
      description: 'The transcription, in the format that you requested.',
      json: Transcription,
      content: { 'text/plain': string(), 'text/event-stream': TranscriptionEvent },
      headers: { ...RateLimitHeaders, 'idempotent-replayed': IdempotentReplayed },
    },
  },
})
