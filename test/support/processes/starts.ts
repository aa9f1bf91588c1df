import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { EndedStart, RequestedStart } from './sequential-starts.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const IN_TURN = fileURLToPath(new URL('sequential-starts.ts', import.meta.url))

/** Starts the service as often as it is asked to: most of a start in a process of its own is loading the code. */
let starts: ChildProcess | undefined
let last = 0

/**
 * Why a start with these variables ended by itself, which `kis start` shows before it ends with code 1; null: it became
 * ready, and was stopped. With `mayWait`, also when it waits for something. A start that failed may keep its data folder
 * in use: give it a copy.
 */
export function startInTurn(env: Readonly<Record<string, string>>, { mayWait = false } = {}): Promise<string | null> {
  starts ??= fork(IN_TURN, {
    cwd: ROOT,
    execArgv: [],
    env: { PATH: process.env.PATH ?? '', NODE_ENV: 'production', NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '' },
  }).setMaxListeners(0)
  const child = starts
  const id = ++last
  return new Promise((resolve, reject) => {
    const listen = (ended: EndedStart) => {
      if (ended.id !== id) return
      child.off('message', listen)
      resolve(ended.said)
    }
    child.on('message', listen)
    child.once('exit', () => reject(new Error('the process of the starts has ended')))
    child.send({ id, env: { KIS_PORTAL: 'off', HOST: '127.0.0.1', PORT: '0', ...env }, mayWait } satisfies RequestedStart)
  })
}
