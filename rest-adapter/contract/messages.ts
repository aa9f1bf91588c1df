import { Type } from '@sinclair/typebox'
import type { JsonObject } from '../http/route.ts'
import {
  anyObject,
  anyOf,
  array,
  boolean,
  constant,
  define,
  described,
  integer,
  nullable,
  number,
  object,
  oneOf,
  open,
  operation,
  optional,
  reference,
  string,
} from './build.ts'
import { IdempotencyKey, IdempotentReplayed, RateLimitHeaders } from './shared.ts'

export const MessageErrorDetail = define('MessageErrorDetail').object('What went wrong.', {
  type: oneOf(
    [
      'invalid_request_error',
      'authentication_error',
      'billing_error',
      'permission_error',
      'not_found_error',
      'conflict_error',
      'request_too_large',
      'rate_limit_error',
      'timeout_error',
      'api_error',
      'overloaded_error',
    ],
    'The kind of the error.',
  ),
  message: string('The error message, for people.'),
  details: optional(
    object('More about the error.', {
      error_code: optional(string("The service's error code, for programs: the `code` that errors of other routes have.")),
      param: optional(string('The path of the wrong input, such as `messages[0].content[1].source`.')),
      vendor_code: optional(string("The engine's own error code: 1 to 64 letters, digits, `_`, `.` and `-`.")),
    }),
  ),
})

export const MessageErrorBody = define('MessageErrorBody').object({
  type: constant('error'),
  error: MessageErrorDetail,
  request_id: string('The id of the request.'),
})

export const MessageInputBlock = define('MessageInputBlock').open('A block of a message. Its fields depend on its `type`.', {
  type: string('The type of the block.'),
  text: optional(string('Of `text`: the text.')),
  source: optional(
    Type.Unsafe<JsonObject | string>({
      type: ['object', 'string'],
      additionalProperties: true,
      description:
        'Of `image`: `{"type": "base64", "media_type", "data"}` or `{"type": "url", "url"}`. Of `document`: `{"type": "text", ' +
        '"media_type", "data"}`. Of `search_result`: where it is from.',
    }),
  ),
  title: optional(nullable(string('Of `search_result` and `document`: the title.'))),
  id: optional(string('Of `tool_use`: the id of the call.')),
  name: optional(string('Of `tool_use`: the name of the tool.')),
  input: optional(anyObject('Of `tool_use`: the arguments.')),
  tool_use_id: optional(string('Of `tool_result`: the id of the call.')),
  content: optional(
    Type.Unsafe<string | readonly unknown[] | null>({
      type: ['string', 'array', 'null'],
      items: reference<JsonObject>('MessageInputBlock'),
      description: 'Of `tool_result` and `search_result`: a text, or blocks.',
    }),
  ),
  is_error: optional(nullable(boolean('Of `tool_result`: whether the tool failed.'))),
  thinking: optional(string('Of `thinking`: the text.')),
  signature: optional(string('Of `thinking`: what the engine wants back unchanged.')),
  data: optional(string('Of `redacted_thinking`: what the engine wants back unchanged.')),
})

export const MessageTurn = define('MessageTurn').object('A message of a conversation.', {
  role: oneOf(['user', 'assistant', 'system'], 'The role of the author.'),
  content: Type.Unsafe<string | readonly unknown[]>({
    type: ['string', 'array'],
    description:
      'The text, or blocks: `text`, `image` (source `base64` or `url`), `tool_use`, `tool_result`, `thinking`, ' +
      '`redacted_thinking`, `search_result`, and `document` with a text as its source.',
    items: MessageInputBlock,
  }),
})

export const MessageTool = define('MessageTool').open(
  'A tool of yours.',
  {
    type: optional(nullable(string('`custom`, or absent.'))),
    name: optional(string('The name: 1 to 64 letters, digits, `_` or `-`.')),
    description: optional(nullable(string('What the tool does.'))),
    input_schema: optional(anyObject('The JSON Schema of the arguments.')),
  },
  { example: { name: 'get_weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } } },
)

export const MessageToolChoice = define('MessageToolChoice').open('Which tools the model must call.', {
  type: oneOf(['auto', 'any', 'none', 'tool'], 'The kind of the choice.'),
  name: optional(string('With `tool`: its name.')),
  disable_parallel_tool_use: optional(nullable(boolean('Whether the model may call at most one tool.'))),
})

export const MessageThinking = define('MessageThinking').open('How the model thinks.', {
  type: oneOf(['adaptive', 'disabled', 'enabled'], 'Whether it thinks.'),
  budget_tokens: optional(integer('With `enabled`: the most tokens of thinking.')),
  display: optional(nullable(string('`omitted`: the blocks come without their text.'))),
})

export const MessageOutputConfig = define('MessageOutputConfig').open('What the text should be like.', {
  format: optional(
    nullable(open('The format of the text.', { type: string('Always `json_schema`.'), schema: anyObject('The JSON Schema of the text.') })),
  ),
  effort: optional(nullable(string('`low`, `medium`, `high`, `xhigh` or `max`.'))),
})

export const MessageRequest = define('MessageRequest').object(
  'A request of the Messages API, at most 20 MiB.',
  {
    model: string('The id of a chat model that your key may call.'),
    max_tokens: integer('The most tokens of the reply, including thinking. `count_tokens` does not need it.', { minimum: 1 }),
    messages: array(MessageTurn, 'The conversation, oldest message first.', { minItems: 1 }),
    system: optional(
      Type.Unsafe<string | readonly unknown[] | null>({
        type: ['string', 'array', 'null'],
        items: MessageInputBlock,
        description: 'Instructions: a text, or blocks of text.',
      }),
    ),
    stream: optional(nullable(boolean("Whether to stream the reply as the API's typed events.", { default: false }))),
    stop_sequences: optional(
      nullable(
        array(
          string(),
          'At most 4 texts that end the reply. The reply names the text that ended it only if the engine reports it (Anthropic, vLLM); ' +
            'otherwise its `stop_reason` is `end_turn`.',
          { maxItems: 4 },
        ),
      ),
    ),
    temperature: optional(nullable(number('The sampling temperature: 0 to 1.', { minimum: 0, maximum: 1 }))),
    top_p: optional(nullable(number('The probability mass to sample from (`top_p`): 0 to 1.', { minimum: 0, maximum: 1 }))),
    top_k: optional(nullable(integer('How many of the likeliest tokens to sample from, if the engine supports it.', { minimum: 0 }))),
    tools: optional(
      nullable(array(MessageTool, 'Your own tools, with `name`, `description` and `input_schema`. Needs a model with `supports_tools`.')),
    ),
    tool_choice: optional(
      described(nullable(MessageToolChoice), '`auto`, `any`, `none` or one `tool`, optionally with `disable_parallel_tool_use`.'),
    ),
    thinking: optional(
      described(
        nullable(MessageThinking),
        '`adaptive`, `disabled`, or `enabled` with `budget_tokens`. The service translates a budget to the effort low, medium or ' +
          'high that is nearest to its share of `max_tokens`. It is left out for models without `supports_reasoning`.',
      ),
    ),
    output_config: optional(
      described(
        nullable(MessageOutputConfig),
        '`format`: the JSON schema that the text must match, on models with `supports_response_schema`. `effort`: how much the model thinks.',
      ),
    ),
    metadata: optional(
      nullable(
        open('Metadata of the request.', {
          user_id: optional(
            nullable(
              string(
                'Your id of your end user, which the service passes to the engine. It passes a hash if the id is longer than 64 characters.',
              ),
            ),
          ),
        }),
      ),
    ),
  },
  { examples: [{ model: 'gpt-4o-mini', max_tokens: 1024, messages: [{ role: 'user', content: 'How long is annual leave?' }] }] },
)

export const MessageCitation = define('MessageCitation').object("A chunk that an agent's answer cites.", {
  type: constant('char_location'),
  cited_text: string('The text of the chunk.'),
  document_index: integer('The position of the file among those that are cited, from 0.'),
  document_title: nullable(string('The name of the file.')),
  file_id: nullable(string('The id of the file. Null if it was deleted.')),
  start_char_index: integer("Where the chunk begins in the document's text."),
  end_char_index: integer("Where the chunk ends in the document's text."),
})

export const TextBlock = define('TextBlock').object('Text of the model.', {
  type: constant('text'),
  text: string('The text.'),
  citations: optional(array(MessageCitation, 'The chunks that the text cites. Absent if there are none.')),
})

export const ThinkingBlock = define('ThinkingBlock').object('Thinking of the model.', {
  type: constant('thinking'),
  thinking: string('The text.'),
  signature: string('What the engine wants back unchanged.'),
})

export const RedactedThinkingBlock = define('RedactedThinkingBlock').object('Thinking that the engine does not show.', {
  type: constant('redacted_thinking'),
  data: string('What the engine wants back unchanged.'),
})

export const ToolUseBlock = define('ToolUseBlock').object('A tool that the model calls.', {
  type: constant('tool_use'),
  id: string('The id of the call, which you send its result with.'),
  name: string('The name of the tool.'),
  input: anyObject('The arguments.'),
  caller: object('Who calls it.', { type: constant('direct', 'Always `direct`: the model.') }),
})

export const MessageBlock = define('MessageBlock').as(
  anyOf([TextBlock, ThinkingBlock, RedactedThinkingBlock, ToolUseBlock], 'A block of a reply.'),
)

export const MessageStopReason = define('MessageStopReason').as(
  nullable(oneOf(['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'refusal'], 'Why the choice ended. Null until it has.')),
)

export const MessageStopDetails = define('MessageStopDetails').as(
  nullable(
    object('Details of a refusal. Null if there are none.', {
      type: constant('refusal'),
      category: Type.Null({ description: 'Always null.' }),
      explanation: nullable(string('The words of the model.')),
    }),
  ),
)

export const MessageUsage = define('MessageUsage').object('The tokens as they were charged. No token counts in two fields.', {
  input_tokens: integer('Input tokens that the engine neither read from nor wrote to its cache.'),
  cache_read_input_tokens: integer('Input tokens that the engine read from its cache.'),
  cache_creation_input_tokens: integer('Input tokens that the engine wrote to its cache.'),
  output_tokens: integer('Output tokens, including thinking.'),
  output_tokens_details: nullable(
    object('The parts of the output tokens. Null if the engine does not report them.', { thinking_tokens: integer('Tokens of thinking.') }),
  ),
  server_tool_use: Type.Null({ description: 'Always null: the service runs no tools.' }),
})

export const Message = define('Message').object('A message of the Messages API.', {
  id: string("The engine's id of the message."),
  type: constant('message'),
  role: constant('assistant'),
  model: string("The engine's name of its model."),
  content: array(MessageBlock, 'Blocks of the types `thinking`, `redacted_thinking`, `text` and `tool_use`.'),
  stop_reason: MessageStopReason,
  stop_sequence: nullable(string('The stop text that ended the reply. Null if none did, or if the engine does not report it.')),
  stop_details: optional(MessageStopDetails),
  usage: MessageUsage,
  container: optional(Type.Null({ description: 'Always null.' })),
  diagnostics: optional(Type.Null({ description: 'Always null.' })),
})

export const MessageDelta = define('MessageDelta').object('What is new in a block, or at the end of the message.', {
  type: optional(
    oneOf(
      ['text_delta', 'thinking_delta', 'signature_delta', 'input_json_delta', 'citations_delta'],
      'What is new in a block. Absent in `message_delta`.',
    ),
  ),
  text: optional(string('More text.')),
  thinking: optional(string('More thinking.')),
  signature: optional(string('The signature of the thinking.')),
  partial_json: optional(string('More of the JSON text of the arguments.')),
  citation: optional(MessageCitation),
  stop_reason: optional(MessageStopReason),
  stop_sequence: optional(nullable(string('The stop text that ended the reply.'))),
  stop_details: optional(MessageStopDetails),
  container: optional(Type.Null({ description: 'Always null.' })),
})

export const MessageEvent = define('MessageEvent').object(
  'An event of a stream. Its `type` is the same as its `event:`. If the request fails after the first event, the last one is ' +
    'an `error`.',
  {
    type: oneOf(
      [
        'message_start',
        'content_block_start',
        'content_block_delta',
        'content_block_stop',
        'message_delta',
        'message_stop',
        'ping',
        'error',
      ],
      'The type of the event.',
    ),
    message: optional(Message),
    index: optional(integer('The position of the block, from 0.')),
    content_block: optional(MessageBlock),
    delta: optional(MessageDelta),
    usage: optional(MessageUsage),
    error: optional(MessageErrorDetail),
    request_id: optional(string('With `error`: the id of the request.')),
  },
)

const MESSAGE_ERROR = { $ref: '#/components/responses/MessageError' }
const MESSAGE_ERRORS = { '4XX': MESSAGE_ERROR, '5XX': MESSAGE_ERROR }

export const createMessage = operation('createMessage', 'POST', '/v1/messages', {
  tag: 'Inference',
  summary: 'Create a message (Anthropic Messages API)',
  description: [
    "Creates a message with the objects of Anthropic's Messages API. Models, limits and prices are those of `POST",
    '/v1/chat/completions`: the service translates the request to the chat protocol, any chat model replies, and the',
    'service translates the reply back. You can send the key in `x-api-key`. The header `anthropic-version` is',
    'optional, and any value is accepted. Errors have the shape and the statuses of the Messages API;',
    "`details.error_code` has the service's own code.",
    '',
    'With `"stream": true` the response is the API\'s typed events. A failure before the first event is an ordinary',
    'error. A failure after it is one last event `error`. The usage comes at the end, as it was charged:',
    '`message_start` has zeros.',
    '',
    'The service leaves out fields without a counterpart and names them in the header `x-kis-warning`. It refuses',
    'tools that a vendor runs, containers, and documents that are not text. Requires the scope `inference`.',
  ].join('\n'),
  headers: { 'Idempotency-Key': IdempotencyKey },
  body: MessageRequest,
  responses: {
    200: {
      description: 'The message, or its events.',
      json: Message,
      content: { 'text/event-stream': MessageEvent },
      headers: {
        ...RateLimitHeaders,
        'request-id': string('The same as `x-request-id`.'),
        'x-kis-warning': string('What was not honored, as for chat completions, with the field names of this API.'),
        'idempotent-replayed': IdempotentReplayed,
      },
    },
  },
  errors: MESSAGE_ERRORS,
})

export const countMessageTokens = operation('countMessageTokens', 'POST', '/v1/messages/count_tokens', {
  tag: 'Inference',
  summary: 'Count the input tokens of a message',
  description:
    'Counts the input tokens of a message. Send the body of `POST /v1/messages`. The service calls no engine and holds no ' +
    'money. It counts as one request of your key, and uses no tokens. For models whose tokenizer the service does not have, ' +
    'the count is an upper estimate. Requires the scope `inference`.',
  body: MessageRequest,
  responses: {
    200: {
      description: 'The count.',
      json: object({ input_tokens: integer('The tokens of the instructions, messages, images and tools.') }),
      headers: { ...RateLimitHeaders },
    },
  },
  errors: MESSAGE_ERRORS,
})
