import type { Static } from '@sinclair/typebox'
import {
  anyObject,
  anything,
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
  operation,
  optional,
  string,
} from './build.ts'
import { ChatMessage } from './chat.ts'
import {
  Deletion,
  EventCursor,
  Failure,
  IdempotencyKey,
  IdempotentReplayed,
  listOf,
  Page,
  Resumable,
  RunStatus,
  Since,
  UnixSeconds,
  Until,
} from './shared.ts'

export const AgentCode = define('AgentCode').as(
  string(
    'A short code, unique in the organization: letters, digits, `_`, `-` or `.`. You can use the agent as the chat model `agent/<code>`.',
    { minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]*$' },
  ),
)

export const AgentName = define('AgentName').as(string('The display name.', { minLength: 1, maxLength: 200 }))

export const AgentModel = define('AgentModel').as(
  string('The id of a chat model that your key may call.', { minLength: 1, maxLength: 300 }),
)

export const AgentInstructions = define('AgentInstructions').as(
  nullable(string('The system instructions before the conversation. Default: nothing.', { maxLength: 32768 })),
)

export const AgentCollections = define('AgentCollections').as(
  nullable(array(string(), 'The ids of the collections that the agent may search, at most 10. Default: none.', { maxItems: 10 })),
)

export const AgentTemperature = define('AgentTemperature').as(
  nullable(number("The sampling temperature: 0 to 2. Null: the model's default.", { minimum: 0, maximum: 2 })),
)

export const AgentTopP = define('AgentTopP').as(
  nullable(number("The share of the probability to sample from: 0 to 1. Null: the model's default.", { minimum: 0, maximum: 1 })),
)

export const AgentMaxOutputTokens = define('AgentMaxOutputTokens').as(
  nullable(integer("The most tokens of one answer of the model. Null: the model's own limit.", { minimum: 1 })),
)

export const AgentResponseSchema = define('AgentResponseSchema').as(
  nullable(
    anyObject(
      'The JSON Schema (2020-12) of the answer, at most 32768 characters. The service validates each answer. If it does not ' +
        'match, the service calls the model again with what is wrong, three times in all. Null: the answer is text.',
    ),
  ),
)

export const AgentMaxSteps = define('AgentMaxSteps').as(
  nullable(integer('The most model calls in one run. Default 12.', { minimum: 1, maximum: 12 })),
)

export const MaxCostUsd = define('MaxCostUsd').as(
  nullable(
    string('The most that one run may cost in US dollars: above 0, at most 1000. Default 1.', { pattern: '^\\d{1,4}(\\.\\d{1,9})?$' }),
  ),
)

export const AgentMcpServerSetting = define('AgentMcpServerSetting').closed('An MCP server whose tools the agent may use.', {
  name: string("The prefix of its tools' names, as in `crm__find_customer`: 1 to 16 letters, digits, `_` or `-`."),
  url: string('The address of the server (streamable HTTP): a public http or https URL, or one that the operator has named.', {
    maxLength: 2048,
  }),
  headers: optional(
    nullable(
      mapOf(
        string('Visible ASCII characters, at most 4096.'),
        'At most 10 headers, such as `authorization`. They are stored encrypted and never shown. If you leave it out, the agent ' +
          'keeps the headers that it has for the same name and URL. `{}` removes them.',
        { maxProperties: 10 },
      ),
    ),
  ),
  allowed_tools: optional(
    nullable(
      array(string(), "The tools that the agent may use, by the server's own names. Leave it out to allow all, up to 50.", {
        maxItems: 50,
      }),
    ),
  ),
})

export const AgentMcpServers = define('AgentMcpServers').as(
  nullable(
    array(
      AgentMcpServerSetting,
      'At most 5 servers of the Model Context Protocol (MCP) whose tools the agent may use. The model must support tools.',
      { maxItems: 5 },
    ),
  ),
)

export const AgentMcpServer = define('AgentMcpServer').object('An MCP server whose tools an agent may use.', {
  name: string("The prefix of its tools' names."),
  url: string('The address of the server.'),
  header_names: array(string(), 'The names of the headers sent with each request. Their values are never shown.'),
  allowed_tools: nullable(array(string(), "The tools that the agent may use, by the server's own names. Null: all of them, up to 50.")),
})

/** The fields that have defaults. */
const AGENT_OPTIONS = {
  instructions: optional(AgentInstructions),
  collection_ids: optional(AgentCollections),
  mcp_servers: optional(AgentMcpServers),
  temperature: optional(AgentTemperature),
  top_p: optional(AgentTopP),
  max_output_tokens: optional(AgentMaxOutputTokens),
  response_schema: optional(AgentResponseSchema),
  max_steps: optional(AgentMaxSteps),
  max_cost_usd: optional(MaxCostUsd),
}

export const AgentCreation = define('AgentCreation').closed({
  code: AgentCode,
  name: AgentName,
  model: AgentModel,
  ...AGENT_OPTIONS,
})

export const AgentChange = define('AgentChange').closed(
  {
    code: optional(AgentCode),
    name: optional(AgentName),
    model: optional(AgentModel),
    ...AGENT_OPTIONS,
  },
  { minProperties: 1 },
)

export const Agent = define('Agent').object(
  'A chat model with instructions and collections. The agent searches the collections when a question needs it.',
  {
    id: string('The id: `agt_…`.'),
    object: constant('agent'),
    created_at: UnixSeconds,
    updated_at: UnixSeconds,
    code: AgentCode,
    name: AgentName,
    model: nullable(string('The id of the chat model. Null if the catalog no longer has it.')),
    instructions: string('The system instructions before the conversation. Empty if there are none.'),
    collection_ids: array(string(), 'The ids of the collections that the agent may search.'),
    mcp_servers: array(AgentMcpServer, 'The MCP servers whose tools the agent may use.'),
    temperature: AgentTemperature,
    top_p: AgentTopP,
    max_output_tokens: AgentMaxOutputTokens,
    response_schema: AgentResponseSchema,
    max_steps: integer('The most model calls in one run.'),
    max_cost_usd: string('The most that one run may cost, in US dollars.'),
    version: integer('The version: 1 at first, and one more with each change. A run names the version that it uses.'),
  },
)
export type Agent = Static<typeof Agent>

export const AgentList = define('AgentList').as(listOf(Agent))

export const AgentRunCreation = define('AgentRunCreation').closed('A question to an agent. Send either `input` or `messages`.', {
  input: optional(nullable(string('The question, as text.'))),
  messages: optional(
    nullable(
      array(ChatMessage, 'A conversation in messages of the chat protocol, instead of `input`. The question is the last message.', {
        minItems: 1,
        maxItems: 2048,
      }),
    ),
  ),
  thread_id: optional(
    nullable(
      string(
        'The id of a thread: a stored conversation from an earlier run of this agent. It precedes your question, and the service ' +
          'adds the question and the answer to it. A thread stores its last 100 messages, up to 200000 characters.',
        { maxLength: 100 },
      ),
    ),
  ),
  keep_thread: optional(
    nullable(boolean('Whether to store the conversation in a new thread. The run has its `thread_id`. Not together with `thread_id`.')),
  ),
  max_cost_usd: optional(
    nullable(
      string('The most that this run may cost in US dollars. It lowers the limit of the agent and cannot raise it.', {
        pattern: '^\\d{1,4}(\\.\\d{1,9})?$',
      }),
    ),
  ),
  stream: optional(nullable(boolean('Whether to stream the events of the run.'))),
})

export const AgentRunUsage = define('AgentRunUsage').object('The tokens used.', {
  input_tokens: integer('The input tokens, including cached ones.'),
  cached_input_tokens: integer('The input tokens that the engine read from its cache.'),
  cache_write_tokens: integer('The input tokens that the engine wrote to its cache.'),
  output_tokens: integer('The output tokens, including reasoning.'),
  total_tokens: integer('The sum of input and output tokens.'),
})
export type AgentRunUsage = Static<typeof AgentRunUsage>

export const AgentRunStep = define('AgentRunStep').object('One charge of a run.', {
  kind: oneOf(
    ['model', 'search', 'cut'],
    'What the charge is for. `model`: a model call. `search`: the embedding of a search query. `cut`: model calls that were ' +
      'interrupted; you pay for what they had produced.',
  ),
  step: integer('Which model call of the run the step belongs to, from 1. 0 before the first.'),
  model: nullable(string('The id of the model that replied. Null unless the step is a model call.')),
  collection_id: nullable(string('The id of the collection that was searched. Null unless the step is a search.')),
  query: nullable(string('The query. Null unless the step is a search.')),
  hit_count: nullable(integer('The number of chunks found. Null unless the step is a search.')),
  usage: described(nullable(AgentRunUsage), 'The tokens used. Null unless the step is a model call.'),
  cost_usd: string('The amount charged, in US dollars.'),
})
export type AgentRunStep = Static<typeof AgentRunStep>

export const Thread = define('Thread').object(
  'A stored conversation with one agent. It has at most its newest 100 messages, and expires 30 days after its last run.',
  {
    id: string('The id: `thr_…`.'),
    object: constant('thread'),
    agent_id: string('The id of the agent, also when the agent was deleted.'),
    title: nullable(string('The beginning of the first stored message of a user: at most 200 characters. Null if it has no text.')),
    message_count: integer('The number of stored messages.'),
    updated_at: integer('When a run was last added, in Unix seconds.'),
    expires_at: integer('When the thread is deleted unless a run is added before, in Unix seconds.'),
  },
)
export type Thread = Static<typeof Thread>

export const ThreadList = define('ThreadList').as(listOf(Thread))

export const ThreadWithMessages = define('ThreadWithMessages').extend(
  [Thread],
  { messages: array(anything(), 'The messages in the chat protocol, oldest first.', { maxItems: 100 }) },
  {
    example: {
      id: 'thr_0190',
      object: 'thread',
      agent_id: 'agt_0190',
      title: 'When are receipts due?',
      message_count: 2,
      updated_at: 1_769_860_800,
      expires_at: 1_772_452_800,
      messages: [
        { role: 'user', content: 'When are receipts due?' },
        { role: 'assistant', content: 'Receipts are due in May [1].' },
      ],
    },
  },
)

export const AgentRun = define('AgentRun').object('One question to an agent, with its answer and its cost.', {
  id: string('The id: `run_…`. The usage records of the run have it as `request_id`.'),
  object: constant('agent.run'),
  created_at: UnixSeconds,
  ended_at: nullable(integer('When the run ended, in Unix seconds. Null while it is in progress.')),
  agent_id: string('The id of the agent, also when the agent was deleted.'),
  agent_version: integer('The version of the agent that the run uses.'),
  status: oneOf(['running', 'completed', 'failed', 'cancelled'], 'The status of the run.'),
  messages: array(
    ChatMessage,
    'The question: messages of the chat protocol, without those of the thread before it. Images sent as data are not stored.',
  ),
  output_text: nullable(string('The answer, with a mark such as `[#1]` at each citation. Null unless the status is `completed`.')),
  output: anything("The answer as JSON that matches the agent's `response_schema`. Null if the agent has no schema."),
  citations: array(
    object({
      mark: integer('The number in the mark: 1 for `[#1]`. No other chunk of the conversation has it.'),
      chunk_id: string('The id of the chunk: `chunk_…`. The chunk no longer exists once the document is ingested again.'),
      text: string('The text of the chunk when the run found it.'),
      page_start: nullable(integer('The first page of the chunk, counted from 1. Null for formats without pages.')),
      page_end: nullable(integer('The last page of the chunk, counted from 1. Null for formats without pages.')),
      char_start: integer("Where the chunk begins: an offset into the document's text, in UTF-16 code units."),
      char_end: integer('Where the chunk ends: the offset after its last character, in UTF-16 code units.'),
      collection_id: nullable(string('The id of the collection. Null if it was deleted.')),
      document_id: nullable(string('The id of the document. Null if it was deleted.')),
      file: object('The file of the document.', {
        id: nullable(string('The id: `file_…`. Null if the file was deleted.')),
        file_name: string('The file name, as uploaded.'),
      }),
    }),
    'The chunks that the answer cites, in the order of their marks. A search of this run found each of them.',
  ),
  steps: array(AgentRunStep, 'The receipt: each charge of the run. The sum is `cost_usd`. It is complete once the run has ended.'),
  usage: AgentRunUsage,
  cost_usd: nullable(string('The amount charged, in US dollars. Null while the run is in progress.')),
  error: described(
    nullable(Failure),
    "Why the run failed, with one of the service's error codes. The message gives the reasons and, if an answer did not match " +
      'its schema, that answer. Null if it did not fail.',
  ),
  thread_id: nullable(string('The id of the thread that stores the conversation. Null if there is none.')),
})
export type AgentRun = Static<typeof AgentRun>

export const AgentRunList = define('AgentRunList').as(listOf(AgentRun))

export const AgentRunEvent = define('AgentRunEvent').object('An event of a run. Which fields it has depends on its `type`.', {
  type: oneOf(
    ['run_started', 'step_started', 'text_delta', 'tool_call', 'search', 'usage', 'done', 'error'],
    'The type of the event. `error`, instead of `done`, means that the stream failed, not the run: follow the run again.',
  ),
  run_id: string('The id of the run.'),
  cursor: string('The position of this event. To continue after it, pass it as `after` of `GET /v1/runs/{id}/events`.'),
  created_at: UnixSeconds,
  step: optional(integer('Which model call of the run the event belongs to, from 1. 0 before the first.')),
  delta: optional(string('With `text_delta`: more text of the answer.')),
  tool_call: optional(
    object('With `tool_call`: the tool that the model calls.', {
      id: optional(string("The model's id of the call.")),
      name: optional(string('The name of the tool.')),
      arguments: optional(string('The arguments: JSON text, exactly as the model wrote it.')),
    }),
  ),
  search: optional(
    object('With `search`: the search of a collection.', {
      collection_id: optional(nullable(string('The id of the collection. Null if it was deleted.'))),
      query: optional(string('The query.')),
      hits: optional(
        array(
          object({
            chunk_id: optional(string('The id of the chunk: `chunk_…`.')),
            file_name: optional(string('The name of the file.')),
            page_start: optional(nullable(integer('The first page of the chunk, counted from 1. Null for formats without pages.'))),
            score: optional(number('The relevance, 0 to 1, as the `score` of a search result.')),
          }),
          'The chunks found, best first.',
        ),
      ),
    }),
  ),
  usage: optional(AgentRunStep),
  run: optional(AgentRun),
})
export type AgentRunEvent = Static<typeof AgentRunEvent>

export const AgentId = string('The id of the agent, `agt_…`.')
export const RunId = string('The id of the run, `run_…`.')
export const ThreadId = string('The id of the thread, `thr_…`.')

export const createAgent = operation('createAgent', 'POST', '/v1/agents', {
  tag: 'Agents',
  summary: 'Create an agent',
  description:
    'Creates an agent. Fields that you leave out get their defaults. Fails with `not_found` if a collection does not exist, ' +
    'with `model_not_found` or `residency_policy_violation` if your key may not use the model, and with `already_exists` if ' +
    'the code is taken. Requires the scope `agents`.',
  body: AgentCreation,
  responses: { 201: { description: 'The agent.', json: Agent } },
})

export const listAgents = operation('listAgents', 'GET', '/v1/agents', {
  tag: 'Agents',
  summary: 'List agents',
  description: 'Lists the agents of your organization. Requires the scope `agents`.',
  query: { ...Page },
  responses: { 200: { description: 'One page of the list.', json: AgentList } },
})

export const getAgent = operation('getAgent', 'GET', '/v1/agents/{id}', {
  tag: 'Agents',
  summary: 'Get an agent',
  description: 'Gets an agent. Requires the scope `agents`.',
  params: { id: AgentId },
  responses: { 200: { description: 'The agent.', json: Agent } },
})

export const updateAgent = operation('updateAgent', 'PATCH', '/v1/agents/{id}', {
  tag: 'Agents',
  summary: 'Change an agent',
  description:
    'Changes an agent and so creates a new version of it. Fields that you leave out keep their values; null restores the ' +
    'default. Runs in progress continue with the version that they began with. Requires the scope `agents`.',
  params: { id: AgentId },
  body: AgentChange,
  responses: { 200: { description: 'The agent.', json: Agent } },
})

export const deleteAgent = operation('deleteAgent', 'DELETE', '/v1/agents/{id}', {
  tag: 'Agents',
  summary: 'Delete an agent',
  description:
    'Deletes an agent with all its versions and frees its code. Its runs and threads stay, under their ids, until you delete ' +
    'them or they expire. To delete its runs too, list them before you delete the agent. A workflow run that reaches the agent ' +
    'fails with `not_found`. Requires the scope `agents`.',
  params: { id: AgentId },
  responses: { 200: { description: 'The object was deleted.', json: Deletion } },
})

export const runAgent = operation('runAgent', 'POST', '/v1/agents/{id}/runs', {
  tag: 'Agents',
  summary: 'Run an agent',
  description: [
    'Asks an agent a question and returns the run when it has ended. The service holds the most that the run may',
    'cost when it begins; `steps` lists what it was charged. If the run fails, the request fails with the error code',
    'of the run, such as `output_schema_failed` or `run_limit_exceeded`. The message contains the id of the run,',
    'which you can still read. If you disconnect, the run is cancelled.',
    '',
    'With `"stream": true` the response is server-sent events. Each has its type as `event:` and its cursor as `id:`.',
    'The types are `run_started` (with the run), `step_started`, `text_delta`, `tool_call`, `search`, `usage` and, at',
    'the end, `done` with the ended run, also if it failed. A failure before the first event is an ordinary error.',
    'After the first event the run continues even if you disconnect, and you can follow it again with `GET',
    '/v1/runs/{id}/events`. A second `step_started` with the same `step` means that another process runs the call',
    'again: discard the text of the step.',
    '',
    'If its process is killed, the run continues in another process with the stored responses, and you pay for no',
    'call twice.',
    '',
    'You can also use an agent as a chat model: send `"model": "agent/<code>"` to chat completions, messages or',
    'responses. That requires the scopes `agents` and `inference`.',
    '',
    'With an `Idempotency-Key`, a repeat returns the same run, as long as the run is stored, and the run continues if',
    'you disconnect. Requires the scope `agents`.',
  ].join('\n'),
  params: { id: AgentId },
  headers: { 'Idempotency-Key': IdempotencyKey, 'x-kis-resumable': Resumable },
  body: AgentRunCreation,
  responses: {
    200: {
      description: 'The ended run, or its events.',
      json: AgentRun,
      content: { 'text/event-stream': AgentRunEvent },
      headers: { 'idempotent-replayed': IdempotentReplayed },
    },
  },
})

export const listAgentRuns = operation('listAgentRuns', 'GET', '/v1/agents/{id}/runs', {
  tag: 'Agents',
  summary: "List an agent's runs",
  description: 'Lists the runs of an agent. The service stores runs for at most 30 days. Requires the scope `agents`.',
  params: { id: AgentId },
  query: { ...Page, status: RunStatus, since: Since, until: Until },
  responses: { 200: { description: 'One page of the list.', json: AgentRunList } },
})

export const listAllAgentRuns = operation('listAllAgentRuns', 'GET', '/v1/runs', {
  tag: 'Agents',
  summary: 'List the runs of all agents',
  description: 'Lists the runs of all agents. The service stores runs for at most 30 days. Requires the scope `agents`.',
  query: { ...Page, status: RunStatus, since: Since, until: Until },
  responses: { 200: { description: 'One page of the list.', json: AgentRunList } },
})

export const getAgentRun = operation('getAgentRun', 'GET', '/v1/runs/{id}', {
  tag: 'Agents',
  summary: 'Get a run',
  description: 'Gets a run of an agent. Requires the scope `agents`.',
  params: { id: RunId },
  responses: { 200: { description: 'The run.', json: AgentRun } },
})

export const deleteAgentRun = operation('deleteAgentRun', 'DELETE', '/v1/runs/{id}', {
  tag: 'Agents',
  summary: 'Delete a run',
  description:
    'Deletes a run that has ended, with its events, and frees its idempotency key. Its thread and usage records stay. Fails ' +
    'with `in_use` while the run is in progress: cancel it first. Requires the scope `agents`.',
  params: { id: RunId },
  responses: { 200: { description: 'The object was deleted.', json: Deletion } },
})

export const followAgentRun = operation('followAgentRun', 'GET', '/v1/runs/{id}/events', {
  tag: 'Agents',
  summary: 'Follow a run',
  description:
    'Streams the events of a run as server-sent events until it ends, whoever started it and on whichever process it runs. ' +
    'This starts nothing and costs nothing. Requires the scope `agents`.',
  params: { id: RunId },
  query: {
    after: EventCursor,
  },
  responses: {
    200: {
      description: 'The events.',
      content: {
        'text/event-stream': string('Server-sent events. The `data` of each is JSON.', {
          contentSchema: { $ref: '#/components/schemas/AgentRunEvent' },
        }),
      },
    },
  },
})

export const cancelAgentRun = operation('cancelAgentRun', 'POST', '/v1/runs/{id}/cancel', {
  tag: 'Agents',
  summary: 'Cancel a run',
  description:
    'Cancels a run soon, on whichever process it runs. You pay for what its calls have produced. A run that has ended does not ' +
    'change. Takes no body. Requires the scope `agents`.',
  params: { id: RunId },
  responses: { 200: { description: 'The current run, which may still be `running`.', json: AgentRun } },
})

export const listThreads = operation('listThreads', 'GET', '/v1/agents/{id}/threads', {
  tag: 'Agents',
  summary: 'List threads',
  description: 'Lists the conversations with an agent that the service stores, without their messages. Requires the scope `agents`.',
  params: { id: AgentId },
  query: { ...Page },
  responses: { 200: { description: 'One page of the list.', json: ThreadList } },
})

export const getThread = operation('getThread', 'GET', '/v1/threads/{id}', {
  tag: 'Agents',
  summary: 'Get a thread',
  description: 'Gets a conversation with its messages. Fails with `not_found` also when it has expired. Requires the scope `agents`.',
  params: { id: ThreadId },
  responses: { 200: { description: 'The thread.', json: ThreadWithMessages } },
})

export const deleteThread = operation('deleteThread', 'DELETE', '/v1/threads/{id}', {
  tag: 'Agents',
  summary: 'Delete a thread',
  description:
    'Deletes a conversation that the service stores, which is the `thread_id` of its runs. The runs stay. Runs in progress do ' +
    'not create it again. Requires the scope `agents`.',
  params: { id: ThreadId },
  responses: { 200: { description: 'The object was deleted.', json: Deletion } },
})
