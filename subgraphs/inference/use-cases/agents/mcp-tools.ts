import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { escapeUntrustedText } from '../../../common/untrusted-text.ts'
import type { AgentDefinition } from '../../domain/agents/definition.ts'
import type { Headers, McpServer } from '../../domain/agents/mcp-servers.ts'
import { outsideArguments, outsideResult, toOutsideTools } from '../../domain/agents/outside-tools.ts'
import { permits } from '../../domain/engines/residency.ts'
import { type AuthorizeRequest, type McpConnection, McpFailure, type McpTool } from '../../ports/mcp.ts'
import type { CallContext, With } from '../deps.ts'
import { type Tool, toolFailure } from './tools.ts'

/** The connections to an agent's MCP servers during one run. Disposing closes them. */
export interface McpTools extends AsyncDisposable {
  readonly tools: readonly OutsideTool[]
  /** Names of the servers that this run cannot use. */
  readonly away: readonly string[]
}

/** A tool of an MCP server, as the model and the run use it. */
export interface OutsideTool extends Tool {
  call(args: string): Promise<string>
}

/** Returns the name under which the headers of a server are sealed. Sealed headers open only under the same name. */
export function headersSealName(organizationId: string, url: string): string {
  return `headers of an MCP server ${organizationId} ${url}`
}

/**
 * Connects to each server and lists its tools, once for the run. A server that fails is named in `away`, and the run
 * continues without it. `names` has the names that are in use; the function adds the names of the listed tools.
 * @throws the reason of the signal, when it is aborted.
 */
export async function openMcpTools(
  deps: With<'principals'>,
  { mcpServers }: AgentDefinition,
  context: CallContext,
  names: Set<string>,
): Promise<McpTools> {
  await using stack = new AsyncDisposableStack()
  const opened = await Promise.all(mcpServers.map((server) => open(deps, server, context, stack)))
  context.signal.throwIfAborted()
  // In the order of the servers, whichever responded first, so that a name means the same tool in each run.
  const tools = opened.flatMap((found) => (found ? toTools(deps, found, context, names) : []))
  const away = mcpServers.filter((_, at) => !opened[at]).map(({ name }) => name)
  const resources = stack.move()
  return { tools, away, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}

interface OpenServer {
  readonly server: McpServer
  readonly connection: McpConnection
  readonly found: readonly McpTool[]
}

async function open(
  deps: With<'principals'>,
  server: McpServer,
  context: CallContext,
  stack: AsyncDisposableStack,
): Promise<OpenServer | null> {
  const { mcp, secrets, log } = deps
  const { name, url, sealedHeaders } = server
  const { organizationId } = context.caller
  try {
    const headers: Headers = sealedHeaders === null ? {} : JSON.parse(secrets.open(sealedHeaders, headersSealName(organizationId, url)))
    const connection = stack.use(await mcp.connect(url, headers, organizationId, createAuthorizer(deps, context.caller), context.signal))
    return { server, connection, found: await connection.listTools(context.signal) }
  } catch (error) {
    if (error instanceof KisError) throw error
    if (!context.signal.aborted) log.info({ err: error, server: name, requestId: context.requestId }, 'a server of tools cannot be used')
    return null
  }
}

/** Checks each request by the policy that applies now: that of the run's start may be hours old. */
function createAuthorizer({ mcp, principals }: With<'principals'>, caller: Principal): AuthorizeRequest {
  return async (url) => {
    const { residencyPolicy } = await principals.now(caller)
    if (!permits(residencyPolicy, mcp.isLocal(url) ? 'local' : 'cloud')) throw new McpFailure('The residency policy forbids it.')
  }
}

function toTools(
  deps: With<'principals'>,
  { server, connection, found }: OpenServer,
  { signal, requestId }: CallContext,
  names: Set<string>,
): readonly OutsideTool[] {
  return toOutsideTools(server, found, names).map(({ name, ownName, definition }) => ({
    name,
    definition,
    async call(args) {
      const toolArguments = outsideArguments(args)
      try {
        return outsideResult(await connection.callTool(ownName, toolArguments, signal))
      } catch (error) {
        if (!(error instanceof McpFailure)) throw error
        deps.log.info({ err: error, tool: name, requestId }, 'an outside tool has failed')
        return toolFailure(escapeUntrustedText(`The tool failed. ${error.message}`))
      }
    },
  }))
}
