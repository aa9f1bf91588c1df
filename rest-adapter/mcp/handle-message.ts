import {
  CancelledNotificationSchema,
  InitializeRequestSchema,
  isJSONRPCRequest,
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/sdk/types.js'
import { gatewayOperation } from '../../schema/operations.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { Call, RouteResponse } from '../http/route.ts'
import type { CancellableRequests } from './cancellable-requests.ts'
import { Exchange } from './exchange.ts'
import { createServer } from './server.ts'

const SESSION_HEADER = 'mcp-session-id'
const ACCEPTED: RouteResponse = { status: 202, body: '' }
/**
 * Values of one message: its objects, lists and everything in them. The longest filter of a search has some 500. The
 * SDK describes each wrong value, so a message of 600,000 would block the event loop for seconds.
 */
const MAX_VALUES = 1_000
/** Characters of the ID of a request, and of its progress token, which each notification repeats. */
const MAX_ID = 256

/** Handles a message of the Model Context Protocol. Returns undefined if the response was streamed. */
export async function handleMessage(call: Call, cancellable: CancellableRequests): Promise<RouteResponse | undefined> {
  const { headers, context, ids } = call
  // The key is checked before every message, so that a caller without one learns nothing about the protocol's state.
  await call.execute(gatewayOperation('query CheckKey { __typename }'))
  const message = parseMessage(call)
  const version = headers['mcp-protocol-version']
  if (version !== undefined && !SUPPORTED_PROTOCOL_VERSIONS.includes(String(version)))
    throw new KisError('invalid_request', `The supported protocol versions are ${SUPPORTED_PROTOCOL_VERSIONS.join(', ')}.`)
  const session = String(headers[SESSION_HEADER] ?? '')
  if (!isJSONRPCRequest(message)) {
    const cancelled = CancelledNotificationSchema.safeParse(message)
    const id = cancelled.data?.params.requestId
    if (id !== undefined && session !== '') cancellable.cancel(context.caller, session, id)
    return ACCEPTED
  }

  const exchange = new Exchange(call)
  const server = createServer(call, exchange)
  await server.connect(exchange)
  using _request = cancellable.add(context.caller, session, message.id, () => void server.close())
  exchange.receive(message)
  const response = await exchange.response
  // A session only names the requests that can be cancelled. It needs no memory and never ends.
  if (!response || !InitializeRequestSchema.safeParse(message).success) return response
  return { ...response, headers: { [SESSION_HEADER]: ids('mcp') } }
}

function parseMessage({ body }: Call): JSONRPCMessage {
  if (countValues(body, MAX_VALUES) > MAX_VALUES)
    throw new KisError('payload_too_large', `The message has more than ${MAX_VALUES} values, the limit of this address.`)
  const parsed = JSONRPCMessageSchema.safeParse(body)
  if (!parsed.success)
    throw new KisError('invalid_request', 'The body must be one message of JSON-RPC 2.0: a request, a notification or a response.')
  const message = parsed.data
  if (isJSONRPCRequest(message))
    for (const id of [message.id, message.params?._meta?.progressToken])
      if (String(id).length > MAX_ID)
        throw new KisError('invalid_request', `The id of a request and its progress token have at most ${MAX_ID} characters.`)
  return message
}

/** Counts the values of a JSON value, including itself. Stops soon after `most`. */
function countValues(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 1
  const parts = Object.values(value)
  let count = 1 + parts.length
  for (const part of parts) {
    if (count > most) break
    count += countValues(part, most - count + 1) - 1
  }
  return count
}
