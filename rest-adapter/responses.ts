import { KisError } from '../subgraphs/common/errors.ts'
import { completeChat, noAnswer, streamChat, warningHeader } from './chat-operations.ts'
import { kisErrorOf } from './errors.ts'
import { inResponsesNames, inResponsesWarning } from './responses-params.ts'
import { type TranslatedRequest, translateRequest } from './responses-request.ts'
import { chunkOf, ResponseWriter } from './responses-writer.ts'
import { type Answer, type Call, isStream, ok, type Route } from './route.ts'

const nowMs = ({ clock }: Call) => clock.now().getTime()

async function createResponse(call: Call, { request, origins, warnings: own }: TranslatedRequest): Promise<Answer> {
  const writer = new ResponseWriter(call.ids, call.body, nowMs(call))
  const { response, warnings, usage } = await completeChat(call, request).catch((error: unknown) => {
    throw inOwnNames(error, origins)
  })
  writer.write(chunkOf(response))
  return { ...ok(writer.end(usage, nowMs(call))), headers: headerOf(own, warnings) }
}

/** Sends the events as they come about. @throws {KisError} the failure came before the first one: nothing has been sent. */
async function streamResponse(call: Call, { request, origins, warnings: own }: TranslatedRequest): Promise<void> {
  const { eventStream, body, context, log } = call
  const writer = new ResponseWriter(call.ids, body, nowMs(call))
  using stream = eventStream()
  try {
    let charged = null
    for await (const { chunks, warnings, usage } of streamChat(call, request)) {
      stream.addHeaders(headerOf(own, warnings))
      charged = usage ?? null
      if (chunks.length === 0) continue
      if (!stream.isOpen) writer.begin()
      for (const chunk of chunks) writer.write(chunk)
      await stream.sendTyped(...writer.take())
    }
    if (!stream.isOpen) throw noAnswer()
    writer.end(charged, nowMs(call))
  } catch (error) {
    const own = inOwnNames(error, origins)
    if (!stream.isOpen) throw own
    writer.fail(kisErrorOf(own, log, context.requestId))
  }
  await stream.sendTyped(...writer.take())
  stream.end()
}

function headerOf(own: readonly string[], given: readonly string[] | null | undefined): Readonly<Record<string, string>> {
  return warningHeader([...new Set([...own, ...(given ?? []).map(inResponsesWarning)])])
}

function inOwnNames(error: unknown, origins: TranslatedRequest['origins']): unknown {
  return error instanceof KisError ? inResponsesNames(error, origins) : error
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
]
