import { definitions, integer, oneOf, operations, string, toOpenApi, toResponse } from './build.ts'
import './collections.ts'
import './files.ts'
import './documents.ts'
import './search.ts'
import './evaluations.ts'
import './agents.ts'
import './workflows.ts'
import './chat.ts'
import { MessageErrorBody } from './messages.ts'
import './responses.ts'
import './models.ts'
import './transcriptions.ts'
import './accounts.ts'
import './organizations.ts'
import './billing.ts'
import './webhooks.ts'
import './mcp.ts'
import './reference.ts'
import { ErrorBody, RateLimitHeaders } from './shared.ts'

const INFO = {
  title: 'Knowledge and Inference Service',
  version: '1',
  license: { name: 'MIT', identifier: 'MIT' },
  description: [
    'The API for collections of documents, which you can search in Arabic and English by meaning, and for models: chat',
    'completions, embeddings and transcriptions in the objects of the OpenAI API. A client of the OpenAI API works after',
    'you change its base URL and API key.',
    '',
    'Request and response bodies are JSON. Times are Unix seconds. Amounts are US dollars as decimal strings, exact to',
    "0.000000001. Every response has the header `x-request-id`, the service's own id of the request. If you send an id of",
    'yours as `X-Client-Request-Id` or `X-Request-Id` (1 to 128 letters, digits, `_`, `-`, `.` or `:`), the response has it',
    'as `x-client-request-id` beside it. Every error has the header `x-should-retry`, which says whether the same request can succeed',
    'later.',
    '',
    'Lists are newest first, unless you set `order`. To get the next page, set `after` to the `last_id` of the page',
    'before, or to the id of its last item, as clients of the OpenAI API do by themselves.',
  ].join('\n'),
}

const TAGS = [
  {
    name: 'Knowledge',
    description:
      'Upload a file, attach it to a collection, then search the collection. The service parses, chunks and embeds the file by itself.',
  },
  {
    name: 'Agents',
    description:
      'An agent is a chat model with instructions and collections, which it searches when a question needs it. You run it with ' +
      'one call, and its answer cites its sources.',
  },
  {
    name: 'Workflows',
    description:
      'A workflow is a directed graph of nodes. Its runs survive the process that runs them: no finished node runs again, and ' +
      'you pay for no call twice.',
  },
  {
    name: 'Inference',
    description:
      'Chat completions, messages, responses, embeddings, reranking and transcriptions. The service passes fields of a chat ' +
      'completion request that it does not know to the engine unchanged.',
  },
  {
    name: 'Account',
    description:
      'API keys, your organization, its wallet and its usage. Keys and settings require the scope `admin`; the wallet and usage ' +
      'require `billing:read`.',
  },
  {
    name: 'Webhooks',
    description: [
      'The service sends events to your addresses with POST requests. Messages and signatures follow Standard Webhooks,',
      'so any of its libraries verifies them: a message has the headers `webhook-id`, `webhook-timestamp` and',
      '`webhook-signature`, and the body `{"type", "timestamp", "data"}`. Answer with 2xx within 10 seconds, and do the',
      'work afterwards.',
      '',
      'The service sends an event at least once. Messages with the same `webhook-id` are the same event. Events of one',
      'subject (a document, a run or the wallet) arrive in order: each waits until you accept the event before it, or the',
      'service gives that event up. The service sends an event that you do not accept up to 10 times within about two',
      'days. It switches the webhook off if your endpoint returns 410, or accepts nothing for five days. It follows no',
      'redirects. Requires the scope `admin`.',
    ].join('\n'),
  },
  { name: 'Operator', description: 'Organizations, plans and credit. Requires the scope `operator`.' },
  { name: 'MCP', description: 'Your collections and agents, as tools for clients of the Model Context Protocol (MCP).' },
  { name: 'Reference', description: 'This API reference. It needs no key.' },
]

const ERROR_RESPONSES = {
  Error: {
    description:
      'An error. `x-should-retry` says whether the same request can succeed later; `retry-after` (seconds) and `retry-after-ms` say when.',
    json: ErrorBody,
    headers: {
      ...RateLimitHeaders,
      'x-request-id': string("The service's id of the request."),
      'x-client-request-id': string('Your id of the request, if you sent one.'),
      'x-should-retry': oneOf(['true', 'false'], 'Whether the same request can succeed later.'),
      'retry-after': integer('How many seconds to wait before you retry.'),
      'retry-after-ms': integer('How many milliseconds to wait before you retry.'),
    },
  },
  MessageError: {
    description:
      'An error in the shape of the Messages API. `x-should-retry`, `retry-after` and `retry-after-ms` are as in other errors. ' +
      'The status is 402 if the wallet is empty, 429 for a limit, and 529 if an engine or a part of the service is overloaded or ' +
      'unavailable.',
    json: MessageErrorBody,
    headers: {
      ...RateLimitHeaders,
      'request-id': string('The id of the request.'),
      'x-should-retry': oneOf(['true', 'false'], 'Whether the same request can succeed later.'),
    },
  },
}

/** Assembles the OpenAPI document from the operations that the modules of this folder declare. */
export function assembleDocument() {
  const paths: Record<string, Record<string, ReturnType<typeof toOpenApi>>> = {}
  for (const operation of operations) {
    paths[operation.path] ??= {}
    paths[operation.path]![operation.method.toLowerCase()] = toOpenApi(operation)
  }
  return {
    openapi: '3.1.0',
    info: INFO,
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    tags: TAGS,
    paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description:
            'Send `Authorization: Bearer <API_KEY>` with every request. On `/v1/messages` you can send the key in `x-api-key` instead.',
        },
      },
      responses: Object.fromEntries(Object.entries(ERROR_RESPONSES).map(([name, response]) => [name, toResponse(response)])),
      schemas: definitions,
    },
  }
}
