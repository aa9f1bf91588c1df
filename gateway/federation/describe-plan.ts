import type { PlanNode, QueryPlan } from '@apollo/query-planner'

/** A plan of the largest operation that is served has some hundred fetches. */
const MAX_CHARACTERS = 1_000

/**
 * Writes down a plan: `knowledge > (billing for Organization + inference for Model)` asks knowledge first, and then
 * billing and inference at once. It has names of the contract, and none that a caller chose.
 */
export function describePlan({ node }: { readonly node?: QueryPlan['node'] | undefined }): string {
  if (!node) return 'nothing'
  const text = node.kind === 'Subscription' ? inTurn([node.primary, ...(node.rest ? [node.rest] : [])]) : describe(node)
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text
}

function describe(node: PlanNode): string {
  switch (node.kind) {
    case 'Fetch': {
      const types = new Set(node.requires?.flatMap((required) => ('typeCondition' in required ? (required.typeCondition ?? []) : [])))
      return types.size > 0 ? `${node.serviceName} for ${[...types].join(', ')}` : node.serviceName
    }
    case 'Flatten':
      return describe(node.node)
    case 'Sequence':
      return inTurn(node.nodes)
    case 'Parallel':
      return `(${node.nodes.map(describe).join(' + ')})`
    case 'Condition': {
      const nodes = [node.ifClause, node.elseClause].flatMap((clause) => clause ?? [])
      return `(${nodes.map(describe).join(' or ')} on a condition)`
    }
    default:
      return node.kind
  }
}

function inTurn(nodes: readonly PlanNode[]): string {
  return nodes.map(describe).join(' > ')
}
