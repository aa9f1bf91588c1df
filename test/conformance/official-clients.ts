import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { INSTALL_MS, installed, installPython, run } from './installed.ts'
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

const hash = (packages: unknown) => createHash('sha256').update(JSON.stringify(packages)).digest('hex').slice(0, 12)

type Kind = 'node' | 'python' | 'python with openai'

export type Case = 'chat' | 'stream' | 'tools' | 'structured' | 'embeddings' | 'errors' | 'abort' | 'timeout' | 'lists'

export interface OfficialClient {
  /** The program's file in `official/`. */
  readonly program: string
  readonly kind: Kind
  /** The cases that the client has no notion of. */
  readonly lacks: readonly Case[]
}

export const CASES: readonly Case[] = ['chat', 'stream', 'tools', 'structured', 'embeddings', 'errors', 'abort', 'timeout', 'lists']

export const CLIENTS: readonly OfficialClient[] = [
  { program: 'openai-node.js', kind: 'node', lacks: [] },
  { program: 'openai_python.py', kind: 'python with openai', lacks: [] },
  { program: 'anthropic-node.js', kind: 'node', lacks: ['embeddings'] },
  { program: 'anthropic_python.py', kind: 'python', lacks: ['embeddings'] },
  { program: 'langchain-js.js', kind: 'node', lacks: ['lists'] },
  { program: 'langchain_python.py', kind: 'python', lacks: ['lists'] },
  { program: 'ai-sdk-openai.js', kind: 'node', lacks: ['lists'] },
  { program: 'ai-sdk-compatible.js', kind: 'node', lacks: ['lists'] },
  { program: 'ai-sdk-anthropic.js', kind: 'node', lacks: ['embeddings', 'lists'] },
  { program: 'llamaindex.py', kind: 'python', lacks: ['lists'] },
  { program: 'openai-agents.js', kind: 'node', lacks: ['embeddings', 'lists'] },
  { program: 'mcp.js', kind: 'node', lacks: ['embeddings', 'tools'] },
  { program: 'apollo.js', kind: 'node', lacks: ['embeddings', 'structured', 'tools'] },
  { program: 'urql.js', kind: 'node', lacks: ['embeddings', 'structured', 'tools'] },
]

/** What runs each kind of program; or why nothing can here. */
export type Runtimes = Readonly<Record<Kind, { readonly python: string } | { readonly modules: string } | { readonly reason: string }>>

/** Installs what is not installed yet, all at once. */
export async function installClients(): Promise<Runtimes> {
  const [node, python, openai] = await Promise.all([
    installed(`npm-${hash(NPM)}`, async (folder) => {
      await mkdir(folder, { recursive: true })
      await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies: NPM }))
      const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=1', '--fetch-timeout=15000', '--prefix', folder]
      await run('npm', ['install', ...flags], { cwd: folder, timeout: INSTALL_MS })
    }),
    installed(`python-${hash(PIP)}`, (folder) => installPython(folder, PIP)),
    pythonWithOpenai(),
  ])
  return {
    node: 'folder' in node ? { modules: join(node.folder, 'node_modules') } : node,
    python: 'folder' in python ? { python: join(python.folder, 'bin/python') } : python,
    'python with openai': openai,
  }
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

/** A folder with all programs, where the imports of the Node clients lead to the installed packages. */
export async function placePrograms(modules: string): Promise<PlacedPrograms> {
  const folder = await mkdtemp(join(tmpdir(), 'kis-clients-'))
  await cp(PROGRAMS, folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  await symlink(modules, join(folder, 'node_modules'))
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
  const own = { PATH: process.env.PATH ?? '', HOME: tmpdir(), PYTHONDONTWRITEBYTECODE: '1' }
  const child = spawn(command, [script], {
    env: { ...own, ...env },
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
