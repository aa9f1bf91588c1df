import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import table from 'gpt-tokenizer/bpeRanks/cl100k_base'
import { type Modules, modulesWith, type Python, pythonWith } from '../support/installed.ts'
import { pythonWithOpenai } from './openai-python.ts'

const PROGRAMS = fileURLToPath(new URL('./official', import.meta.url))

/** The npm packages of the clients. */
const NPM = {
  openai: '7.55.0',
  '@anthropic-ai/sdk': '1.12.0',
  '@langchain/core': '1.4.0',
  '@langchain/openai': '1.6.0',
  ai: '7.0.173',
  '@ai-sdk/openai': '4.0.118',
  '@ai-sdk/openai-compatible': '3.0.92',
  '@ai-sdk/anthropic': '4.0.105',
  '@openai/agents': '0.20.0',
  '@modelcontextprotocol/sdk': '1.32.2',
  '@apollo/client': '4.3.8',
  '@urql/core': '6.0.3',
  graphql: '16.15.0',
  'graphql-ws': '6.4.2',
  rxjs: '7.8.2',
  wonka: '6.3.6',
  zod: '4.6.7',
}

/** The Python packages of the clients but openai, of which LangChain and LlamaIndex need an earlier version. */
const PIP = [
  'anthropic==2.12.0',
  'langchain-core==1.7.2',
  'langchain-openai==1.7.3',
  'llama-index-core==0.14.25',
  'llama-index-llms-openai-like==0.8.1',
  'llama-index-embeddings-openai-like==0.4.0',
]

type Kind = 'node' | 'python' | 'python with openai'

export type Case = 'chat' | 'stream' | 'tools' | 'structured' | 'embeddings' | 'errors' | 'abort' | 'timeout' | 'lists'

export interface OfficialClient {
  readonly name: string
  /** The program's file in `official/`. */
  readonly program: string
  readonly kind: Kind
  /** The classes of what it throws. Null: it shows the error as a result, as MCP prescribes. */
  readonly throws: readonly [key: string, model: string, vendor: string | null, timeout: string]
  /** The cases that it has no notion of, and why. */
  readonly lacks: Partial<Readonly<Record<Case, string>>>
}

export const CASES: readonly Case[] = ['chat', 'stream', 'tools', 'structured', 'embeddings', 'errors', 'abort', 'timeout', 'lists']

const OPENAI_NODE = ['AuthenticationError', 'NotFoundError', 'BadRequestError', 'APIConnectionTimeoutError'] as const
const PYTHON = ['AuthenticationError', 'NotFoundError', 'BadRequestError', 'APITimeoutError'] as const
const LANGCHAIN_NODE = ['AuthenticationError', 'NotFoundError', 'BadRequestError', 'TimeoutError'] as const
const LANGCHAIN_PYTHON = [
  'OpenAIAuthenticationError',
  'OpenAIModelNotFoundError',
  'OpenAIInvalidRequestError',
  'OpenAITimeoutError',
] as const
const AI_SDK = ['AI_APICallError', 'AI_APICallError', 'AI_APICallError', 'TimeoutError'] as const
const MCP = ['StreamableHTTPError', 'McpError', null, 'McpError'] as const
const APOLLO = ['CombinedGraphQLErrors', 'CombinedGraphQLErrors', 'CombinedGraphQLErrors', 'TimeoutError'] as const
const URQL = ['CombinedError', 'CombinedError', 'CombinedError', 'CombinedError'] as const
const NO_EMBEDDINGS = { embeddings: 'Anthropic’s API has none' }
const NO_LISTS = { lists: 'it calls models and lists nothing' }

export const CLIENTS: readonly OfficialClient[] = [
  { name: 'openai, Node', program: 'openai-node.js', kind: 'node', throws: OPENAI_NODE, lacks: {} },
  { name: 'openai, Python', program: 'openai_python.py', kind: 'python with openai', throws: PYTHON, lacks: {} },
  { name: 'Anthropic, Node', program: 'anthropic-node.js', kind: 'node', throws: OPENAI_NODE, lacks: NO_EMBEDDINGS },
  { name: 'Anthropic, Python', program: 'anthropic_python.py', kind: 'python', throws: PYTHON, lacks: NO_EMBEDDINGS },
  { name: 'LangChain, JavaScript', program: 'langchain-js.js', kind: 'node', throws: LANGCHAIN_NODE, lacks: NO_LISTS },
  { name: 'LangChain, Python', program: 'langchain_python.py', kind: 'python', throws: LANGCHAIN_PYTHON, lacks: NO_LISTS },
  { name: 'AI SDK, `@ai-sdk/openai`', program: 'ai-sdk-openai.js', kind: 'node', throws: AI_SDK, lacks: NO_LISTS },
  { name: 'AI SDK, `@ai-sdk/openai-compatible`', program: 'ai-sdk-compatible.js', kind: 'node', throws: AI_SDK, lacks: NO_LISTS },
  {
    name: 'AI SDK, `@ai-sdk/anthropic`',
    program: 'ai-sdk-anthropic.js',
    kind: 'node',
    throws: AI_SDK,
    lacks: { ...NO_EMBEDDINGS, ...NO_LISTS },
  },
  { name: 'LlamaIndex, Python', program: 'llamaindex.py', kind: 'python', throws: PYTHON, lacks: NO_LISTS },
  {
    name: 'OpenAI Agents, JavaScript',
    program: 'openai-agents.js',
    kind: 'node',
    throws: OPENAI_NODE,
    lacks: { embeddings: 'agents call no embedding models', ...NO_LISTS },
  },
  { name: 'MCP SDK, TypeScript', program: 'mcp.js', kind: 'node', throws: MCP, lacks: { embeddings: 'the protocol has none' } },
  { name: 'Apollo Client 4', program: 'apollo.js', kind: 'node', throws: APOLLO, lacks: {} },
  { name: 'urql', program: 'urql.js', kind: 'node', throws: URQL, lacks: {} },
]

/** The table of the guide. `cellOf` fills the cells of what a client has a notion of. */
export function renderTable(cellOf: (client: OfficialClient, name: Case) => string): string {
  const rows = CLIENTS.map((client) => [client.name, ...CASES.map((name) => (name in client.lacks ? '–' : cellOf(client, name)))])
  const [head, ...rest] = [['client', ...CASES], ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return [head, `|${'---|'.repeat(CASES.length + 1)}`, ...rest].join('\n')
}

/** The reasons for the empty cells. */
export function renderLacks(): string {
  return CLIENTS.flatMap(({ name, lacks }) => Object.entries(lacks).map(([lacked, why]) => `${name}: no ${lacked}: ${why}`)).join('\n')
}

/** What runs each kind of program; or why nothing can here. */
export type Runtimes = Readonly<Record<Kind, Modules | Python>>

/** Installs what is not installed yet, all at once. */
export async function installClients(): Promise<Runtimes> {
  const [node, python, openai] = await Promise.all([modulesWith(NPM), pythonWith(...PIP), pythonWithOpenai()])
  return { node, python, 'python with openai': openai }
}

/** What a case returned, or threw though it should not have. */
export type Outcome = { readonly value: unknown } | { readonly error: string }

/** The time of all cases of a client, which take some seconds on an idle machine. */
const PROGRAM_MS = 120_000
const MAX_ERRORS_LENGTH = 5_000

export interface PlacedPrograms {
  readonly folder: string
  /** Puts another program beside them. Returns its path. */
  add(name: string, code: string): Promise<string>
  remove(): Promise<void>
}

/**
 * The file of `cl100k_base` as tiktoken keeps it, under the hash of its address. LangChain for Python counts by it, and
 * would fetch it.
 */
const TOKENS = createHash('sha1').update('https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken').digest('hex')

function writeTokens(): string {
  const bytes = (piece: string | readonly number[]) => Buffer.from(piece as string)
  return table.map((piece, rank) => `${bytes(piece).toString('base64')} ${rank}\n`).join('')
}

/** A folder with all programs, where the imports of the Node clients lead to the installed packages, if there are any. */
export async function installPrograms(modules: string | null): Promise<PlacedPrograms> {
  const folder = await mkdtemp(join(tmpdir(), 'kis-clients-'))
  await cp(PROGRAMS, folder, { recursive: true })
  await writeFile(join(folder, TOKENS), writeTokens())
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  if (modules !== null) await symlink(modules, join(folder, 'node_modules'))
  return {
    folder,
    async add(name, code) {
      await writeFile(join(folder, name), code)
      return join(folder, name)
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/**
 * Runs a program of a client, and returns all that it printed.
 * @throws {Error} it failed or took too long; the message has what it printed
 */
export async function runProgram(command: string, script: string, env: Readonly<Record<string, string>>): Promise<string> {
  // Nothing of the developer's own configuration, such as a vendor's real key, reaches a client.
  const own = { PATH: process.env.PATH ?? '', HOME: tmpdir() }
  const child = spawn(command, [script], {
    env: { ...own, TIKTOKEN_CACHE_DIR: dirname(script), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PROGRAM_MS,
    killSignal: 'SIGKILL',
  })
  let printed = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    printed += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors = (errors + text).slice(-MAX_ERRORS_LENGTH)
  })
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  if (code !== 0) throw new Error(`${script} ended with ${code}:\n${printed}${errors}`)
  return printed
}

/** What each case of a client's program gave. */
export function readOutcomes(printed: string): ReadonlyMap<string, Outcome> {
  const lines = printed.split('\n').filter((line) => line.startsWith('["'))
  return new Map(lines.map((line) => JSON.parse(line) as [string, Outcome]))
}
