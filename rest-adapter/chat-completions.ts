import type { ExecutionResult } from 'graphql'
import { KisError, ServiceUnavailable } from '../subgraphs/common/errors.ts'
import { kisErrorOf } from './errors.ts'
import { type Call, inRestNames, type JsonObject, ok, type Route } from './route.ts'
import { withUsageAsAsked } from './stream-usage.ts'

const CREATE = 'mutation ChatCompletion($input: ChatCompletionInput!) { createChatCompletion(input: $input) { response warnings } }'
const STREAM = 'subscription ChatCompletionChunks($input: ChatCompletionInput!) { chatCompletion(input: $input) { chunks warnings } }'

interface CompletionData {
  readonly createChatCompletion: { readonly response: JsonObject; readonly warnings?: readonly string[] }
}
interface EventData {
  readonly chatCompletion: { readonly chunks: readonly JsonObject[]; readonly warnings?: readonly string[] | null }
}

/** Inference checks the request itself; here is only what decides between an answer and a stream. */
function isStream({ stream = null }: JsonObject): boolean {
  if (stream !== null && typeof stream !== 'boolean') throw new KisError('invalid_type', '`stream` must be a boolean.', { param: 'stream' })
  return stream === true
}

function asksForUsage({ stream_options }: JsonObject): boolean {
  return (stream_options as { readonly include_usage?: unknown } | null | undefined)?.include_usage === true
}

/** One header for all that the engine could not honour. */
function warningHeader(warnings: readonly string[] | null | undefined): Readonly<Record<string, string>> {
  return warnings?.length ? { 'x-kis-warning': warnings.join(', ') } : {}
}

function eventOf({ data, errors }: ExecutionResult): EventData['chatCompletion'] {
  if (errors?.length) throw inRestNames(KisError.fromGraphQL(errors[0]!))
  if (!data) throw new ServiceUnavailable('A part of the service')
  return (data as unknown as EventData).chatCompletion
}

/** Passes the chunks on as they come. @throws {KisError} the failure came before the first chunk: nothing has been sent. */
async function streamChunks({ subscribe, eventStream, body, context, log }: Call): Promise<void> {
  const includeUsage = asksForUsage(body)
  const events = subscribe({ query: STREAM, variables: { input: { request: body } } })
  // The vendor's work must end when the client leaves, not at the next chunk.
  context.signal.addEventListener('abort', () => void events.return?.(), { once: true })
  using stream = eventStream()
  try {
    for await (const event of events) {
      const { chunks: given, warnings } = eventOf(event)
      stream.addHeaders(warningHeader(warnings))
      const chunks = given.flatMap((chunk) => withUsageAsAsked(chunk, includeUsage) ?? [])
      if (chunks.length > 0) await stream.send(...chunks.map((chunk) => JSON.stringify(chunk)))
    }
    context.signal.throwIfAborted()
    if (!stream.isOpen) throw new KisError('engine_error', 'The engine gave no answer.')
    await stream.send('[DONE]')
  } catch (error) {
    if (!stream.isOpen) throw error
    await stream.fail(kisErrorOf(error, log, context.requestId))
  }
  stream.end()
}

export const chatCompletionRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/chat/completions',
    body: 'chat',
    checkedBehind: true,
    inference: true,
    async handle(call) {
      if (isStream(call.body)) {
        await streamChunks(call)
        return undefined
      }
      const data = await call.ask<CompletionData>(CREATE, { input: { request: call.body } })
      const { response, warnings } = data.createChatCompletion
      return { ...ok(response), headers: warningHeader(warnings) }
    },
  },
]
