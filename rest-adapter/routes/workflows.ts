import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/workflows.ts'
import { PAGE_INFO } from '../http/lists.ts'
import { createRoute, deleteRoute, listRoute, readRoute, updateRoute } from '../http/resource-routes.ts'
import type { JsonObject, Route } from '../http/route.ts'
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

function toWorkflow({ id, code, name, definition, version, createdAt, updatedAt }: WorkflowData): operations.Workflow {
  const times = { created_at: unixSeconds(createdAt), updated_at: unixSeconds(updatedAt) }
  return { id, object: 'workflow', ...times, code, name, definition: definition as operations.Workflow['definition'], version }
}

/** Converts the body to the input. Absent fields stay absent. */
function toInput({ code, name, definition }: JsonObject): JsonObject {
  return { code, name, definition }
}

export const workflowRoutes: readonly Route[] = [
  createRoute(operations.createWorkflow, CREATE, toInput, (data) => toWorkflow(data.createWorkflow.workflow)),
  listRoute(operations.listWorkflows, LIST, (data) => data.workflows, toWorkflow),
  readRoute(operations.getWorkflow, GET, 'workflow', ({ workflow }) => workflow && toWorkflow(workflow)),
  updateRoute(operations.updateWorkflow, UPDATE, toInput, (data) => toWorkflow(data.updateWorkflow.workflow)),
  deleteRoute(operations.deleteWorkflow, DELETE, 'workflow', (data) => data.deleteWorkflow.id),
]
