import { KisError } from '../../subgraphs/common/errors.ts'
import { completeChat, noResponse, streamChat, warningHeader } from '../chat/chat-operations.ts'
import { quoteChat } from '../chat/quote.ts'
import * as operations from '../contract/messages.ts'
import { toKisError } from '../http/errors.ts'
import { type Call, isStream, ok, type Route, route } from '../http/route.ts'
import { MESSAGES_DIALECT, messagesErrorBody } from './errors.ts'
import { MessageEvents } from './events.ts'
import { toMessage } from './message-response.ts'
import { ownWarning, type Translation, toChatRequest } from './request.ts'

function toWarningHeaders({ warnings }: Translation, more: readonly string[] | null | undefined): Readonly<Record<string, string>> {
  return warningHeader([...new Set([...warnings, ...(more ?? []).map(ownWarning)])])
}

/** Runs a translated request. Paths in its errors are in the caller's own names. */
async function inOwnNames<Result>({ inOwnNames: named }: Translation, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    throw error instanceof KisError ? named(error) : error
  }
}

/**
 * Forwards the events as they come.
 * @throws {KisError} the request failed before the first chunk, so nothing has been sent
 */
async function streamMessage(call: Call, translation: Translation): Promise<void> {
  const { eventStream, context, log, ids } = call
  const writer = new MessageEvents(translation.hidesThinking, () => ids('fc'))
  using stream = eventStream()
  try {
    await inOwnNames(translation, async () => {
      for await (const { chunks, warnings, usage } of streamChat(call, translation.request)) {
        stream.addHeaders(toWarningHeaders(translation, warnings))
        const events = chunks.flatMap((chunk) => writer.write(chunk))
        if (events.length > 0) await stream.sendTyped(...events)
        if (usage && stream.isOpen) await stream.sendTyped(...writer.end(usage))
      }
      if (!stream.isOpen) throw noResponse()
    })
  } catch (error) {
    if (!stream.isOpen) throw error
    await stream.sendTyped(messagesErrorBody(toKisError(error, log, context.requestId), context.requestId))
  }
  stream.end()
}

export const messageRoutes: readonly Route[] = [
  route({
    operation: operations.createMessage,
    body: 'chat',
    checkedBehind: true,
    inference: true,
    dialect: MESSAGES_DIALECT,
    async handle(call) {
      const translation = toChatRequest(call.body)
      if (isStream(call.body)) {
        await streamMessage(call, translation)
        return undefined
      }
      const completion = await inOwnNames(translation, () => completeChat(call, translation.request))
      const message = toMessage(completion, translation.hidesThinking, () => call.ids('fc'))
      return { ...ok(message), headers: toWarningHeaders(translation, completion.warnings) }
    },
  }),
  route({
    operation: operations.countMessageTokens,
    body: 'chat',
    checkedBehind: true,
    inference: true,
    dialect: MESSAGES_DIALECT,
    async handle(call) {
      const translation = toChatRequest(call.body, true)
      const { inputTokens } = await inOwnNames(translation, () => quoteChat(call, translation.request))
      return { ...ok({ input_tokens: inputTokens }), headers: toWarningHeaders(translation, null) }
    },
  }),
]
