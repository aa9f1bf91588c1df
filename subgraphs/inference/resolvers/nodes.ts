import { KisError } from '../../common/errors.ts'
import { requirePrincipal, requireScope, type Scope } from '../../common/identity/principal.ts'
import { isOffered } from '../domain/engines/residency.ts'
import type { Owner } from '../ports/owned-nodes.ts'
import { findRun } from '../use-cases/agents/read-runs.ts'
import { findThread } from '../use-cases/agents/threads.ts'
import { findWorkflowRun } from '../use-cases/workflows/read-runs.ts'
import { findWorkflow } from '../use-cases/workflows/workflows.ts'
import { findView } from './agents.ts'
import type { Context } from './context.ts'
import type { QueryResolvers } from './generated.ts'

const MAX_IDS = 100
/** The longest ids are those of chunks. */
const PREFIXED_ID = /^([a-z]+)_[0-9a-z_]{1,60}$/

interface Kind {
  readonly type: string
  readonly owner: Owner
  /** The scope that the object's own field requires. Null: the owner decides who may read the object. */
  readonly scope: Scope | null
}

/** Kinds of objects of other subgraphs, by the prefixes of their ids. */
const KINDS: ReadonlyMap<string, Kind> = new Map([
  ['col', { type: 'Collection', owner: 'knowledge', scope: 'knowledge:read' }],
  ['file', { type: 'File', owner: 'knowledge', scope: 'knowledge:read' }],
  ['doc', { type: 'Document', owner: 'knowledge', scope: 'knowledge:read' }],
  ['chunk', { type: 'Chunk', owner: 'knowledge', scope: 'knowledge:read' }],
  ['gq', { type: 'GoldQuestion', owner: 'knowledge', scope: 'knowledge:read' }],
  ['evl', { type: 'Evaluation', owner: 'knowledge', scope: 'knowledge:read' }],
  ['remb', { type: 'Reembedding', owner: 'knowledge', scope: 'knowledge:read' }],
  ['web', { type: 'WebSource', owner: 'knowledge', scope: 'knowledge:read' }],
  ['upload', { type: 'Upload', owner: 'knowledge', scope: 'knowledge:write' }],
  ['org', { type: 'Organization', owner: 'billing', scope: null }],
  ['key', { type: 'ApiKey', owner: 'billing', scope: null }],
  ['mem', { type: 'Member', owner: 'billing', scope: null }],
  ['inv', { type: 'Invitation', owner: 'billing', scope: 'admin' }],
  ['wal', { type: 'Wallet', owner: 'billing', scope: 'billing:read' }],
  ['ent', { type: 'LedgerEntry', owner: 'billing', scope: 'billing:read' }],
  ['use', { type: 'UsageRecord', owner: 'billing', scope: 'billing:read' }],
  ['whe', { type: 'WebhookEndpoint', owner: 'billing', scope: 'admin' }],
  ['whd', { type: 'WebhookDelivery', owner: 'billing', scope: 'admin' }],
])

export const nodeQueries: QueryResolvers = {
  node: (_parent, { id }, context) => findNode(id, context),
  nodes(_parent, { ids }, context) {
    if (ids.length > MAX_IDS)
      throw new KisError('invalid_request', `\`nodes\` takes at most ${MAX_IDS} ids. Send the rest in another request.`, { param: 'ids' })
    // A separate promise for each, so that one failure leaves the others. Codegen has no type for a promise of null.
    return ids.map((id) => findNode(id, context) as Promise<NonNullable<Awaited<ReturnType<typeof findNode>>>>)
  },
}

/** Returns null if nothing has the id, or the object belongs to another organization. */
async function findNode(id: string, { deps, nodes, ...requestContext }: Context) {
  const principal = requirePrincipal(requestContext.caller)
  const prefix = PREFIXED_ID.exec(id)?.[1] ?? ''
  switch (prefix) {
    case 'agt':
      return named('Agent', await findView(deps, requestContext, id))
    case 'run':
      return named('AgentRun', await findRun(deps, requestContext, id))
    case 'thr':
      return named('Thread', await findThread(deps, requestContext, id))
    case 'wfl':
      return named('Workflow', await findWorkflow(deps, requestContext, id))
    case 'wfr':
      return named('WorkflowRun', await findWorkflowRun(deps, requestContext, id))
  }
  const kind = KINDS.get(prefix)
  if (kind) {
    if (kind.scope) requireScope(principal, kind.scope)
    return (await nodes.has(kind.owner, { type: kind.type, id })) ? { __typename: kind.type, id } : null
  }
  // The operator chooses the ids of models, so they have no prefix. An alias is not an id.
  const model = deps.catalog.find(id)
  if (model?.id !== id) return null
  requireScope(principal, 'inference')
  return isOffered(model, principal) ? named('Model', model) : null
}

function named<T extends object>(type: string, found: T | null) {
  return found && { ...found, __typename: type }
}
