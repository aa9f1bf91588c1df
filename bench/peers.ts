import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePorts } from '../test/support/processes/service.ts'
import type { Target } from './support/load-process.ts'
import { portkeyProgram, pythonWithLitellm } from './support/peer-install.ts'

/** A program to measure, and the process whose CPU and memory count. */
export interface Subject extends Target {
  readonly name: string
  readonly pid: number
}

export interface Peer extends Subject, AsyncDisposable {}

/** Limit of a start: LiteLLM takes half a minute on a busy machine. */
const READY_MS = 180_000
/** A peer that has not ended by then is killed. */
const END_MS = 10_000
const MAX_ERRORS_CHARS = 4_000

export const PEERS_HAVE_LESS = `Peers run with less: LiteLLM knows one master key and Portkey none; neither has a wallet, a ledger, usage records or a database here,
while ours checks a key, holds the worst case, settles and posts each call durably.`

/** Starts LiteLLM and Portkey in front of the same engine, in this order. */
export async function startPeers(engineUrl: string): Promise<readonly Peer[]> {
  const litellm = await startLitellm(engineUrl)
  try {
    return [litellm, await startPortkey(engineUrl)]
  } catch (error) {
    await litellm[Symbol.asyncDispose]()
    throw error
  }
}

async function startLitellm(engineUrl: string): Promise<Peer> {
  const python = await pythonWithLitellm()
  const folder = await mkdtemp(join(tmpdir(), 'kis-bench-litellm-'))
  const [port] = await freePorts(1)
  // LiteLLM refuses keys that are easy to guess.
  const key = `sk-${randomBytes(32).toString('hex')}`
  const model = { model_name: 'mock-chat', litellm_params: { model: 'openai/mock-chat', api_base: engineUrl, api_key: 'none' } }
  // JSON is valid YAML.
  await writeFile(join(folder, 'config.yaml'), JSON.stringify({ model_list: [model], general_settings: { master_key: key } }))
  const program = ['-c', 'from litellm.proxy.proxy_cli import run_server; run_server()']
  const options = ['--config', 'config.yaml', '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1', '--telemetry', 'False']
  // Without these variables it downloads the price list of all models.
  const env = { LITELLM_MODE: 'PRODUCTION', LITELLM_LOCAL_MODEL_COST_MAP: 'True' }
  return started(
    'LiteLLM',
    python,
    [...program, ...options],
    { folder, env, port: port!, health: '/health/liveliness' },
    { authorization: `Bearer ${key}` },
  )
}

async function startPortkey(engineUrl: string): Promise<Peer> {
  const program = await portkeyProgram()
  const folder = await mkdtemp(join(tmpdir(), 'kis-bench-portkey-'))
  const [port] = await freePorts(1)
  const loopbackOnly = new URL('./support/loopback-only.mjs', import.meta.url).href
  const args = ['--import', loopbackOnly, program, `--port=${port}`, '--headless']
  const headers = { authorization: 'Bearer none', 'x-portkey-provider': 'openai', 'x-portkey-custom-host': engineUrl }
  return started('Portkey', process.execPath, args, { folder, env: { NODE_ENV: 'production' }, port: port!, health: '/' }, headers)
}

interface InstallPath {
  /** The peer's working folder, which is deleted with it. */
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
  readonly port: number
  /** The path that responds with 200 once the peer serves. */
  readonly health: string
}

async function started(
  name: string,
  program: string,
  args: readonly string[],
  { folder, env, port, health }: InstallPath,
  headers: Readonly<Record<string, string>>,
): Promise<Peer> {
  const base = { PATH: process.env.PATH ?? '', HOME: folder, ...env }
  const child = spawn(program, args, { cwd: folder, env: base, stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (text) => {
    errors = (errors + text).slice(-MAX_ERRORS_CHARS)
  })
  const peer: Peer = {
    name,
    url: `http://127.0.0.1:${port}/v1/chat/completions`,
    headers,
    pid: child.pid!,
    async [Symbol.asyncDispose]() {
      await end(child)
      await rm(folder, { recursive: true, force: true })
    },
  }
  try {
    const deadline = Date.now() + READY_MS
    while (!(await serves(`http://127.0.0.1:${port}${health}`))) {
      if (hasEnded(child)) throw new Error(`${name} has ended:\n${errors}`)
      if (Date.now() > deadline) throw new Error(`${name} is not ready within ${READY_MS / 1_000} s:\n${errors}`)
      await sleep(100)
    }
    return peer
  } catch (error) {
    await peer[Symbol.asyncDispose]()
    throw error
  }
}

const serves = (url: string) =>
  fetch(url).then(
    (response) => response.ok,
    () => false,
  )

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null

async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child) || child.pid === undefined) return
  const ended = once(child, 'exit')
  child.kill()
  const force = setTimeout(() => child.kill('SIGKILL'), END_MS)
  await ended
  clearTimeout(force)
}
