import { checkLength, isAbsent, listAt, objectAt, refuse, textAt } from '../../../common/check.ts'

/** Most servers of one agent. Each run starts by listing the tools of every server. */
export const MAX_SERVERS = 5
const MAX_URL = 2_048
const MAX_HEADERS = 10
const MAX_HEADER_VALUE = 4_096
const MAX_ALLOWED_TOOLS = 50
const MAX_TOOL_NAME = 128
/** A server's name. It precedes the names of tools, which have at most 64 characters in all. */
const NAME = /^[A-Za-z0-9_-]{1,16}$/
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/
const HEADER_VALUE = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/
/** Headers of the protocol or the connection, which callers may not set. */
const OWN_HEADER =
  /^(accept(-.*)?|content-.*|host|connection|mcp-.*|last-event-id|te|trailer|transfer-encoding|upgrade|expect|keep-alive|proxy-.*|sec-.*)$/i

/** A Model Context Protocol server whose tools an agent may use. */
export interface McpServer {
  /** A prefix for the names of the server's tools. */
  readonly name: string
  readonly url: string
  /** Names of the headers sent with every request. */
  readonly headerNames: readonly string[]
  /** The encrypted headers; null: none. */
  readonly sealedHeaders: string | null
  /** The server's own names of the tools. Null: all tools. */
  readonly allowedTools: readonly string[] | null
}

/** A server as the caller defines it. */
export interface McpServerInput {
  readonly name?: string | null
  readonly url?: string | null
  readonly headers?: unknown
  readonly allowedTools?: readonly string[] | null
}

export type Headers = Readonly<Record<string, string>>

/** Seals the headers that an organization gives for the server at `url`. */
export type SealHeaders = (headers: Headers, url: string) => string

/**
 * Checks the servers of an agent. Headers that the input leaves out are copied from `before` if the name and the
 * address are unchanged: a secret never goes to an address for which it was not entered.
 * @throws {KisError} a field is wrong; has the path below `input.mcpServers`
 */
export function toMcpServers(
  input: readonly McpServerInput[] | null | undefined,
  before: readonly McpServer[],
  seal: SealHeaders,
): readonly McpServer[] {
  const servers = listAt(input ?? [], 'input.mcpServers', 0, MAX_SERVERS).map((server, i) =>
    toServer(server as McpServerInput, `input.mcpServers[${i}]`, before, seal),
  )
  for (const [i, { name }] of servers.entries())
    if (servers.findIndex((one) => one.name === name) < i)
      refuse('already_exists', `input.mcpServers[${i}].name`, 'The names of the servers must differ.')
  return servers
}

function toServer(input: McpServerInput, param: string, before: readonly McpServer[], seal: SealHeaders): McpServer {
  const name = textAt(input.name, `${param}.name`)
  if (!NAME.test(name)) refuse('invalid_request', `${param}.name`, 'The name of a server has 1 to 16 letters, digits, `_` or `-`.')
  const url = textAt(input.url, `${param}.url`)
  checkLength(url, `${param}.url`, MAX_URL)
  const allowedTools = isAbsent(input.allowedTools) ? null : allowedToolsAt(input.allowedTools, `${param}.allowedTools`)
  if (isAbsent(input.headers)) {
    const known = before.find((one) => one.name === name && one.url === url)
    return { name, url, allowedTools, headerNames: known?.headerNames ?? [], sealedHeaders: known?.sealedHeaders ?? null }
  }
  const headers = headersAt(input.headers, `${param}.headers`)
  const headerNames = Object.keys(headers)
  return { name, url, allowedTools, headerNames, sealedHeaders: headerNames.length === 0 ? null : seal(headers, url) }
}

function headersAt(value: unknown, param: string): Headers {
  const entries = Object.entries(objectAt(value, param))
  if (entries.length > MAX_HEADERS) refuse('array_above_max_length', param, `A server has at most ${MAX_HEADERS} headers.`)
  for (const [name, text] of entries) {
    if (!HEADER_NAME.test(name)) refuse('invalid_request', param, 'The name of a header has 1 to 64 of the characters that HTTP allows.')
    if (OWN_HEADER.test(name))
      refuse('unsupported_value', `${param}.${name}`, `The header \`${name}\` belongs to the protocol. Leave it out.`)
    checkLength(textAt(text, `${param}.${name}`), `${param}.${name}`, MAX_HEADER_VALUE)
    if (!HEADER_VALUE.test(text as string))
      refuse('unsupported_value', `${param}.${name}`, 'The value of a header is visible ASCII, with spaces inside it only.')
  }
  const headers = Object.fromEntries(entries.map(([name, text]) => [name.toLowerCase(), text as string]))
  if (Object.keys(headers).length < entries.length) refuse('already_exists', param, 'The names of the headers must differ.')
  return headers
}

function allowedToolsAt(value: readonly string[], param: string): readonly string[] {
  const names = listAt(value, param, 0, MAX_ALLOWED_TOOLS)
  for (const [i, name] of names.entries()) checkLength(textAt(name, `${param}[${i}]`), `${param}[${i}]`, MAX_TOOL_NAME)
  return [...new Set(names as readonly string[])]
}
