import { Type } from '@sinclair/typebox'
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
  string,
} from './build.ts'
import { Price } from './models.ts'
import { IdempotencyKey, IdempotentReplayed, RateLimitHeaders, Resumable, StreamId } from './shared.ts'

export const ContentPart = define('ContentPart').open('A part of a message.', {
  type: string(
    '`text`, or `image_url` on a model with `supports_vision`. You can send other types of the protocol to engines that accept them.',
  ),
  text: optional(string('With the type `text`: the text.')),
  image_url: optional(
    object('With the type `image_url`: the image.', {
      url: string(
        'A public http or https URL on port 80 or 443, or a base64 `data:` URI. The image is a png, jpeg, gif or webp of at most ' +
          '10 MiB and 40 million pixels. In an organization with the policy `local_only`, only a `data:` URI.',
      ),
      detail: optional(
        nullable(
          oneOf(['auto', 'low', 'high'], 'How closely the model looks at the image, if the vendor offers a choice. Default `auto`.'),
        ),
      ),
    }),
  ),
})

export const ChatToolCall = define('ChatToolCall').open('A function that the model calls.', {
  id: string('The id of the call, which you send its result with.'),
  type: string('Always `function`.'),
  function: optional(
    object('The function with its arguments.', {
      name: string('Its name.'),
      arguments: string('The arguments: JSON text, exactly as the model wrote it.'),
    }),
  ),
})

export const ChatMessage = define('ChatMessage').object({
  role: oneOf(['developer', 'system', 'user', 'assistant', 'tool', 'function'], 'The role of the author.'),
  content: optional(
    Type.Unsafe<string | readonly unknown[] | null>({
      type: ['string', 'array', 'null'],
      description: "The text, or a list of parts. Null for an assistant's message with tool calls.",
      items: ContentPart,
    }),
  ),
  name: optional(nullable(string('The name of the author.'))),
  refusal: optional(nullable(string('Of an assistant: its refusal.'))),
  tool_calls: optional(nullable(array(ChatToolCall, 'Of an assistant: the functions that it calls.'))),
  tool_call_id: optional(nullable(string('Of a `tool`: the id of the call whose result this is.'))),
})

export const ChatResponseFormat = define('ChatResponseFormat').open('The format of a reply.', {
  type: oneOf(['text', 'json_object', 'json_schema'], 'The type of the format.'),
  json_schema: optional(
    object('With `json_schema`: the schema.', {
      name: optional(string('The name of the schema.')),
      description: optional(nullable(string('What the reply is.'))),
      schema: optional(anyObject('The JSON Schema.')),
      strict: optional(nullable(boolean('Whether the reply must match the schema.'))),
    }),
  ),
})

export const ChatFunction = define('ChatFunction').open('The function.', {
  name: string('The name: 1 to 64 letters, digits, `_` or `-`.'),
  description: optional(nullable(string('What the function does.'))),
  parameters: optional(nullable(anyObject('The JSON Schema of the arguments.'))),
  strict: optional(nullable(boolean('Whether the arguments must match the schema, if the engine can ensure it.'))),
})

export const ChatTool = define('ChatTool').open(
  'A function that the model may call.',
  { type: string('Always `function`.'), function: optional(ChatFunction) },
  {
    example: {
      type: 'function',
      function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
    },
  },
)

export const ChatToolChoice = define('ChatToolChoice').open('The function that the model must call.', {
  type: string('Always `function`.'),
  function: optional(object('The function.', { name: string('Its name.') })),
})

export const ChatCompletionRequest = define('ChatCompletionRequest').object(
  'A chat completion request, at most 20 MiB. You may send any field of the OpenAI chat protocol; these are the usual ones.',
  {
    model: string('The id of a chat model that your key may call.'),
    messages: array(ChatMessage, 'The conversation, oldest message first.', { minItems: 1 }),
    stream: optional(nullable(boolean('Whether to stream the reply as server-sent events.', { default: false }))),
    stream_options: optional(
      nullable(
        object('Options of a stream. Only with `stream`.', {
          include_usage: optional(
            boolean(
              'Whether to end the stream with a chunk that has empty `choices` and the `usage`. All chunks before it then have `"usage": null`.',
              { default: false },
            ),
          ),
        }),
      ),
    ),
    response_format: optional(
      described(
        nullable(ChatResponseFormat),
        'The format of the reply. `{"type": "json_schema", "json_schema": {"name", "schema", "strict"}}` asks for JSON that ' +
          'matches a schema. For models without `supports_response_schema` it is refused with `unsupported_value`, and they are no ' +
          "fallbacks of others. With `strict`, the schema must be in the protocol's subset: an object at the root, every property " +
          '`required`, `additionalProperties: false`, at most 10 levels of objects and 5,000 properties. With `{"type": ' +
          '"json_object"}` the messages must contain the word "JSON"; models without `supports_response_schema` reply without it, ' +
          'and the response has the header `x-kis-warning: response_format_not_honored`. Check the result yourself.',
      ),
    ),
    max_completion_tokens: optional(
      nullable(
        integer(
          "The most tokens of a choice. Default: the model's limit. All choices with their log probabilities must fit into a response " +
            'of 20 MiB, or a stream of 256 MiB; else the request is refused with `invalid_request`, and the error says how many tokens ' +
            'fit.',
          { minimum: 1 },
        ),
      ),
    ),
    temperature: optional(nullable(number('The sampling temperature: 0 to 2.', { minimum: 0, maximum: 2 }))),
    top_p: optional(nullable(number('The probability mass to sample from (`top_p`): 0 to 1.', { minimum: 0, maximum: 1 }))),
    n: optional(nullable(integer('How many replies to create.', { minimum: 1, maximum: 128, default: 1 }))),
    stop: optional(
      Type.Unsafe<string | readonly unknown[] | null>({
        type: ['string', 'array', 'null'],
        items: string(),
        maxItems: 4,
        description: 'At most 4 texts that end the reply. The reply does not contain them.',
      }),
    ),
    tools: optional(nullable(array(ChatTool, 'Functions that the model may call. Needs a model with `supports_tools`.'))),
    tool_choice: optional(
      anyOf([oneOf(['none', 'auto', 'required']), ChatToolChoice, Type.Null()], '`none`, `auto`, `required`, or one function.'),
    ),
    seed: optional(nullable(integer('A seed for repeatable replies, as far as the engine supports it.'))),
  },
  {
    examples: [
      {
        model: 'gpt-4o-mini',
        messages: [
          { role: 'system', content: 'Answer briefly.' },
          { role: 'user', content: 'كم يوماً من الإجازة السنوية؟' },
        ],
      },
    ],
  },
)

export const FileCitation = define('FileCitation').object('The chunk that a mark cites.', {
  start_index: integer('Where the mark begins in the text, in UTF-16 code units.'),
  end_index: integer('Where the mark ends: the offset after its last character.'),
  file_id: nullable(string('The id of the file. Null if it was deleted.')),
  filename: string('The name of the file, as uploaded.'),
  chunk_id: string('The id of the chunk.'),
  document_id: nullable(string('The id of the document. Null if it was deleted.')),
  collection_id: nullable(string('The id of the collection. Null if it was deleted.')),
  page_start: nullable(integer('The first page of the chunk. Null for formats without pages.')),
  page_end: nullable(integer('The last page of the chunk. Null for formats without pages.')),
  char_start: integer("Where the chunk begins in the document's text."),
  char_end: integer("Where the chunk ends in the document's text."),
  text: string('The text of the chunk.'),
})

export const ChatAnnotation = define('ChatAnnotation').open('A citation. An engine may return others than those of agents.', {
  type: string('`file_citation` for those of agents.'),
  file_citation: optional(FileCitation),
})

export const ChatAnswer = define('ChatAnswer').open(
  'The message of a model. It has also what else the engine returns, such as its reasoning.',
  {
    role: string('Always `assistant`.'),
    content: nullable(string('The text. Null if the model only calls functions.')),
    refusal: optional(nullable(string('Why the model refuses. Null if it does not.'))),
    tool_calls: optional(nullable(array(ChatToolCall, 'The functions that the model calls.'))),
    annotations: optional(nullable(array(ChatAnnotation, 'The citations of the text.'))),
  },
)

export const ChatToolCallDelta = define('ChatToolCallDelta').open('More of one function call.', {
  index: integer('The position of the call in the message, from 0.'),
  id: optional(nullable(string('The id of the call, in its first piece.'))),
  type: optional(nullable(string('Always `function`, in the first piece.'))),
  function: optional(
    object('The function.', {
      name: optional(nullable(string('Its name, in the first piece.'))),
      arguments: optional(nullable(string('More of the JSON text of its arguments.'))),
    }),
  ),
})

export const ChatDelta = define('ChatDelta').open('What is new: first the `role`, then pieces of `content` or `tool_calls`.', {
  role: optional(nullable(string('Always `assistant`.'))),
  content: optional(nullable(string('More text.'))),
  refusal: optional(nullable(string('More of a refusal.'))),
  tool_calls: optional(nullable(array(ChatToolCallDelta, 'More of the calls of functions.'))),
  annotations: optional(nullable(array(ChatAnnotation, 'Of an agent, in its last delta: the citations of the text.'))),
})

export const TokenLogprob = define('TokenLogprob').open('A token with its log probability.', {
  token: string('The token.'),
  logprob: number('Its log probability.'),
  bytes: optional(nullable(array(integer(), 'The bytes of the token.'))),
  top_logprobs: optional(
    nullable(
      array(
        object({
          token: string('The token.'),
          logprob: number('Its log probability.'),
          bytes: optional(nullable(array(integer(), 'The bytes of the token.'))),
        }),
        'The likeliest tokens at this position.',
      ),
    ),
  ),
})

export const ChatLogprobs = define('ChatLogprobs').open('The log probabilities of the tokens of a reply.', {
  content: optional(nullable(array(TokenLogprob, 'The log probabilities of the text.'))),
  refusal: optional(nullable(array(TokenLogprob, 'The log probabilities of a refusal.'))),
})

export const QuotedModel = define('QuotedModel').object({
  id: string('The id of the model.'),
  input_tokens: integer('The input tokens, as counted for this model.'),
  held_input_tokens: integer('The input tokens to hold money for: the count and a margin.'),
  max_output_tokens: integer('The most output tokens.'),
  amount_usd: string('The amount that would be held, in US dollars.'),
  is_covered: boolean("Whether the wallet and the key's spend limit cover the amount now."),
  rate_card_version: string("The version of the model's prices. It changes whenever one of them does."),
  price: Price,
})

export const ChatCompletionQuote = define('ChatCompletionQuote').object('The most that a chat completion would hold.', {
  object: constant('chat.completion.quote'),
  input_tokens: integer('The input tokens, as the service counts them. The count is an upper estimate.'),
  max_output_tokens: integer('The most output tokens, all choices together.'),
  amount_usd: string(
    'The most that the request would hold at any time, in US dollars. The service tries the models one after the other, so ' +
      'this is the amount of the most expensive one.',
  ),
  is_covered: boolean("Whether the wallet and the key's spend limit cover the requested model now."),
  models: array(QuotedModel, 'The model that you requested, then its fallbacks in the order in which the service would try them.'),
})

export const ChatUsage = define('ChatUsage').open('The tokens of the call.', {
  prompt_tokens: integer('The tokens of the messages.'),
  completion_tokens: integer('The tokens of the reply.'),
  total_tokens: integer('The sum of `prompt_tokens` and `completion_tokens`.'),
  prompt_tokens_details: optional(
    nullable(
      open('The parts of `prompt_tokens`, as the engine reports them.', {
        cached_tokens: optional(nullable(integer('Tokens that the engine read from its cache.'))),
        cache_write_tokens: optional(nullable(integer('Tokens that the engine wrote to its cache.'))),
      }),
    ),
  ),
  completion_tokens_details: optional(
    nullable(
      open('The parts of `completion_tokens`, as the engine reports them.', {
        reasoning_tokens: optional(nullable(integer('Tokens of reasoning.'))),
      }),
    ),
  ),
})

export const ChatCompletion = define('ChatCompletion').open(
  'A chat completion as the engine returned it. The service adds required fields that the engine left out.',
  {
    id: string('The id of the completion.'),
    object: constant('chat.completion'),
    created: integer('When it was created, in Unix seconds.'),
    model: string("The engine's name of its model."),
    choices: array(
      open({
        index: integer('The position of the choice, from 0.'),
        message: ChatAnswer,
        logprobs: optional(described(nullable(ChatLogprobs), 'The log probabilities, if the request has `logprobs`.')),
        finish_reason: oneOf(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'], 'Why the choice ended.'),
      }),
      'The replies.',
    ),
    usage: optional(ChatUsage),
  },
)

export const ChatCompletionChunk = define('ChatCompletionChunk').open('A chunk of a streamed chat completion: one `data:` of the stream.', {
  id: string('The id of the completion, the same in every chunk.'),
  object: constant('chat.completion.chunk'),
  created: integer('When the completion was created, in Unix seconds. The same in every chunk.'),
  model: string("The engine's name of its model."),
  choices: array(
    open({
      index: integer('The position of the choice, from 0.'),
      delta: ChatDelta,
      logprobs: optional(described(nullable(ChatLogprobs), 'The log probabilities, if the request has `logprobs`.')),
      finish_reason: optional(
        nullable(
          oneOf(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'], 'Why the choice ended. Null until its last chunk.'),
        ),
      ),
    }),
    'What is new in each reply. Empty in the chunk with the usage.',
  ),
  usage: optional(described(nullable(ChatUsage), 'The tokens used. Only with `stream_options.include_usage`.')),
})

export const createChatCompletion = operation('createChatCompletion', 'POST', '/v1/chat/completions', {
  tag: 'Inference',
  summary: 'Create a chat completion',
  description: [
    'Creates a chat completion. With `"stream": true` the response is server-sent events: each `data:` is a chunk,',
    'and `data: [DONE]` is the end. A failure before the first chunk is an ordinary error. A failure after it is one',
    'last `data: {"error": …}`, without `[DONE]`. If you disconnect, you pay for what was produced until then; with',
    'an `Idempotency-Key`, for the whole reply.',
    '',
    'With the id in the header `x-kis-stream-id` you can follow a stream again at `GET',
    '/v1/chat/completions/{id}/events`. If you send `x-kis-resumable: true`, each chunk has its position as `id:`, so',
    'that you can continue after it. A repeat with the same `Idempotency-Key` joins a stream',
    'that is in progress, and gets all its chunks from the start.',
    '',
    'The service leaves out what the model does not support, such as a `response_format` or a `seed`, and names it in',
    'the header `x-kis-warning`. If a fallback replies instead of the requested model, the header names that',
    'model too.',
    '',
    'If `model` is `agent/<code>`, a run of that agent replies, and the id of the run is the id of the completion.',
    '`message.annotations` (in a stream, those of the last delta) has a `file_citation` for each mark such as `[#1]`,',
    'with `start_index` and `end_index` of the mark, `file_id`, `filename`, `chunk_id`, `document_id`,',
    '`collection_id`, and the pages, characters and `text` of the chunk.',
    '',
    'Requires the scope `inference`, and `agents` for an agent.',
  ].join('\n'),
  headers: { 'Idempotency-Key': IdempotencyKey, 'x-kis-resumable': Resumable },
  body: ChatCompletionRequest,
  responses: {
    200: {
      description: 'The completion as the engine returned it, or its chunks.',
      json: ChatCompletion,
      content: { 'text/event-stream': ChatCompletionChunk },
      headers: {
        ...RateLimitHeaders,
        'x-kis-warning': string(
          'What was not honored, such as `answered_by:gpt-4o-mini, seed_not_honored`: the fallback that replied (its id is ' +
            'percent-encoded), and the request fields that were left out.',
        ),
        'x-kis-stream-id': StreamId,
        'idempotent-replayed': IdempotentReplayed,
      },
    },
  },
})

export const followChatCompletion = operation('followChatCompletion', 'GET', '/v1/chat/completions/{id}/events', {
  tag: 'Inference',
  summary: 'Follow a streamed chat completion',
  description:
    'Streams the chunks of a streamed chat completion of your key as server-sent events, as `POST /v1/chat/completions` does, ' +
    'on whichever process it runs. This calls no model and costs nothing. The service buffers a stream for 30 seconds after ' +
    'its end. If you disconnect, the call continues for 30 seconds; with an `Idempotency-Key`, to its end. Requires the scope ' +
    '`inference`.',
  params: { id: string('The id of the stream, from the header `x-kis-stream-id`.') },
  query: {
    after: optional(
      string(
        'The `id` of the last chunk that you received, so that you miss and repeat nothing. Without it, the chunks begin at the ' +
          'start. You can send the header `Last-Event-ID` instead.',
        { maxLength: 20 },
      ),
    ),
    include_usage: optional(
      boolean('Whether the stream ends with a chunk that has the usage, as `stream_options.include_usage`.', { default: false }),
    ),
  },
  responses: {
    200: {
      description: 'The chunks.',
      content: {
        'text/event-stream': string('Server-sent events. The `data` of each is JSON, but for the last, `[DONE]`.', {
          contentSchema: { $ref: '#/components/schemas/ChatCompletionChunk' },
        }),
      },
      headers: { 'x-kis-stream-id': StreamId },
    },
  },
})

export const quoteChatCompletion = operation('quoteChatCompletion', 'POST', '/v1/chat/completions/quote', {
  tag: 'Inference',
  summary: 'Get a quote for a chat completion',
  description:
    'Returns the most that a chat completion would hold. Send the body of the chat completion. The quote holds no money, calls ' +
    'no engine and downloads no image. It counts as one request of your key, and uses no tokens. It fails with the errors ' +
    'that the request would fail with before those steps. If you cannot pay for the request, the quote succeeds with ' +
    '`"is_covered": false`. Requires the scope `inference`.',
  body: ChatCompletionRequest,
  responses: {
    200: { description: 'The quote, with the prices that it uses.', json: ChatCompletionQuote, headers: { ...RateLimitHeaders } },
  },
})
