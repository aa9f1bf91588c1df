import { Type } from '@sinclair/typebox'
import type { JsonObject } from '../http/route.ts'
import {
  anyObject,
  array,
  boolean,
  constant,
  define,
  described,
  integer,
  mapOf,
  nullable,
  number,
  object,
  oneOf,
  open,
  operation,
  optional,
  string,
} from './build.ts'
import { TokenLogprob } from './chat.ts'
import { IdempotencyKey, IdempotentReplayed, RateLimitHeaders } from './shared.ts'

export const ResponsePart = define('ResponsePart').open('A part of an item. Its fields depend on its `type`.', {
  type: optional(string('The type: `input_text`, `input_image`, `output_text`, `refusal`, `summary_text` or `reasoning_text`.')),
  text: optional(string('The text.')),
  refusal: optional(string('Of `refusal`: the words of the model.')),
  image_url: optional(nullable(string('Of `input_image`: a public URL or a `data:` URI.'))),
  detail: optional(nullable(string('Of `input_image`: `auto`, `low` or `high`.'))),
})

export const ResponseInputItem = define('ResponseInputItem').object(
  "A message, a function call, the output of a function, or reasoning. You can send items of a response's `output` unchanged.",
  {
    type: optional(nullable(oneOf(['message', 'function_call', 'function_call_output', 'reasoning'], '`message` is the default.'))),
    role: optional(nullable(string('For a message: `user`, `assistant`, `system` or `developer`.'))),
    content: optional(
      Type.Unsafe<string | readonly unknown[] | null>({
        type: ['string', 'array', 'null'],
        items: ResponsePart,
        description:
          'For a message: a text, or parts of the types `input_text`, `input_image`, `output_text` and `refusal`. An `input_image` ' +
          'has an `image_url`, which is a public URL or a `data:` URI, and only the user may send it.',
      }),
    ),
    call_id: optional(nullable(string('The id that connects a function call and its output.'))),
    name: optional(nullable(string('The name of the called function.'))),
    arguments: optional(nullable(string('The arguments of the call, as JSON text.'))),
    output: optional(
      Type.Unsafe<string | readonly unknown[] | null>({
        type: ['string', 'array', 'null'],
        items: ResponsePart,
        description: 'The output of the function: a text, or parts of the types `input_text` and `input_image`.',
      }),
    ),
    summary: optional(nullable(array(ResponsePart, 'For reasoning: its summary.'))),
    encrypted_content: optional(nullable(string('For reasoning: what the engine wants back unchanged.'))),
  },
)

export const ResponseCreation = define('ResponseCreation').object(
  'A request of the Responses API, at most 20 MiB.',
  {
    model: string('The id of a chat model that your key may call.'),
    input: Type.Unsafe<string | readonly unknown[]>({
      type: ['string', 'array'],
      description: 'The question as a text, or the conversation, oldest item first.',
      items: ResponseInputItem,
    }),
    instructions: optional(nullable(string('The system instructions before the conversation.'))),
    stream: optional(nullable(boolean('Whether to stream the response as server-sent events.', { default: false }))),
    stream_options: optional(nullable(anyObject('Accepted, but without effect: no event has `obfuscation`.'))),
    max_output_tokens: optional(
      nullable(integer("The most tokens of the response, including reasoning. Default: the model's limit.", { minimum: 1 })),
    ),
    temperature: optional(nullable(number('The sampling temperature: 0 to 2.', { minimum: 0, maximum: 2 }))),
    top_p: optional(nullable(number('The probability mass to sample from (`top_p`): 0 to 1.', { minimum: 0, maximum: 1 }))),
    tools: optional(
      nullable(
        array(
          object({
            type: string('Always `function`.'),
            name: optional(string('The name: 1 to 64 letters, digits, `_` or `-`.')),
            description: optional(nullable(string('What the function does.'))),
            parameters: optional(nullable(anyObject('The JSON Schema of the arguments.'))),
            strict: optional(
              nullable(boolean('Whether the arguments must match the schema, if the engine can ensure it. Default: false.')),
            ),
          }),
          'Functions that the model may call. Needs a model with `supports_tools`. Tools of any other type are refused.',
          { maxItems: 128 },
        ),
      ),
    ),
    tool_choice: optional(
      Type.Unsafe<string | JsonObject | null>({
        type: ['string', 'object', 'null'],
        required: ['type'],
        properties: {
          type: string('`function` or `allowed_tools`.'),
          name: string('With `function`: its name.'),
          mode: string('With `allowed_tools`: `auto` or `required`.'),
          tools: array(anyObject('A tool: `{"type": "function", "name"}`.'), 'With `allowed_tools`: the tools.'),
        },
        additionalProperties: true,
        description: '`none`, `auto`, `required`, `{"type": "function", "name"}` or `{"type": "allowed_tools", "mode", "tools"}`.',
      }),
    ),
    parallel_tool_calls: optional(nullable(boolean('Whether the model may call several functions at once.'))),
    max_tool_calls: optional(
      nullable(integer('Accepted, but without effect: it limits tools that the service itself runs, and there are none.', { minimum: 1 })),
    ),
    text: optional(
      nullable(
        object('What the text should be like.', {
          format: optional(
            nullable(
              object('The format of the text. A schema needs a model with `supports_response_schema`. Check the result yourself.', {
                type: oneOf(['text', 'json_object', 'json_schema'], 'The type of the format.'),
                name: optional(string('The name of the schema.')),
                schema: optional(anyObject('The JSON Schema of the text.')),
                strict: optional(nullable(boolean('Whether the text must match the schema.'))),
              }),
            ),
          ),
          verbosity: optional(nullable(oneOf(['low', 'medium', 'high'], 'How much the model says, on models that support it.'))),
        }),
      ),
    ),
    reasoning: optional(
      nullable(
        object('How the model reasons.', {
          effort: optional(
            nullable(
              oneOf(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'], 'How much the model reasons, on models that support it.'),
            ),
          ),
          summary: optional(
            nullable(
              oneOf(
                ['auto', 'concise', 'detailed'],
                'Whether to return the reasoning that the engine reports as `summary` instead of `content`.',
              ),
            ),
          ),
          generate_summary: optional(nullable(oneOf(['auto', 'concise', 'detailed'], 'The older name of `summary`.'))),
        }),
      ),
    ),
    include: optional(
      nullable(
        array(
          oneOf([
            'message.output_text.logprobs',
            'reasoning.encrypted_content',
            'message.input_image.image_url',
            'file_search_call.results',
            'web_search_call.results',
            'web_search_call.action.sources',
            'computer_call_output.output.image_url',
            'code_interpreter_call.outputs',
          ]),
          'What else to return. `message.output_text.logprobs` adds log probabilities. The response always has ' +
            '`reasoning.encrypted_content`. Values that belong to other tools have no effect.',
        ),
      ),
    ),
    top_logprobs: optional(
      nullable(integer('How many alternatives to return for each token, with their log probabilities.', { minimum: 0, maximum: 20 })),
    ),
    metadata: optional(
      Type.Unsafe<JsonObject | null>({
        type: ['object', 'null'],
        maxProperties: 16,
        propertyNames: { maxLength: 64 },
        additionalProperties: { type: 'string', maxLength: 512 },
        description: 'At most 16 texts by name. The response contains them.',
      }),
    ),
    user: optional(nullable(string('Your id of your end user. The service passes it to the engine.'))),
    safety_identifier: optional(nullable(string('The same as `user`.'))),
    prompt_cache_key: optional(
      nullable(string("A key for requests that begin alike, for the engine's cache. The service passes it to the engine.")),
    ),
    prompt_cache_retention: optional(
      nullable(string('How long the engine keeps such beginnings in its cache. The service passes it to the engine.')),
    ),
    service_tier: optional(
      nullable(
        oneOf(
          ['auto', 'default', 'flex', 'scale'],
          'The service tier. The service passes it to the engine. More expensive tiers are not offered.',
        ),
      ),
    ),
    truncation: optional(
      nullable(oneOf(['auto', 'disabled'], 'Accepted, but a conversation that is too long is refused, also with `auto`.')),
    ),
    store: optional(nullable(boolean('Accepted, but the service stores nothing.'))),
    previous_response_id: optional(nullable(string('Must be null. Other values are refused.'))),
    conversation: optional(
      Type.Unsafe<string | JsonObject | null>({
        type: ['string', 'object', 'null'],
        additionalProperties: true,
        description: 'Must be null. Other values are refused.',
      }),
    ),
    prompt: optional(nullable(anyObject('Must be null. Other values are refused.'))),
    background: optional(nullable(boolean('Must not be true.'))),
  },
  { examples: [{ model: 'gpt-4o-mini', instructions: 'Answer briefly.', input: 'How long is annual leave?' }] },
)

export const ResponseAnnotation = define('ResponseAnnotation').open('A citation. An engine may return others than those of agents.', {
  type: string('`file_citation` for those of agents.'),
  index: optional(integer('Where the mark begins in the text, in UTF-16 code units.')),
  file_id: optional(nullable(string('The id of the file. Null if it was deleted.'))),
  filename: optional(string('The name of the file.')),
})

export const ResponseOutputPart = define('ResponseOutputPart').object('A part of an item of the output.', {
  type: oneOf(['output_text', 'refusal', 'reasoning_text', 'summary_text'], 'The type of the part.'),
  text: optional(string('The text, unless it is a refusal.')),
  refusal: optional(string('Of `refusal`: the words of the model.')),
  annotations: optional(array(ResponseAnnotation, 'Of `output_text`: the citations.')),
  logprobs: optional(array(TokenLogprob, 'Of `output_text`: the log probabilities, if you requested them.')),
})

export const ResponseOutputItem = define('ResponseOutputItem').object('An item of the output. Its fields depend on its `type`.', {
  id: string('The id of the item, the same in every event about it.'),
  type: oneOf(['message', 'function_call', 'reasoning'], 'The type of the item.'),
  status: oneOf(['in_progress', 'completed', 'incomplete'], 'Whether the item is complete.'),
  content: optional(
    array(
      ResponseOutputPart,
      'For a message: parts of the types `output_text` (with `text`, `annotations` and `logprobs`) and `refusal`. For reasoning: ' +
        '`reasoning_text`, unless you requested a summary.',
    ),
  ),
  call_id: optional(string('For a function call: the id that you send its output with.')),
  name: optional(string('For a function call: the name of the function.')),
  arguments: optional(string('For a function call: the arguments, as JSON text exactly as the model wrote it.')),
  role: optional(constant('assistant', 'For a message: always `assistant`.')),
  summary: optional(array(ResponseOutputPart, 'For reasoning: parts of the type `summary_text`, if you requested a summary.')),
  encrypted_content: optional(nullable(string('For reasoning: what the engine wants back in the next request. Null if nothing.'))),
})

export const ResponseUsage = define('ResponseUsage').object(
  'The tokens of the call. For a failed call, what the engine reported. If it reported nothing, the call costs nothing and ' +
    'all fields are 0.',
  {
    input_tokens: integer('The input tokens.'),
    input_tokens_details: object('The parts of the input tokens.', {
      cached_tokens: optional(integer('The input tokens that the engine read from its cache.')),
      cache_write_tokens: optional(integer('The input tokens that the engine wrote to its cache, if it reports them.')),
    }),
    output_tokens: integer('The tokens of the response, including reasoning.'),
    output_tokens_details: object('The parts of the output tokens.', {
      reasoning_tokens: optional(integer('The reasoning tokens, if the engine reports them.')),
    }),
    total_tokens: integer('The sum of input and output tokens.'),
  },
)

export const ModelResponse = define('ModelResponse').object('A response, with all settings that it was created with.', {
  id: string('The id of the response. You cannot retrieve the response with it, because nothing is stored.'),
  object: constant('response'),
  created_at: integer('When it was created, in Unix seconds.'),
  completed_at: optional(nullable(integer('When it was completed, in Unix seconds. Null unless the status is `completed`.'))),
  status: oneOf(['in_progress', 'completed', 'incomplete', 'failed'], 'The status. `in_progress` and `failed` occur in events only.'),
  model: string("The engine's name of its model."),
  output: array(ResponseOutputItem, 'The items of the output, in the order in which they began.'),
  incomplete_details: nullable(
    object('Null unless the status is `incomplete`.', {
      reason: optional(oneOf(['max_output_tokens', 'content_filter'], 'Why the response is incomplete.')),
    }),
  ),
  error: nullable(
    object('Null unless the status is `failed`.', {
      code: optional(string("The error code, for programs: one of the service's error codes.")),
      message: optional(string('The error message, for people.')),
      param: optional(nullable(string('The path of the wrong input, as in other errors.'))),
      type: optional(string('The kind of the error, as in other errors.')),
    }),
  ),
  usage: described(nullable(ResponseUsage), 'The tokens used. Null while the status is `in_progress`.'),
  store: optional(boolean('Always false: the service stores nothing.')),
  background: optional(boolean('Always false.')),
  conversation: optional(Type.Null({ description: 'Always null.' })),
  previous_response_id: optional(Type.Null({ description: 'Always null.' })),
  instructions: optional(nullable(string('As you sent them.'))),
  max_output_tokens: optional(nullable(integer('As you sent it.'))),
  max_tool_calls: optional(nullable(integer('As you sent it.'))),
  metadata: optional(mapOf(string(), 'As you sent it.')),
  parallel_tool_calls: optional(boolean('As you sent it. Default: true.')),
  prompt_cache_key: optional(nullable(string('As you sent it.'))),
  reasoning: optional(
    object('As you sent it.', {
      effort: optional(nullable(string('How much the model reasons.'))),
      summary: optional(nullable(string('Whether the reasoning is a summary.'))),
    }),
  ),
  safety_identifier: optional(nullable(string('As you sent it.'))),
  service_tier: optional(string('The service tier that served the request.')),
  temperature: optional(nullable(number('As you sent it.'))),
  text: optional(
    open('As you sent it.', {
      format: optional(
        open('The format of the text. Default: `text`.', {
          type: oneOf(['text', 'json_object', 'json_schema'], 'The type of the format.'),
        }),
      ),
    }),
  ),
  tool_choice: optional(
    Type.Unsafe<string | JsonObject>({
      type: ['string', 'object'],
      additionalProperties: true,
      description: 'As you sent it. Default: `auto`.',
    }),
  ),
  tools: optional(
    array(
      open({
        type: string('Always `function`.'),
        name: optional(string('The name of the function.')),
        parameters: optional(nullable(anyObject('The JSON Schema of the arguments.'))),
        strict: optional(nullable(boolean('Whether the arguments must match the schema.'))),
      }),
      'As you sent them.',
    ),
  ),
  top_logprobs: optional(integer('As you sent it. Default: 0.')),
  top_p: optional(nullable(number('As you sent it.'))),
  truncation: optional(string('Always `disabled`.')),
  user: optional(string('As you sent it, if you did.')),
})

export const ResponseEvent = define('ResponseEvent').object('One event of a stream. Which fields it has depends on its `type`.', {
  type: string('The type of the event, the same as its `event:`.'),
  sequence_number: integer('The position of the event in the stream, from 0.'),
  response: optional(ModelResponse),
  output_index: optional(integer('The position of the item in the output, from 0.')),
  item: optional(ResponseOutputItem),
  item_id: optional(string('The id of the item.')),
  content_index: optional(integer('The position of the part in `content`, from 0.')),
  summary_index: optional(integer('The position of the part in `summary`, from 0.')),
  part: optional(ResponseOutputPart),
  delta: optional(string('What is new: more text, refusal or arguments.')),
  text: optional(string('The whole text of a part that is done.')),
  refusal: optional(string('The whole refusal of a part that is done.')),
  name: optional(string('The name of a function, with its whole `arguments`.')),
  arguments: optional(string('The whole arguments of a call that is done.')),
  logprobs: optional(array(TokenLogprob, 'The log probabilities of the text, if you requested them.')),
  annotation: optional(ResponseAnnotation),
  annotation_index: optional(integer('The position of the citation, from 0.')),
})

export const createResponse = operation('createResponse', 'POST', '/v1/responses', {
  tag: 'Inference',
  summary: 'Create a response (OpenAI Responses API)',
  description: [
    'Creates a response with the objects of the OpenAI Responses API. Models, limits and prices are those of chat',
    'completions: the service translates the request to a chat request, and the reply back. With `"stream": true`',
    'the response is server-sent events, each with its `event:` and a `sequence_number`. The last one is',
    '`response.completed`, `response.incomplete` or `response.failed`, with the `usage`. A failure before the first',
    'event is an ordinary error. After it, the response is `failed` and has what had arrived. If you disconnect, you',
    'pay for what was produced until then.',
    '',
    'The service stores nothing: the response always has `"store": false`. Send the whole conversation in `input` of',
    'the next request, with the `output` of the responses before, including reasoning with its `encrypted_content`.',
    'The service refuses `previous_response_id`, `conversation`, `prompt`, `background` and all tools but functions.',
    'It leaves out what has no effect and names it in the header `x-kis-warning`. A replay by `Idempotency-Key` has',
    'the same output under new ids. Requires the scope `inference`.',
  ].join('\n'),
  headers: { 'Idempotency-Key': IdempotencyKey },
  body: ResponseCreation,
  responses: {
    200: {
      description: 'The response, or its events.',
      json: ModelResponse,
      content: { 'text/event-stream': ResponseEvent },
      headers: {
        ...RateLimitHeaders,
        'x-kis-warning': string(
          'What was not honored, as for chat completions, with the field names of this API, such as `text.format_not_honored`.',
        ),
        'idempotent-replayed': IdempotentReplayed,
      },
    },
  },
})

export const countResponseTokens = operation('countResponseTokens', 'POST', '/v1/responses/input_tokens', {
  tag: 'Inference',
  summary: 'Count the input tokens of a response',
  description:
    'Counts the input tokens of a response. Send the body of `POST /v1/responses`. The service calls no engine and holds no ' +
    'money. For models whose tokenizer the service does not have, the count is an upper estimate. Requires the scope ' +
    '`inference`.',
  body: ResponseCreation,
  responses: {
    200: {
      description: 'The count.',
      json: object({
        object: constant('response.input_tokens'),
        input_tokens: integer('The tokens of the instructions, the input with its images, and the tools.'),
      }),
    },
  },
})
