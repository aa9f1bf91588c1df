import { KisError } from '../subgraphs/common/errors.ts'
import { type AnswerFacts, factHeaders } from './chat-operations.ts'
import { requireForm } from './forms.ts'
import { RATE_LIMITS } from './rate-limits.ts'
import { type Answer, type Call, type JsonObject, ok, type Route } from './route.ts'
import { enumOf } from './values.ts'

const CREATE = `mutation Transcription($input: TranscriptionInput!) {
  createTranscription(input: $input) { text response subtitles replayed ${RATE_LIMITS} } }`

interface TranscriptionData extends AnswerFacts {
  readonly text: string
  readonly response: JsonObject
  readonly subtitles: string | null
}

const NAMES = { contentBase64: 'file', timestampGranularities: 'timestamp_granularities[]', include: 'include[]' }

const enumsOf = (values: unknown) => (values as readonly string[] | undefined)?.map(enumOf)

async function transcribe({ ask, body, idempotencyKey }: Call): Promise<TranscriptionData> {
  const { model, file, language, prompt, temperature } = body
  if (!(file instanceof File))
    throw new KisError('invalid_type', '`file` must be a file: a part of the form with a `filename`.', { param: 'file' })
  const format = (body.response_format ?? 'json') as string
  const input = {
    model,
    contentBase64: Buffer.from(await file.arrayBuffer()).toString('base64'),
    language,
    prompt,
    temperature,
    // A plain text is the protocol's object without the object.
    responseFormat: enumOf(format === 'text' ? 'json' : format),
    timestampGranularities: enumsOf(body['timestamp_granularities[]']),
    include: enumsOf(body['include[]']),
    idempotencyKey,
  }
  return (await ask<{ createTranscription: TranscriptionData }>(CREATE, { input }, NAMES)).createTranscription
}

function plainText(body: string): Answer {
  return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body }
}

export const transcriptionRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/audio/transcriptions',
    body: 'audio',
    inference: true,
    refuse: requireForm,
    async handle(call) {
      const { response_format: format = 'json', stream: isStream = false } = call.body
      if (isStream && format !== 'json')
        throw new KisError('invalid_request', '`stream` needs the response format `json`.', { param: 'stream' })
      const transcription = await transcribe(call)
      const { text, response, subtitles } = transcription
      call.setHeaders(factHeaders(transcription))
      if (subtitles !== null) return plainText(subtitles)
      if (format === 'text') return plainText(`${text}\n`)
      if (!isStream) return ok(response)
      // The engine's answer comes whole; clients that asked for events get them all the same.
      using events = call.eventStream()
      const { text: _text, ...facts } = response
      const sent = [
        { type: 'transcript.text.delta', delta: text },
        { type: 'transcript.text.done', text, ...facts },
      ]
      await events.send(...sent.map((event) => JSON.stringify(event)))
      events.end()
      return undefined
    },
  },
]
