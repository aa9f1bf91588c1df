import { execFile, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { AskedCommand } from './kis-in-turn.ts'
import type { Service } from './service.ts'

const KIS = fileURLToPath(new URL('../../../cli/kis.js', import.meta.url))
const IN_TURN = fileURLToPath(new URL('kis-in-turn.ts', import.meta.url))

export interface Ended {
  /** -1: a signal has ended it. */
  readonly code: number
  readonly lines: readonly string[]
  readonly errors: string
}

type Variables = Readonly<Record<string, string>>

/** Runs a `kis` command against a running service, like an operator. */
export function kis(service: Pick<Service, 'graphql'>, key: string, ...args: readonly string[]): Promise<Ended> {
  return runKis({ KIS_API_KEY: key, KIS_GATEWAY_URL: service.graphql.replace(/\/graphql$/, '') }, ...args)
}

/** Starts a `kis` command with these variables alone, in a process of its own. */
export function launchKis(env: Variables, ...args: readonly string[]): { readonly ended: Promise<Ended>; kill(): void } {
  const { promise, resolve } = Promise.withResolvers<Ended>()
  const child = execFile(process.execPath, [KIS, ...args], { env: { PATH: process.env.PATH ?? '', ...env } }, (error, stdout, stderr) => {
    const code = error ? Number(error.code ?? -1) : 0
    resolve({ code, lines: linesOf(stdout), errors: stderr })
  })
  return { ended: promise, kill: () => child.kill('SIGKILL') }
}

/** As `kis-in-turn.ts` writes it. */
const ENDED = '\u0000ended '

type Run = (command: AskedCommand) => Promise<Ended>
const idle: Run[] = []

/**
 * Runs a `kis` command with these variables alone, in a process that runs one after the other: most of a short command
 * is loading the code.
 */
export async function runKis(env: Variables, ...args: readonly string[]): Promise<Ended> {
  const run = idle.pop() ?? startRunner()
  return run({ env, args })
}

function startRunner(): Run {
  const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env
  const env = { PATH, NODE_COMPILE_CACHE, NODE_ENV: 'production' }
  const child = fork(IN_TURN, { execArgv: [], env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  let resolve: (ended: Ended) => void
  const said = ['', '']
  const run: Run = (command) => {
    const ended = Promise.withResolvers<Ended>()
    resolve = ended.resolve
    said.fill('')
    child.send(command)
    return ended.promise
  }
  const look = () => {
    const [[out, code], [errors, ended]] = said.map((text) => text.split(ENDED)) as [string[], string[]]
    if (!code?.endsWith('\n') || !ended?.endsWith('\n')) return
    idle.push(run)
    resolve({ code: Number(code), lines: linesOf(out!), errors: errors! })
  }
  for (const [i, stream] of [child.stdout!, child.stderr!].entries())
    stream.setEncoding('utf8').on('data', (text) => {
      said[i] += text
      look()
    })
  // A command may end the process, as most do.
  child.once('close', (code) => {
    if (idle.includes(run)) idle.splice(idle.indexOf(run), 1)
    else resolve({ code: code ?? -1, lines: linesOf(said[0]!), errors: said[1]! })
  })
  return run
}

const linesOf = (text: string) => text.split('\n').filter(Boolean)
