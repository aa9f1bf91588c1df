import { ErrorCode, type ListToolsResult, McpError, type Tool } from '@modelcontextprotocol/sdk/types.js'
import { gatewayOperation, type OperationText } from '../../schema/operations.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { ConnectionData } from '../http/lists.ts'
import type { Call } from '../http/route.ts'
import { toInputSchema } from './search.ts'

/** Tools on a page. Many clients read only the first page. */
const PAGE_TOOLS = 50
/** The longest tool name that the models' vendors accept. */
const MAX_NAME = 64
const PLAIN = /^[A-Za-z0-9_-]+$/

/** A kind of tool: objects that have a code and an ID. */
interface Kind<Item extends Named> {
  /** Prefix of the tool's name before the code, or before the ID if the code cannot be part of a name. */
  readonly prefix: string
  readonly id: RegExp
  readonly list: OperationText<{ readonly items: Page<Item> }, never>
  readonly byId: OperationText<{ readonly item: Item | null }, never>
  readonly byCode: OperationText<{ readonly item: Item | null }, never>
  toTool(item: Item, name: string): Tool
}

/** A collection or agent that is offered as a tool. */
export interface Named {
  readonly id: string
  readonly code: string
  readonly name: string
}

export interface CollectionData extends Named {
  /** Null when the collection was deleted meanwhile. */
  readonly searchTool: { readonly description: string; readonly parameters: unknown } | null
}

type Page<Item> = ConnectionData<Item> & { readonly pageInfo: { readonly endCursor: string | null } }

const COLLECTION = 'id code name searchTool { description parameters }'
const AGENT = 'id code name'
const PAGE = 'pageInfo { hasNextPage endCursor }'
const READ_ONLY = { readOnlyHint: true, openWorldHint: false } as const

const SEARCHES: Kind<CollectionData> = {
  prefix: 'search_',
  id: /^col_[0-9a-f]{32}$/,
  list: gatewayOperation(
    `query McpCollections($first: Int!, $after: String) { items: collections(first: $first, after: $after) { edges { node { ${COLLECTION} } } ${PAGE} } }`,
  ),
  byId: gatewayOperation(`query McpCollection($name: ID!) { item: collection(id: $name) { ${COLLECTION} } }`),
  byCode: gatewayOperation(`query McpCollectionByCode($name: String!) { item: collectionByCode(code: $name) { ${COLLECTION} } }`),
  toTool: ({ name: title, searchTool }, name) => ({
    name,
    title,
    description: searchTool?.description ?? '',
    // Inference always creates a JSON Schema of type `object`.
    inputSchema: toInputSchema(searchTool?.parameters) as Tool['inputSchema'],
    annotations: READ_ONLY,
  }),
}

const AGENTS: Kind<Named> = {
  prefix: 'run_agent_',
  id: /^agt_[0-9a-f]{32}$/,
  list: gatewayOperation(
    `query McpAgents($first: Int!, $after: String) { items: agents(first: $first, after: $after) { edges { node { ${AGENT} } } ${PAGE} } }`,
  ),
  byId: gatewayOperation(`query McpAgent($name: ID!) { item: agent(id: $name) { ${AGENT} } }`),
  byCode: gatewayOperation(`query McpAgentByCode($name: ID!) { item: agent(id: $name) { ${AGENT} } }`),
  toTool: ({ name: title }, name) => ({
    name,
    title,
    description: `Asks the agent "${title}" of this organization and gives its answer with the passages that it cites. It searches its own documents and remembers nothing of earlier calls.`,
    inputSchema: {
      type: 'object',
      properties: {
        input: { type: 'string', description: 'The question or task with all that the agent must know of it, in Arabic or English.' },
      },
      required: ['input'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: true },
  }),
}

type FoundTool = { readonly kind: 'search'; readonly collection: CollectionData } | { readonly kind: 'agent'; readonly agent: Named }

/**
 * Lists the tools of the key, newest first: collections with scope `knowledge:read`, then agents with scope `agents`.
 * @throws {KisError} the gateway's error
 * @throws {McpError} the cursor is not valid
 */
export async function listTools(call: Call, cursor: string | undefined): Promise<ListToolsResult> {
  const { section, after } = readCursor(cursor)
  const tools: Tool[] = []
  if (section === 'collections') {
    const { items, next } = await fetchPage(call, SEARCHES, PAGE_TOOLS, after)
    tools.push(...items)
    if (next) return { tools, nextCursor: writeCursor('collections', next) }
    if (tools.length === PAGE_TOOLS) return { tools, nextCursor: writeCursor('agents', '') }
  }
  const { items, next } = await fetchPage(call, AGENTS, PAGE_TOOLS - tools.length, section === 'agents' ? after : null)
  tools.push(...items)
  return { tools, ...(next && { nextCursor: writeCursor('agents', next) }) }
}

/** @throws {McpError} the key can see no tool of this name */
export async function findTool(call: Call, name: string): Promise<FoundTool> {
  const collection = await find(call, SEARCHES, name)
  if (collection) return { kind: 'search', collection }
  const agent = await find(call, AGENTS, name)
  if (agent) return { kind: 'agent', agent }
  throw new McpError(ErrorCode.InvalidParams, `There is no tool \`${name.slice(0, MAX_NAME)}\`. List the tools again.`)
}

async function fetchPage<Item extends Named>(call: Call, kind: Kind<Item>, first: number, after: string | null) {
  const data = await ifAllowed(call.execute(kind.list, { first, after }))
  if (!data) return { items: [], next: null }
  const { edges, pageInfo } = data.items
  return { items: edges.map(({ node }) => kind.toTool(node, nameTool(kind, node))), next: pageInfo.hasNextPage ? pageInfo.endCursor : null }
}

async function find<Item extends Named>(call: Call, kind: Kind<Item>, name: string): Promise<Item | null> {
  if (!name.startsWith(kind.prefix)) return null
  const rest = name.slice(kind.prefix.length)
  const isId = kind.id.test(rest)
  if (!isId && (!PLAIN.test(rest) || name.length > MAX_NAME)) return null
  const key = isId ? rest : kind === (AGENTS as unknown) ? `agent/${rest}` : rest
  const data = await ifAllowed(call.execute(isId ? kind.byId : kind.byCode, { name: key }))
  return data?.item ?? null
}

/**
 * Returns the code, if it can be part of a tool's name and does not look like an ID; else the ID. So each name
 * identifies one object.
 */
function nameTool<Item extends Named>({ prefix, id: form }: Kind<Item>, { id, code }: Named): string {
  const name = prefix + code
  return PLAIN.test(code) && !form.test(code) && name.length <= MAX_NAME ? name : prefix + id
}

/** Returns null when the key lacks the scope: for such a key the objects do not exist. */
async function ifAllowed<Data>(result: Promise<Data>): Promise<Data | null> {
  try {
    return await result
  } catch (error) {
    if (error instanceof KisError && error.code === 'permission_denied') return null
    throw error
  }
}

const SECTIONS = ['collections', 'agents'] as const
type Section = (typeof SECTIONS)[number]

function writeCursor(section: Section, after: string): string {
  return `${section}:${after}`
}

function readCursor(cursor: string | undefined): { readonly section: Section; readonly after: string | null } {
  if (cursor === undefined) return { section: 'collections', after: null }
  const [name, after] = cursor.split(':', 2)
  const section = SECTIONS.find((known) => known === name)
  if (section === undefined || after === undefined)
    throw new McpError(ErrorCode.InvalidParams, 'The cursor is not from a list of tools. Leave it out to start from the beginning.')
  return { section, after: after || null }
}
