import { Type } from '@sinclair/typebox'
import { anyObject, constant, define, integer, object, operation, optional, string } from './build.ts'

export const McpMessage = define('McpMessage').open(
  'A JSON-RPC 2.0 request, notification or response. Batches are refused.',
  {
    jsonrpc: optional(constant('2.0')),
    id: optional(
      Type.Unsafe<string | number | null>({
        type: ['string', 'integer', 'null'],
        description: 'The id of the request, the same in its response. A notification has none.',
      }),
    ),
    method: optional(string('Of a request or a notification: what to do, such as `tools/call`.')),
    params: optional(anyObject('Of a request or a notification: the arguments.')),
    result: optional(anyObject('Of a response: the result.')),
    error: optional(
      object('Of a response: why the request failed.', {
        code: integer('The code of JSON-RPC or MCP.'),
        message: string('The error message, for people.'),
        data: optional(anyObject("More about it: the service's error `code` and `param`.")),
      }),
    ),
  },
  { example: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
)

export const postMcpMessage = operation('postMcpMessage', 'POST', '/mcp', {
  tag: 'MCP',
  summary: 'Send a message of the Model Context Protocol (streamable HTTP)',
  description: [
    'The MCP server, for clients of the Model Context Protocol. Configure your client with the URL of this route, and your key',
    'as `Authorization: Bearer`. Each collection is a tool `search_<code>` (scope `knowledge:read`), and each agent a',
    'tool `run_agent_<code>` (scope `agents`). Prices and rate limits are those of `POST /v1/collections/{id}/search`',
    'and of runs of agents.',
    '',
    'An error that a model can correct, such as a wrong argument or an empty wallet, is a result with `isError`.',
    "Other errors are JSON-RPC errors, with the service's code in `data.code`. The response to a request is JSON. The",
    'response to a run of an agent is server-sent events, which report progress if you send a `progressToken`.',
    '',
    '`Mcp-Session-Id` in the response to `initialize` only lets `notifications/cancelled` find its request; the',
    'service stores nothing else between messages. If you cancel a run or disconnect from it, it ends. The server',
    'sends no messages of its own and has no session to end, so `GET` and `DELETE` return 405. The service refuses',
    'requests from web pages of other sites (`Origin`) unless the operator has named their host.',
  ].join('\n'),
  headers: {
    'Mcp-Session-Id': optional(string('The session id from the response to `initialize`.')),
    'MCP-Protocol-Version': optional(string('The protocol version agreed on: `2025-11-25` or older.')),
  },
  body: McpMessage,
  responses: {
    200: { description: 'The response, or events that end with it.', json: McpMessage, content: { 'text/event-stream': McpMessage } },
    202: { description: 'The service accepted the notification or response, or the request was cancelled.' },
  },
  errors: {
    '4XX': {
      description: 'A JSON-RPC 2.0 error without an id. 401: no valid key. 403: a foreign origin or host. 413: a body over 4 MiB.',
      json: McpMessage,
    },
    '5XX': { description: 'A JSON-RPC 2.0 error without an id.', json: McpMessage },
  },
})
