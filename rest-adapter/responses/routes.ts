import { createHash } from 'node:crypto'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { IdSource } from '../../subgraphs/common/process/ids.ts'
import { type ChargedUsage, completeChat, noResponse, streamChat, warningHeader } from '../chat/chat-operations.ts'
import { quoteChat } from '../chat/quote.ts'
import * as operations from '../contract/responses.ts'
import { toKisError } from '../http/errors.ts'
import { type Call, isStream, type JsonObject, ok, type Route, type RouteResponse, route } from '../http/route.ts'
import { inResponsesNames, inResponsesWarning } from './params.ts'
import { type TranslatedRequest, translateRequest } from './request.ts'
import { ResponseWriter, toChunk } from './writer.ts'

function createWriter(call: Call, first: JsonObject): ResponseWriter {
  return new ResponseWriter(createIds(call, first), call.body, first, call.clock.now().getTime())
}

/**
 * Creates the IDs of the response and its items. A repeat with the same idempotency key gets the first response, with
 * the same IDs.
 */
function createIds({ ids, idempotencyKey }: Call, { id, created }: JsonObject): IdSource {
  if (idempotencyKey === undefined) return ids
  let count = 0
  return (prefix) => {
    count += 1
    const hash = createHash('sha256').update(JSON.stringify([idempotencyKey, id, created, count]))
    return `${prefix}_${hash.digest('hex').slice(0, 32)}`
  }
}

function toWarningHeaders({ warnings }: TranslatedRequest, more: readonly string[] | null | undefined): Readonly<Record<string, string>> {
  return warningHeader([...new Set([...warnings, ...(more ?? []).map(inResponsesWarning)])])
}

/** Returns the thrown error with its path in the caller's own names. */
function inOwnNames(thrown: unknown, { origins }: TranslatedRequest): unknown {
  return thrown instanceof KisError ? inResponsesNames(thrown, origins) : thrown
}

async function createResponse(call: Call, translated: TranslatedRequest): Promise<RouteResponse> {
  const { response, warnings, usage } = await completeChat(call, translated.request).catch((thrown: unknown) => {
    throw inOwnNames(thrown, translated)
  })
  const chunk = toChunk(response)
  const writer = createWriter(call, chunk)
  writer.write(chunk)
  return { ...ok(writer.end(usage, call.clock.now().getTime())), headers: toWarningHeaders(translated, warnings) }
}

/**
 * Sends the events as they come.
 * @throws {KisError} the request failed before the first event, so nothing has been sent
 */
async function streamResponse(call: Call, translated: TranslatedRequest): Promise<void> {
  const { eventStream, context, log, clock } = call
  let writer: ResponseWriter | undefined
  let charged: ChargedUsage | null = null
  using stream = eventStream()
  try {
    for await (const { chunks, warnings, usage } of streamChat(call, translated.request)) {
      stream.addHeaders(toWarningHeaders(translated, warnings))
      charged = usage ?? null
      const [first] = chunks
      if (!first) continue
      if (!writer) {
        writer = createWriter(call, first)
        writer.start()
      }
      for (const chunk of chunks) writer.write(chunk)
      await stream.sendTyped(...writer.drain())
    }
    if (!writer) throw noResponse()
    writer.end(charged, clock.now().getTime())
  } catch (thrown) {
    const error = inOwnNames(thrown, translated)
    if (!writer || !stream.isOpen) throw error
    writer.fail(toKisError(error, log, context.requestId))
  }
  await stream.sendTyped(...writer.drain())
  stream.end()
}

export const responseRoutes: readonly Route[] = [
  route({
    operation: operations.createResponse,
    body: 'chat',
    inference: true,
    async handle(call) {
      const translated = translateRequest(call.body)
      if (!isStream(call.body)) return createResponse(call, translated)
      await streamResponse(call, translated)
      return undefined
    },
  }),
  route({
    operation: operations.countResponseTokens,
    body: 'chat',
    inference: true,
    async handle(call) {
      const translated = translateRequest(call.body)
      const { inputTokens } = await quoteChat(call, translated.request).catch((thrown: unknown) => {
        throw inOwnNames(thrown, translated)
      })
      return ok({ object: 'response.input_tokens', input_tokens: inputTokens })
    },
  }),
]
