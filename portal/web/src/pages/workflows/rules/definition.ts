import type { JsonObject } from '../../../data/is-object.ts'

/** A definition as the service stores it; `schema/workflow.schema.json` describes it. */
export interface Definition {
  readonly inputs?: JsonObject
  readonly nodes: readonly DefinitionNode[]
  readonly output: unknown
  readonly max_cost_usd?: string
  readonly max_seconds?: number
}

export interface DefinitionNode extends JsonObject {
  readonly id: string
  readonly type: NodeType
  readonly after?: readonly string[]
}

const NODE_TYPES = ['chat', 'agent', 'search', 'transcribe', 'template', 'branch', 'map'] as const
export type NodeType = (typeof NODE_TYPES)[number]

/** Writes JSON for people to read and edit. */
export function writeJson(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? 'null'
}
