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
  nullable,
  object,
  oneOf,
  operation,
  optional,
  string,
} from './build.ts'
import { Deletion, EventCursor, IdempotencyKey, listOf, Page, Resumable, RunStatus, Since, UnixSeconds, Until } from './shared.ts'

export const WorkflowNode = define('WorkflowNode').open('A node of a workflow. Its other fields are those of its type.', {
  id: optional(string('The id: 1 to 64 letters, digits or `_`, unique in the workflow.')),
  type: optional(string('The type: `chat`, `agent`, `search`, `transcribe`, `template`, `branch` or `map`.')),
  after: optional(array(string(), 'The nodes that must be done before this one, and the cases, as `branch.case`.')),
})

export const WorkflowDefinition = define('WorkflowDefinition').open(
  'The definition: the nodes, the output and the limits of a run. `GET /v1/workflow.schema.json` returns its whole JSON Schema.',
  {
    inputs: optional(anyObject('The JSON Schema (2020-12) of the inputs of a run. Default: any object.')),
    nodes: optional(array(WorkflowNode, 'The nodes, in any order.')),
    output: optional(anything('The output of a run: any JSON with templates in its texts.')),
    max_cost_usd: optional(string('The most that a run may cost in US dollars. Default 1.')),
    max_seconds: optional(integer('The most seconds that a run may take. Default 3600.')),
  },
  { example: { nodes: [{ id: 'find', type: 'template', template: 'Hello {{ inputs.name }}' }], output: '{{ nodes.find.text }}' } },
)

export const WorkflowCreation = define('WorkflowCreation').closed({
  code: string('A short code, unique in the organization: 1 to 64 letters, digits, `_`, `-` or `.`.', { minLength: 1, maxLength: 64 }),
  name: string('The display name.', { minLength: 1, maxLength: 200 }),
  definition: WorkflowDefinition,
})

export const WorkflowChange = define('WorkflowChange').closed({
  code: optional(nullable(string('The new code. The rules are those of a new workflow.', { minLength: 1, maxLength: 64 }))),
  name: optional(nullable(string('The new display name.', { minLength: 1, maxLength: 200 }))),
  definition: optional(described(nullable(WorkflowDefinition), 'The new definition, which replaces the old one as a whole.')),
})

export const Workflow = define('Workflow').object(
  'A directed graph of nodes. Each node begins when the nodes that it depends on are done.',
  {
    id: string('The id: `wfl_…`.'),
    object: constant('workflow'),
    created_at: UnixSeconds,
    updated_at: UnixSeconds,
    code: string('A short code, unique in the organization.'),
    name: string('The display name.'),
    definition: WorkflowDefinition,
    version: integer('The version: 1 at first, and one more with each change.'),
  },
)
export type Workflow = Static<typeof Workflow>

export const WorkflowList = define('WorkflowList').as(listOf(Workflow))

export const WorkflowRunCreation = define('WorkflowRunCreation').closed({
  inputs: optional(
    nullable(
      anyObject(
        'The inputs: an object that matches `inputs` of the definition, at most 262144 characters as JSON. Default: an empty object.',
      ),
    ),
  ),
  max_cost_usd: optional(
    nullable(
      string('The most that this run may cost in US dollars. It lowers the limit of the workflow and cannot raise it.', {
        pattern: '^\\d{1,4}(\\.\\d{1,9})?$',
      }),
    ),
  ),
  max_seconds: optional(
    nullable(
      integer('The most seconds that this run may take. It lowers the limit of the workflow and cannot raise it.', {
        minimum: 1,
        maximum: 21600,
      }),
    ),
  ),
  wait: optional(nullable(boolean('Whether to wait until the run has ended. If you disconnect, the run continues.'))),
  stream: optional(nullable(boolean('Whether to stream the events of the run.'))),
})

export const WorkflowRunError = define('WorkflowRunError').as(
  nullable(
    object('Why the run or the node failed. Null if it did not.', {
      code: optional(string("The error code, for programs: one of the service's error codes.")),
      message: optional(string('The error message, for people.')),
      node_id: optional(nullable(string('The id of the node that failed. Null if the run failed as a whole.'))),
    }),
  ),
)

export const WorkflowRun = define('WorkflowRun').object('One run of a workflow, with its output and its cost.', {
  id: string('The id: `wfr_…`. The usage records of the run have it as `request_id`.'),
  object: constant('workflow.run'),
  created_at: UnixSeconds,
  deadline: integer(
    'When the time of the run is over, in Unix seconds. If the run has not ended by then, it fails with `run_limit_exceeded`.',
  ),
  ended_at: nullable(integer('When the run ended, in Unix seconds. Null while it is in progress.')),
  workflow_id: string('The id of the workflow, also when the workflow was deleted.'),
  workflow_version: integer('The version of the workflow that the run uses.'),
  status: oneOf(['running', 'completed', 'failed', 'cancelled'], 'The status of the run.'),
  inputs: anyObject('The inputs of the run.'),
  output: anything("The output that the definition's `output` describes. Null unless the status is `completed`."),
  nodes: array(
    object({
      id: string('The id of the node in the definition.'),
      state: oneOf(
        ['pending', 'running', 'done', 'failed', 'skipped'],
        'The state of the node. `skipped`: a branch chose another case, a node that it depends on was skipped, or the run ended first.',
      ),
      output: anything('The output that later nodes can use. Null unless the state is `done`.'),
      cost_usd: string("The amount charged for the node's calls, in US dollars."),
      error: WorkflowRunError,
      started_at: nullable(integer('When the node began, in Unix seconds. Null if it has not begun.')),
      ended_at: nullable(integer('When the node ended, in Unix seconds. Null if it has not.')),
    }),
    'The nodes in the order of the definition, each with its cost. The sum of their costs is `cost_usd`.',
  ),
  cost_usd: nullable(string('The amount charged, in US dollars. Null while the run is in progress.')),
  error: WorkflowRunError,
})
export type WorkflowRun = Static<typeof WorkflowRun>

export const WorkflowRunList = define('WorkflowRunList').as(listOf(WorkflowRun))

export const WorkflowRunEvent = define('WorkflowRunEvent').object('An event of a run. Which fields it has depends on its `type`.', {
  type: oneOf(
    ['run_started', 'node_started', 'item_done', 'node_ended', 'done', 'error'],
    'The type of the event. `error`, instead of `done`, means that the stream failed, not the run: follow the run again.',
  ),
  run_id: string('The id of the run.'),
  cursor: string('The position of this event. To continue after it, pass it as `after` of `GET /v1/workflow-runs/{id}/events`.'),
  created_at: UnixSeconds,
  node_id: optional(string('The id of the node.')),
  index: optional(integer('With `item_done`: the position of the item in the map, from 0.')),
  state: optional(oneOf(['done', 'failed', 'skipped'], 'With `node_ended`: the state of the node.')),
  cost_usd: optional(string("With `node_ended`: the amount charged for the node's calls, in US dollars.")),
  run: optional(WorkflowRun),
})
export type WorkflowRunEvent = Static<typeof WorkflowRunEvent>

export const WorkflowId = string('The id of the workflow, `wfl_…`.')
export const WorkflowRunId = string('The id of the run, `wfr_…`.')

export const createWorkflow = operation('createWorkflow', 'POST', '/v1/workflows', {
  tag: 'Workflows',
  summary: 'Create a workflow',
  description: [
    'Creates a workflow. Its definition is a directed graph of nodes of the types `chat`, `agent`, `search`,',
    '`transcribe`, `template`, `branch` and `map`. A node begins when everything is done that its texts refer to, as',
    'in `{{ nodes.find.text }}`, and that it stands `after`. `GET /v1/workflow.schema.json` returns the JSON Schema',
    'of definitions.',
    '',
    'If the definition is wrong, `param` has the path of the mistake, such as `definition.nodes[2].template`.',
    'Mistakes include references to unknown nodes, and nodes that wait for each other. Fails with `not_found` if a',
    'collection or an agent does not exist, with `model_not_found` if your key may not call a model, and with',
    '`already_exists` if the code is taken. Requires the scope `agents`.',
  ].join('\n'),
  body: WorkflowCreation,
  responses: { 201: { description: 'The workflow.', json: Workflow } },
})

export const listWorkflows = operation('listWorkflows', 'GET', '/v1/workflows', {
  tag: 'Workflows',
  summary: 'List workflows',
  description: 'Lists the workflows of your organization. Requires the scope `agents`.',
  query: { ...Page },
  responses: { 200: { description: 'One page of the list.', json: WorkflowList } },
})

export const getWorkflow = operation('getWorkflow', 'GET', '/v1/workflows/{id}', {
  tag: 'Workflows',
  summary: 'Get a workflow',
  description: 'Gets a workflow. Requires the scope `agents`.',
  params: { id: WorkflowId },
  responses: { 200: { description: 'The workflow.', json: Workflow } },
})

export const updateWorkflow = operation('updateWorkflow', 'PATCH', '/v1/workflows/{id}', {
  tag: 'Workflows',
  summary: 'Change a workflow',
  description:
    'Changes a workflow and so creates a new version of it. Fields that you leave out or set to null keep their values. Runs ' +
    'in progress continue with the version that they began with. Requires the scope `agents`.',
  params: { id: WorkflowId },
  body: WorkflowChange,
  isBodyRequired: false,
  responses: { 200: { description: 'The workflow.', json: Workflow } },
})

export const deleteWorkflow = operation('deleteWorkflow', 'DELETE', '/v1/workflows/{id}', {
  tag: 'Workflows',
  summary: 'Delete a workflow',
  description:
    'Deletes a workflow with all its versions, once its runs in progress have ended, and frees its code. Its runs stay, under ' +
    'their ids, until you delete them or they expire. Requires the scope `agents`.',
  params: { id: WorkflowId },
  responses: { 200: { description: 'The object was deleted.', json: Deletion } },
})

export const runWorkflow = operation('runWorkflow', 'POST', '/v1/workflows/{id}/runs', {
  tag: 'Workflows',
  summary: 'Run a workflow',
  description: [
    'Starts a run and returns it at once, or with `"wait": true` when it has ended. The service holds the most',
    'that the run may cost when it begins. The run continues if you disconnect. If its process is killed, the run',
    'continues after the last finished node, and you pay for no call twice. `status` and `error` show how the run',
    'ended. Only `POST /v1/workflow-runs/{id}/cancel`, its limits or a failed node end it early.',
    '',
    'With `"stream": true` the response is server-sent events. Each has its type as `event:` and its cursor as `id:`.',
    'The types are `run_started` (with the run), `node_started`, `item_done`, `node_ended` and, at the end, `done`',
    'with the ended run, also if it failed. You can follow the run again with `GET /v1/workflow-runs/{id}/events`.',
    '',
    'With an `Idempotency-Key`, a repeat returns the same run, as long as the run is stored. Requires the scope',
    '`agents`.',
  ].join('\n'),
  params: { id: WorkflowId },
  headers: { 'Idempotency-Key': IdempotencyKey, 'x-kis-resumable': Resumable },
  body: WorkflowRunCreation,
  isBodyRequired: false,
  responses: { 200: { description: 'The run, or its events.', json: WorkflowRun, content: { 'text/event-stream': WorkflowRunEvent } } },
})

export const listWorkflowRuns = operation('listWorkflowRuns', 'GET', '/v1/workflows/{id}/runs', {
  tag: 'Workflows',
  summary: "List a workflow's runs",
  description: 'Lists the runs of a workflow. The service stores runs for at most 30 days. Requires the scope `agents`.',
  params: { id: WorkflowId },
  query: { ...Page, status: RunStatus, since: Since, until: Until },
  responses: { 200: { description: 'One page of the list.', json: WorkflowRunList } },
})

export const listAllWorkflowRuns = operation('listAllWorkflowRuns', 'GET', '/v1/workflow-runs', {
  tag: 'Workflows',
  summary: 'List the runs of all workflows',
  description: 'Lists the runs of all workflows. The service stores runs for at most 30 days. Requires the scope `agents`.',
  query: { ...Page, status: RunStatus, since: Since, until: Until },
  responses: { 200: { description: 'One page of the list.', json: WorkflowRunList } },
})

export const getWorkflowRun = operation('getWorkflowRun', 'GET', '/v1/workflow-runs/{id}', {
  tag: 'Workflows',
  summary: 'Get a workflow run',
  description: 'Gets a run of a workflow. Requires the scope `agents`.',
  params: { id: WorkflowRunId },
  responses: { 200: { description: 'The run.', json: WorkflowRun } },
})

export const deleteWorkflowRun = operation('deleteWorkflowRun', 'DELETE', '/v1/workflow-runs/{id}', {
  tag: 'Workflows',
  summary: 'Delete a workflow run',
  description:
    'Deletes a run that has ended, with its events and the responses of its calls, and frees its idempotency key. Its usage ' +
    'records stay. Fails with `in_use` while the run is in progress: cancel it first. Requires the scope `agents`.',
  params: { id: WorkflowRunId },
  responses: { 200: { description: 'The object was deleted.', json: Deletion } },
})

export const followWorkflowRun = operation('followWorkflowRun', 'GET', '/v1/workflow-runs/{id}/events', {
  tag: 'Workflows',
  summary: 'Follow a workflow run',
  description:
    'Streams the events of a run as server-sent events until it ends, whoever started it and on whichever process it runs. ' +
    'This starts nothing and costs nothing. Requires the scope `agents`.',
  params: { id: WorkflowRunId },
  query: {
    after: EventCursor,
  },
  responses: {
    200: {
      description: 'The events.',
      content: {
        'text/event-stream': string('Server-sent events. The `data` of each is JSON.', {
          contentSchema: { $ref: '#/components/schemas/WorkflowRunEvent' },
        }),
      },
    },
  },
})

export const cancelWorkflowRun = operation('cancelWorkflowRun', 'POST', '/v1/workflow-runs/{id}/cancel', {
  tag: 'Workflows',
  summary: 'Cancel a workflow run',
  description:
    'Cancels a run soon, on whichever process it runs. You pay for what its calls have used. A run that has ended does not ' +
    'change. Takes no body. Requires the scope `agents`.',
  params: { id: WorkflowRunId },
  responses: { 200: { description: 'The current run, which may still be `running`.', json: WorkflowRun } },
})
