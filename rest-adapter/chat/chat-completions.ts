import { toKisError } from '../http/errors.ts'
import { type Call, isStream, type JsonObject, ok, type Route } from '../http/route.ts'
import { completeChat, noAnswer, streamChat, warningHeader } from './chat-operations.ts'
import { withUsageAsAsked } from './stream-usage.ts'

function asksForUsage({ stream_options }: JsonObject): boolean {
  return (stream_options as { readonly include_usage?: unknown } | null | undefined)?.include_usage === true
}

/**
 * Passes the chunks on as they come.
 * @throws {KisError} the request failed before the first chunk, so nothing has been sent
 */
async function streamChunks(call: Call): Promise<void> {
  const { eventStream, body, context, log } = call
  const includeUsage = asksForUsage(body)
  using stream = eventStream()
  try {
    for await (const { chunks: given, warnings } of streamChat(call, body)) {
      stream.addHeaders(warningHeader(warnings))
      const chunks = given.flatMap((chunk) => withUsageAsAsked(chunk, includeUsage) ?? [])
      if (chunks.length > 0) await stream.send(...chunks.map((chunk) => JSON.stringify(chunk)))
    }
    if (!stream.isOpen) throw noAnswer()
    await stream.send('[DONE]')
  } catch (error) {
    if (!stream.isOpen) throw error
    await stream.fail(toKisError(error, log, context.requestId))
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
      const { response, warnings } = await completeChat(call, call.body)
      return { ...ok(response), headers: warningHeader(warnings) }
    },
  },
]
