import { checkInteger, checkLength, checkNumber, isAbsent, listAt, refuse, textAt } from '../../../common/check.ts'
import { checkPlain } from '../../../common/plain-text.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { type McpServer, type McpServerInput, type SealHeaders, toMcpServers } from './mcp-servers.ts'
import { schemaAt } from './response-schema.ts'

/** Most calls of the model in one run. `MAX_TOOL_CALLS` limits the searches of all these calls (design 9). */
export const MAX_STEPS = 12
/** Most searches in all model calls of one run. */
export const MAX_TOOL_CALLS = 24
/** What a run may cost unless the agent says otherwise: 1 USD in nano-USD. */
const DEFAULT_MAX_COST = 1_000_000_000n
/** 1,000 USD, because a run answers one person's question. */
const MOST_MAX_COST = 1_000_000_000_000n
const MAX_COLLECTIONS = 10
const MAX_NAME = 200
const MAX_INSTRUCTIONS = 32_768
const CODE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

/** One version of an agent. */
export interface AgentDefinition {
  readonly name: string
  readonly instructions: string
  /** A chat model, by id or alias. */
  readonly modelId: string
  /** Each collection becomes a search tool. */
  readonly collectionIds: readonly string[]
  /** The servers' tools become the agent's. */
  readonly mcpServers: readonly McpServer[]
  /** Fields of the chat protocol, sent unchanged. */
  readonly sampling: ProtocolObject & { readonly temperature?: number; readonly top_p?: number; readonly max_completion_tokens?: number }
  /** JSON Schema 2020-12 of the reply. Null: the reply is text. */
  readonly responseSchema: ProtocolObject | null
  readonly maxSteps: number
  /** The most that a run may cost, in nano-USD. */
  readonly maxCost: bigint
}

/** An agent as the caller defines it. Fields that are left out get their defaults. */
export interface AgentInput {
  readonly name?: string | null
  readonly instructions?: string | null
  readonly model?: string | null
  readonly collectionIds?: readonly string[] | null
  readonly mcpServers?: readonly McpServerInput[] | null
  readonly temperature?: number | null
  readonly topP?: number | null
  readonly maxOutputTokens?: number | null
  readonly responseSchema?: unknown
  readonly maxSteps?: number | null
  readonly maxCost?: bigint | null
}

/**
 * Checks a definition, except what needs other parts: the model, the collections, whether servers are allowed, and
 * whether the schema is valid. `before`: the definition that this one replaces. Headers that the input leaves out are
 * copied from it.
 * @throws {KisError} a field is wrong; has the path below `input`
 */
export function agentDefinition(input: AgentInput, seal: SealHeaders, before?: AgentDefinition): AgentDefinition {
  const name = textAt(input.name, 'input.name').trim()
  if (name === '') refuse('invalid_request', 'input.name', 'A name must not be empty.')
  checkLength(name, 'input.name', MAX_NAME)
  checkPlain(name, 'input.name')
  const instructions = input.instructions ?? ''
  checkLength(instructions, 'input.instructions', MAX_INSTRUCTIONS)
  const collectionIds = [...new Set(listAt(input.collectionIds ?? [], 'input.collectionIds', 0, MAX_COLLECTIONS) as readonly string[])]
  checkNumber(input.temperature, 'input.temperature', 0, 2)
  checkNumber(input.topP, 'input.topP', 0, 1)
  checkInteger(input.maxOutputTokens, 'input.maxOutputTokens', 1, Number.MAX_SAFE_INTEGER)
  checkInteger(input.maxSteps, 'input.maxSteps', 1, MAX_STEPS)
  const maxCost = input.maxCost ?? DEFAULT_MAX_COST
  if (maxCost <= 0n || maxCost > MOST_MAX_COST)
    refuse('unsupported_value', 'input.maxCost', 'The most that a run may cost is above 0 and at most 1,000 USD.')
  const { temperature, topP, maxOutputTokens } = input
  return {
    name,
    instructions,
    modelId: textAt(input.model, 'input.model'),
    collectionIds,
    mcpServers: toMcpServers(input.mcpServers, before?.mcpServers ?? [], seal),
    sampling: {
      ...(!isAbsent(temperature) && { temperature }),
      ...(!isAbsent(topP) && { top_p: topP }),
      ...(!isAbsent(maxOutputTokens) && { max_completion_tokens: maxOutputTokens }),
    },
    responseSchema: isAbsent(input.responseSchema) ? null : schemaAt(input.responseSchema, 'input.responseSchema'),
    maxSteps: input.maxSteps ?? MAX_STEPS,
    maxCost,
  }
}

/**
 * Checks an agent's code: a short name, unique in the organization. `agent/<code>` names the agent as a chat model.
 * @throws {KisError} the code is wrong
 */
export function checkAgentCode(code: unknown): string {
  if (CODE.test(textAt(code, 'input.code'))) return code as string
  return refuse('invalid_request', 'input.code', 'A code has 1 to 64 letters, digits, `_`, `-` or `.`, and begins with a letter or digit.')
}

/** A definition as stored. `maxCost` is a text, because a stored document cannot contain big integers. */
export function storedDefinition({ maxCost, ...rest }: AgentDefinition): string {
  return JSON.stringify({ ...rest, maxCost: String(maxCost) })
}

export function readDefinition(stored: string): AgentDefinition {
  const { maxCost, ...rest } = JSON.parse(stored) as Omit<AgentDefinition, 'maxCost'> & { readonly maxCost: string }
  // Definitions of earlier versions have no servers.
  return { ...rest, mcpServers: rest.mcpServers ?? [], maxCost: BigInt(maxCost) }
}
