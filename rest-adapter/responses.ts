import { KisError } from '../subgraphs/common/errors.ts'
import { type ChargedUsage, completeChat, noAnswer, streamChat, warningHeader } from './chat-operations.ts'
import { kisErrorOf } from './errors.ts'
import { quoteChat } from './quote.ts'
import { inResponsesNames, inResponsesWarning } from './responses-params.ts'
import { type TranslatedRequest, translateRequest } from './responses-request.ts'
import { chunkOf, ResponseWriter } from './responses-writer.ts'
import { type Answer, type Call, isStream, ok, type Route } from './route.ts'

function writerOf({ ids, body, clock }: Call): ResponseWriter {
  return new ResponseWriter(ids, body, clock.now().getTime())
}

function warningsOf({ warnings }: TranslatedRequest, given: readonly string[] | null | undefined): Readonly<Record<string, string>> {
  return warningHeader([...new Set([...warnings, ...(given ?? []).map(inResponsesWarning)])])
}

/** Runs an operation of the chat, with the paths in its errors in the caller's own names. */
async function inOwnNames<Result>({ origins }: TranslatedRequest, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    throw error instanceof KisError ? inResponsesNames(error, origins) : error
  }
}

async function createResponse(call: Call, translated: TranslatedRequest): Promise<Answer> {
  const writer = writerOf(call)
  const { response, warnings, usage } = await inOwnNames(translated, () => completeChat(call, translated.request))
  writer.write(chunkOf(response))
  return { ...ok(writer.end(usage, call.clock.now().getTime())), headers: warningsOf(translated, warnings) }
}

/** Sends the events as they come about. @throws {KisError} the failure came before the first one: nothing has been sent. */
async function streamResponse(call: Call, translated: TranslatedRequest): Promise<void> {
  const { eventStream, context, log, clock } = call
  const writer = writerOf(call)
  using stream = eventStream()
  try {
    await inOwnNames(translated, async () => {
      let charged: ChargedUsage | null = null
      for await (const { chunks, warnings, usage } of streamChat(call, translated.request)) {
        stream.addHeaders(warningsOf(translated, warnings))
        charged = usage ?? null
        const [first] = chunks
        if (!first) continue
        if (!stream.isOpen) writer.begin(first)
        for (const chunk of chunks) writer.write(chunk)
        await stream.sendTyped(...writer.take())
      }
      if (!stream.isOpen) throw noAnswer()
      writer.end(charged, clock.now().getTime())
    })
  } catch (error) {
    if (!stream.isOpen) throw error
    writer.fail(kisErrorOf(error, log, context.requestId))
  }
  await stream.sendTyped(...writer.take())
  stream.end()
}

export const responseRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/responses',
    body: 'chat',
    inference: true,
    async handle(call) {
      const translated = translateRequest(call.body)
      if (!isStream(call.body)) return createResponse(call, translated)
      await streamResponse(call, translated)
      return undefined
    },
  },
  {
    method: 'POST',
    path: '/v1/responses/input_tokens',
    body: 'chat',
    inference: true,
    async handle(call) {
      const translated = translateRequest(call.body)
      const { inputTokens } = await inOwnNames(translated, () => quoteChat(call, translated.request))
      return ok({ object: 'response.input_tokens', input_tokens: inputTokens })
    },
  },
]
