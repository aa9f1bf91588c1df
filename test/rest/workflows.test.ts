import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { readOpenApi } from '../../rest-adapter/http/openapi.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import { WORKFLOW_SCHEMA } from '../../subgraphs/inference/domain/workflows/definition.ts'
import { readError, startAdapter } from './support.ts'

const AT = '2026-01-31T12:00:00.000Z'
const AT_SECONDS = 1769860800

const definition = { nodes: [{ id: 'a', type: 'template', template: 'x' }], output: 'x' }
const workflow = { id: 'wfl_1', code: 'flow', name: 'Flow', definition, version: 2, createdAt: AT, updatedAt: AT }
const workflowObject = {
  id: 'wfl_1',
  object: 'workflow',
  created_at: AT_SECONDS,
  updated_at: AT_SECONDS,
  code: 'flow',
  name: 'Flow',
  definition,
  version: 2,
}
const run = {
  ...{ id: 'wfr_1', workflowId: 'wfl_1', workflowVersion: 2, status: 'FAILED', inputs: { q: 'Where?' }, output: null, cost: '0.003' },
  ...{ startedAt: AT, deadline: AT, endedAt: AT, error: { code: 'ENGINE_ERROR', message: 'No.', nodeId: 'b' } },
  nodes: [
    { id: 'a', state: 'DONE', output: { text: 'x' }, cost: '0.003', error: null, startedAt: AT, endedAt: AT },
    { id: 'b', state: 'FAILED', output: null, cost: '0', error: { code: 'ENGINE_ERROR', message: 'No.' }, startedAt: AT, endedAt: null },
  ],
}
const runObject = {
  ...{ id: 'wfr_1', object: 'workflow.run', created_at: AT_SECONDS, deadline: AT_SECONDS, ended_at: AT_SECONDS, workflow_id: 'wfl_1' },
  ...{ workflow_version: 2, status: 'failed', inputs: { q: 'Where?' }, output: null, cost_usd: '0.003' },
  error: { code: 'engine_error', message: 'No.', node_id: 'b' },
  nodes: [
    { id: 'a', state: 'done', output: { text: 'x' }, cost_usd: '0.003', error: null, started_at: AT_SECONDS, ended_at: AT_SECONDS },
    {
      id: 'b',
      state: 'failed',
      output: null,
      cost_usd: '0',
      error: { code: 'engine_error', message: 'No.' },
      started_at: AT_SECONDS,
      ended_at: null,
    },
  ],
}
const event = { runId: 'wfr_1', at: AT, nodeId: null, index: null, state: null, cost: null, run: null }
const events = [
  { ...event, type: 'RUN_STARTED', cursor: '1', run },
  { ...event, type: 'NODE_STARTED', cursor: '2', nodeId: 'a' },
  { ...event, type: 'ITEM_DONE', cursor: '3', nodeId: 'a', index: 0 },
  { ...event, type: 'NODE_ENDED', cursor: '4', nodeId: 'a', state: 'DONE', cost: '0.003' },
  { ...event, type: 'DONE', cursor: '5', run },
]
const page = (node: object) => ({ edges: [{ node }], pageInfo: { hasNextPage: false } })
const list = (object: { id: string }) => ({ object: 'list', data: [object], has_more: false, first_id: object.id, last_id: object.id })

const ajv = new Ajv2020({ strict: false, validateFormats: false, schemas: { openapi: readOpenApi().document } })
const fits = (name: string, value: unknown) => {
  const isValid = ajv.compile({ $ref: `openapi#/components/schemas/${name}` })
  expect(isValid(value) || isValid.errors, name).toBe(true)
}

describe('Workflows over REST', () => {
  for (const [method, path, body, name, data, expected, schema] of [
    [
      'POST',
      '/v1/workflows',
      { code: 'flow', name: 'Flow', definition },
      'CreateWorkflow',
      { createWorkflow: { workflow } },
      workflowObject,
      'Workflow',
    ],
    ['GET', '/v1/workflows?limit=5', undefined, 'Workflows', { workflows: page(workflow) }, list(workflowObject), 'WorkflowList'],
    ['GET', '/v1/workflows/wfl_1', undefined, 'Workflow', { workflow }, workflowObject, 'Workflow'],
    ['PATCH', '/v1/workflows/wfl_1', { name: 'N' }, 'UpdateWorkflow', { updateWorkflow: { workflow } }, workflowObject, 'Workflow'],
    [
      'DELETE',
      '/v1/workflows/wfl_1',
      undefined,
      'DeleteWorkflow',
      { deleteWorkflow: { id: 'wfl_1' } },
      { id: 'wfl_1', object: 'workflow', deleted: true },
      'Deletion',
    ],
    ['POST', '/v1/workflows/wfl_1/runs', { inputs: { q: 'x' } }, 'RunWorkflow', { runWorkflow: run }, runObject, 'WorkflowRun'],
    ['GET', '/v1/workflows/wfl_1/runs', undefined, 'WorkflowRuns', { workflow: { runs: page(run) } }, list(runObject), 'WorkflowRunList'],
    [
      'GET',
      '/v1/workflow-runs?status=running',
      undefined,
      'AllWorkflowRuns',
      { workflowRuns: page(run) },
      list(runObject),
      'WorkflowRunList',
    ],
    ['GET', '/v1/workflow-runs/wfr_1', undefined, 'WorkflowRunById', { workflowRun: run }, runObject, 'WorkflowRun'],
    [
      'DELETE',
      '/v1/workflow-runs/wfr_1',
      undefined,
      'DeleteWorkflowRun',
      { deleteWorkflowRun: { id: 'wfr_1' } },
      { id: 'wfr_1', object: 'workflow.run', deleted: true },
      'Deletion',
    ],
    ['POST', '/v1/workflow-runs/wfr_1/cancel', undefined, 'CancelWorkflowRun', { cancelWorkflowRun: run }, runObject, 'WorkflowRun'],
  ] as const) {
    it(`${method} ${path} returns the object in snake case`, async () => {
      await using adapter = await startAdapter({ [name]: () => data })
      const response = await adapter.fetch(path, { method, body })
      expect([response.status, await response.json()]).toEqual([path === '/v1/workflows' ? 201 : 200, expected])
      fits(schema, expected)
    })
  }

  it('passes on the input of a run', async () => {
    await using adapter = await startAdapter({ RunWorkflow: () => ({ runWorkflow: run }) })
    await adapter.fetch('/v1/workflows/wfl_1/runs', { body: { inputs: { a: 1 }, max_cost_usd: '0.1', max_seconds: 9, wait: true } })
    expect(adapter.gateway.received[0]!.variables.input).toEqual({
      workflowId: 'wfl_1',
      inputs: { a: 1 },
      maxCost: '0.1',
      maxSeconds: 9,
      wait: true,
    })
  })

  for (const [what, path, body, headers] of [
    ['streams a run', '/v1/workflows/wfl_1/runs', { stream: true }, { 'x-kis-resumable': 'true' }],
    ['follows a run from a cursor', '/v1/workflow-runs/wfr_1/events?after=0', undefined, {}],
    ['follows a run from the cursor of a header', '/v1/workflow-runs/wfr_1/events', undefined, { 'last-event-id': '0' }],
  ] as const) {
    it(`${what} as typed events`, async () => {
      await using adapter = await startAdapter({
        async *WorkflowRun() {
          for (const workflowRun of events) yield { workflowRun }
        },
        async *WorkflowRunEvents({ after }: { after?: unknown }) {
          expect(after).toBe('0')
          for (const workflowRunEvents of events) yield { workflowRunEvents }
        },
      })
      const response = await adapter.fetch(path, { body, headers })
      const texts = (await response.text()).split('\n\n').filter((text) => text !== '')
      const common = (cursor: string) => ({ run_id: 'wfr_1', cursor, created_at: AT_SECONDS })
      const expected = [
        { type: 'run_started', ...common('1'), run: runObject },
        { type: 'node_started', ...common('2'), node_id: 'a' },
        { type: 'item_done', ...common('3'), node_id: 'a', index: 0 },
        { type: 'node_ended', ...common('4'), node_id: 'a', state: 'done', cost_usd: '0.003' },
        { type: 'done', ...common('5'), run: runObject },
      ]
      const got = texts.map((text) => text.split('\n'))
      expect(got.map(([id, type, data]) => [id, type, JSON.parse(data!.slice('data: '.length))])).toEqual(
        expected.map((data) => [`id: ${data.cursor}`, `event: ${data.type}`, data]),
      )
      for (const data of expected) fits('WorkflowRunEvent', data)
    })
  }

  it('reports errors by the field names of the caller', async () => {
    const refuse = (param: string) => () => {
      throw new KisError('invalid_request', 'No.', { param })
    }
    await using adapter = await startAdapter({
      Workflow: () => ({ workflow: null }),
      WorkflowRunById: () => ({ workflowRun: null }),
      CreateWorkflow: refuse('input.definition.nodes[2].template'),
      RunWorkflow: refuse('input.inputs.maxCost'),
    })
    for (const path of ['/v1/workflows/wfl_2', '/v1/workflow-runs/wfr_2'])
      expect(await readError(await adapter.fetch(path))).toMatchObject({ status: 404, code: 'not_found' })
    for (const [path, body, code, param] of [
      ['/v1/workflows', { code: 'f', name: 'F', definition }, 'invalid_request', 'definition.nodes[2].template'],
      ['/v1/workflows/wfl_1/runs', {}, 'invalid_request', 'inputs.maxCost'],
      ['/v1/workflows', { code: 'f', name: 'F' }, 'missing_required_parameter', 'definition'],
      ['/v1/workflows/wfl_1/runs', { max_seconds: 0 }, 'integer_below_min_value', 'max_seconds'],
    ] as const)
      expect(await readError(await adapter.fetch(path, { body }))).toMatchObject({ code, param })
  })

  it('serves the JSON Schema of definitions without a key', async () => {
    await using adapter = await startAdapter()
    const response = await fetch(`${adapter.url}/v1/workflow.schema.json`)
    expect(response.headers.get('content-type')).toBe('application/schema+json; charset=utf-8')
    expect(await response.json()).toEqual(WORKFLOW_SCHEMA)
  })
})
