import * as operations from '../contract/chat.ts'
import { toKisError } from '../http/errors.ts'
import { type Call, isStream, type JsonObject, ok, type Route, route } from '../http/route.ts'
import { type ChatEvent, completeChat, followChat, noResponse, streamChat, warningHeader } from './chat-operations.ts'
import { withRequestedUsage } from './stream-usage.ts'

function wantsUsage({ stream_options }: JsonObject): boolean {
  return (stream_options as { readonly include_usage?: unknown } | null | undefined)?.include_usage === true
}

/**
 * Forwards the chunks as they come, each with its position as ID if the caller requests resumption. `isNew`: a stream
 * without any chunk is a failure.
 * @throws {KisError} the request failed before the first chunk, so nothing has been sent
 */
async function streamChunks(call: Call, events: AsyncIterable<ChatEvent>, includeUsage: boolean, isNew: boolean): Promise<void> {
  const { eventStream, context, log } = call
  using stream = eventStream()
  let isEmpty = true
  try {
    for await (const { id, cursor, chunks, warnings } of events) {
      if (isEmpty) stream.addHeaders({ ...warningHeader(warnings), 'x-kis-stream-id': id })
      isEmpty = false
      const before = Number(cursor) - chunks.length
      const items = chunks.flatMap((original, i) => {
        const chunk = withRequestedUsage(original, includeUsage)
        return chunk ? [{ id: String(before + i + 1), data: JSON.stringify(chunk) }] : []
      })
      if (items.length > 0) await stream.sendWithIds(...items)
    }
    if (isEmpty && isNew) throw noResponse()
    await stream.send('[DONE]')
  } catch (error) {
    if (!stream.isOpen) throw error
    await stream.fail(toKisError(error, log, context.requestId))
  }
  stream.end()
}

export const chatCompletionRoutes: readonly Route[] = [
  route({
    operation: operations.createChatCompletion,
    body: 'chat',
    checkedBehind: true,
    inference: true,
    async handle(call) {
      if (isStream(call.body)) {
        await streamChunks(call, streamChat(call, call.body), wantsUsage(call.body), true)
        return undefined
      }
      const { response, responseDownload, warnings } = await completeChat(call, call.body, true)
      if (!responseDownload) return { ...ok(response), headers: warningHeader(warnings) }
      const stored = await call.openBytes(responseDownload.path)
      return { ...stored, headers: { ...stored.headers, ...warningHeader(warnings) } }
    },
  }),
  route({
    operation: operations.followChatCompletion,
    inference: true,
    async handle(call) {
      const { after, include_usage: includeUsage } = call.query
      await streamChunks(call, followChat(call, call.params.id!, after ?? call.lastEventId), includeUsage === true, false)
      return undefined
    },
  }),
]
