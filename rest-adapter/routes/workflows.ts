import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { NotFound } from '../../subgraphs/common/errors.ts'
import { PAGE_INFO, PAGE_NAMES, pageVariables, readId, toList } from '../http/lists.ts'
import { created, deleted, type JsonObject, ok, type Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'

const WORKFLOW = 'id code name definition version createdAt updatedAt'

type WorkflowData = Selected<'Workflow', typeof WORKFLOW>

const CREATE = gatewayOperation(
  `mutation CreateWorkflow($input: CreateWorkflowInput!) { createWorkflow(input: $input) { workflow { ${WORKFLOW} } } }`,
)
const LIST = gatewayOperation(`query Workflows($first: Int!, $after: String, $order: SortOrder) {
  workflows(first: $first, after: $after, order: $order) { edges { node { ${WORKFLOW} } } ${PAGE_INFO} } }`)
const GET = gatewayOperation(`query Workflow($id: ID!) { workflow(id: $id) { ${WORKFLOW} } }`)
const UPDATE = gatewayOperation(
  `mutation UpdateWorkflow($input: UpdateWorkflowInput!) { updateWorkflow(input: $input) { workflow { ${WORKFLOW} } } }`,
)
const DELETE = gatewayOperation('mutation DeleteWorkflow($id: ID!) { deleteWorkflow(id: $id) { id } }')

function toWorkflow({ id, code, name, definition, version, createdAt, updatedAt }: WorkflowData) {
  const times = { created_at: unixSeconds(createdAt), updated_at: unixSeconds(updatedAt) }
  return { id, object: 'workflow', ...times, code, name, definition, version }
}

/** Fields that were left out stay out. */
function toInput({ code, name, definition }: JsonObject): JsonObject {
  return { code, name, definition }
}

export const workflowRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/workflows',
    async handle({ ask, body }) {
      const data = await ask(CREATE, { input: toInput(body) })
      return created(toWorkflow(data.createWorkflow.workflow))
    },
  },
  {
    method: 'GET',
    path: '/v1/workflows',
    async handle({ ask, query }) {
      const data = await ask(LIST, pageVariables(query), PAGE_NAMES)
      return ok(toList(data.workflows, toWorkflow, readId))
    },
  },
  {
    method: 'GET',
    path: '/v1/workflows/{id}',
    async handle({ ask, params }) {
      const { workflow } = await ask(GET, { id: params.id })
      if (!workflow) throw new NotFound('workflow', params.id!)
      return ok(toWorkflow(workflow))
    },
  },
  {
    method: 'PATCH',
    path: '/v1/workflows/{id}',
    async handle({ ask, params, body }) {
      const data = await ask(UPDATE, { input: { id: params.id, ...toInput(body) } })
      return ok(toWorkflow(data.updateWorkflow.workflow))
    },
  },
  {
    method: 'DELETE',
    path: '/v1/workflows/{id}',
    async handle({ ask, params }) {
      const data = await ask(DELETE, { id: params.id })
      return deleted('workflow', data.deleteWorkflow.id)
    },
  },
]
