import { gatewayOperation } from '../../schema/operations.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import { factHeaders, noResponse } from '../chat/chat-operations.ts'
import * as operations from '../contract/transcriptions.ts'
import { toKisError } from '../http/errors.ts'
import { requireFilePart, requireForm } from '../http/forms.ts'
import { RATE_LIMITS } from '../http/rate-limits.ts'
import { type Call, type JsonObject, ok, type Route, type RouteResponse, route } from '../http/route.ts'
import { toEnum } from '../http/values.ts'

const CREATE = gatewayOperation(`mutation Transcription($input: TranscriptionInput!) {
  createTranscription(input: $input) { text response subtitles replayed ${RATE_LIMITS} } }`)
const STREAM = gatewayOperation(`subscription TranscriptionEvents($input: TranscriptionInput!) {
  transcription(input: $input) { events replayed ${RATE_LIMITS} } }`)

const CHUNKING = 'chunking_strategy'
const NAMES = {
  contentBase64: 'file',
  timestampGranularities: 'timestamp_granularities[]',
  include: 'include[]',
  'chunking.strategy': `${CHUNKING}[type]`,
  'chunking.threshold': `${CHUNKING}[threshold]`,
  'chunking.prefixPaddingMs': `${CHUNKING}[prefix_padding_ms]`,
  'chunking.silenceDurationMs': `${CHUNKING}[silence_duration_ms]`,
}

const toEnums = (values: unknown) => (values as readonly string[] | undefined)?.map(toEnum)

async function toInput({ body, idempotencyKey }: Call): Promise<JsonObject> {
  const { model, language, prompt, temperature } = body
  const file = requireFilePart(body.file, 'file')
  const format = (body.response_format ?? 'json') as string
  return {
    model,
    contentBase64: Buffer.from(await file.arrayBuffer()).toString('base64'),
    language,
    prompt,
    temperature,
    // For `text` inference returns the JSON object, from which the route sends the text.
    responseFormat: toEnum(format === 'text' ? 'json' : format),
    timestampGranularities: toEnums(body['timestamp_granularities[]']),
    include: toEnums(body['include[]']),
    chunking: readChunking(body),
    idempotencyKey,
  }
}

/**
 * Reads `auto` or an object. In the form each field of the object is a field of its own, as the official clients write
 * it.
 */
function readChunking(body: JsonObject): JsonObject | undefined {
  const strategy = body[CHUNKING] ?? body[`${CHUNKING}[type]`]
  const numbers = {
    threshold: body[`${CHUNKING}[threshold]`],
    prefixPaddingMs: body[`${CHUNKING}[prefix_padding_ms]`],
    silenceDurationMs: body[`${CHUNKING}[silence_duration_ms]`],
  }
  if (strategy !== undefined) return { strategy: toEnum(strategy as string), ...numbers }
  if (Object.values(numbers).some((value) => value !== undefined))
    throw new KisError('missing_required_parameter', `Missing required parameter: \`${CHUNKING}[type]\`.`, { param: `${CHUNKING}[type]` })
  return undefined
}

function plainText(body: string): RouteResponse {
  return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body }
}

async function transcribe(call: Call): Promise<RouteResponse> {
  const variables = { input: await toInput(call) }
  const { createTranscription: transcription } = await call.execute(CREATE, variables, NAMES)
  const { text, response, subtitles } = transcription
  call.setHeaders(factHeaders(transcription))
  if (subtitles !== null) return plainText(subtitles)
  return call.body.response_format === 'text' ? plainText(`${text}\n`) : ok(response)
}

/**
 * Forwards the events as they come.
 * @throws {KisError} the request failed before the first event, so nothing has been sent
 */
async function streamEvents(call: Call): Promise<void> {
  const { eventStream, subscribe, context, log, setHeaders } = call
  const operation = { query: STREAM, variables: { input: await toInput(call) } }
  const results = subscribe(operation, ({ transcription }) => transcription, { names: NAMES })
  using stream = eventStream()
  try {
    for await (const { events, ...facts } of results) {
      if (!stream.isOpen) setHeaders(factHeaders(facts))
      await stream.send(...events.map((event) => JSON.stringify(event)))
    }
    if (!stream.isOpen) throw noResponse()
  } catch (error) {
    if (!stream.isOpen) throw error
    await stream.fail(toKisError(error, log, context.requestId))
  }
  stream.end()
}

export const transcriptionRoutes: readonly Route[] = [
  route({
    operation: operations.createTranscription,
    body: 'audio',
    inference: true,
    refuse: requireForm,
    async handle(call) {
      if (call.body.stream !== true) return transcribe(call)
      await streamEvents(call)
      return undefined
    },
  }),
]
