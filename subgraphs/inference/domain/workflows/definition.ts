import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { checkJson, refuse } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import { errorOfFault } from '../../../common/link/schema-fault.ts'
import { parseUsd } from '../../../common/usd.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { type PlacedSchema, schemaAt } from '../agents/response-schema.ts'
import type { Condition } from './condition.ts'
import { checkGraph } from './graph.ts'
import { Misplaced } from './template.ts'

/** Longest definition as JSON: 50 nodes with long instructions. */
const MAX_CHARACTERS = 524_288
const DEFAULT_MAX_COST = 1_000_000_000n
/** 1,000 USD, as for a run of an agent. */
const MOST_MAX_COST = 1_000_000_000_000n
const DEFAULT_MAX_SECONDS = 3_600

interface NodeFields {
  readonly response_schema?: ProtocolObject
}

/** What a node does, as the definition states it. Every text is a template. */
export type Task = NodeFields &
  (
    | {
        readonly type: 'chat'
        readonly model: string
        readonly messages: readonly { readonly role: string; readonly content: string }[]
        readonly temperature?: number
        readonly top_p?: number
        readonly max_output_tokens?: number
      }
    | { readonly type: 'agent'; readonly agent_id: string; readonly input: string }
    | {
        readonly type: 'search'
        readonly collection_id: string
        readonly query: string
        readonly limit?: number
        readonly filter?: ProtocolObject
      }
    | {
        readonly type: 'transcribe'
        readonly model: string
        readonly file_id: string
        readonly language?: string
        readonly prompt?: string
      }
    | { readonly type: 'template'; readonly template: string }
  )

/** Chooses one of its cases: the nodes of the others are skipped. */
export type BranchTask = NodeFields & {
  readonly type: 'branch'
  readonly cases: readonly { readonly name: string; readonly when: Condition }[]
  readonly default?: string
}

/** Does one task for each item of a list, `at_once` at a time. */
export type MapTask = NodeFields & { readonly type: 'map'; readonly over: unknown; readonly node: Task; readonly at_once?: number }

export type WorkflowNode = (Task | BranchTask | MapTask) & { readonly id: string; readonly after?: readonly string[] }
export type NodeType = 'agent' | 'chat' | 'search' | 'transcribe' | 'template' | 'branch' | 'map'

/** As `schema/workflow.schema.json` describes it. */
export interface WorkflowDefinition {
  readonly inputs?: ProtocolObject
  readonly nodes: readonly WorkflowNode[]
  readonly output: unknown
  readonly max_cost_usd?: string
  readonly max_seconds?: number
}

/** The published schema that checks definitions. */
export const WORKFLOW_SCHEMA = JSON.parse(
  readFileSync(new URL('../../../../schema/workflow.schema.json', import.meta.url), 'utf8'),
) as ProtocolObject
/** Compiled at the first use, because compiling takes more than a twentieth of the start. */
let shape: ValidateFunction<WorkflowDefinition> | undefined

function compileShape(): ValidateFunction<WorkflowDefinition> {
  return new Ajv2020({ strict: false, validateFormats: false, verbose: true }).compile<WorkflowDefinition>(WORKFLOW_SCHEMA)
}

/**
 * Checks a definition, except what needs other parts: models, agents, collections, and whether its schemas are valid.
 * @throws {KisError} the shape is wrong, a reference leads nowhere, or references form a cycle; has the path below
 * `param`
 */
export function workflowDefinition(value: unknown, param: string): WorkflowDefinition {
  if (value === null || value === undefined) refuse('missing_required_parameter', param, `Missing required parameter: '${param}'.`)
  checkJson(value, param)
  if (JSON.stringify(value).length > MAX_CHARACTERS)
    refuse('string_above_max_length', param, `A definition has at most ${MAX_CHARACTERS} characters as JSON.`)
  shape ??= compileShape()
  if (!shape(value)) throw errorOfFault(shape.errors![0]!, 'The definition', param)
  for (const { schema, param: at } of listSchemas(value, param)) schemaAt(schema, at)
  const maxCost = readMaxCost(value)
  if (maxCost <= 0n || maxCost > MOST_MAX_COST)
    refuse('unsupported_value', `${param}.max_cost_usd`, 'The most that a run may cost is above 0 and at most 1,000 USD.')
  try {
    checkGraph(value)
  } catch (error) {
    if (error instanceof Misplaced) throw new KisError('invalid_request', error.message, { param: `${param}.${error.path}`, cause: error })
    throw error
  }
  return value
}

/** Nano-USD. */
export function readMaxCost({ max_cost_usd }: WorkflowDefinition): bigint {
  return max_cost_usd === undefined ? DEFAULT_MAX_COST : parseUsd(max_cost_usd)
}

export function readMaxSeconds({ max_seconds }: WorkflowDefinition): number {
  return max_seconds ?? DEFAULT_MAX_SECONDS
}

/** Lists the schemas of a definition: those of its inputs, and those of its nodes' outputs. */
export function listSchemas({ inputs, nodes }: WorkflowDefinition, param: string): readonly PlacedSchema[] {
  const ofNode = ({ response_schema }: NodeFields, path: string) =>
    response_schema ? [{ schema: response_schema, param: `${path}.response_schema` }] : []
  return [
    ...(inputs ? [{ schema: inputs, param: `${param}.inputs` }] : []),
    ...nodes.flatMap((node, i) => {
      const path = `${param}.nodes[${i}]`
      return [...ofNode(node, path), ...(node.type === 'map' ? ofNode(node.node, `${path}.node`) : [])]
    }),
  ]
}
