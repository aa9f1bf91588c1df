// Plain JavaScript, because Node 20 must be able to run this file.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

export const isNodeTooOld = Number(process.versions.node.split('.')[0]) < 24

const PASSED_ON = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']

/**
 * Returns the path of the Node 24 that `npm ci` installs as an optional dependency; null if there is none for this
 * system.
 */
export function bundledNode() {
  const isWindows = process.platform === 'win32'
  const name = `node-${isWindows ? 'win' : process.platform}-${process.arch}`
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/node${isWindows ? '.exe' : ''}`)
  } catch {
    return null
  }
}

/**
 * Runs `kis` with these arguments in another Node. Forwards signals to it, and ends in the same way: with its exit
 * code, or by the signal that ended it.
 */
export function runIn(node, args) {
  // The child has a session of its own: a terminal would send Ctrl-C to both processes, and a second signal ends the
  // service at once.
  const child = spawn(node, [...process.execArgv, fileURLToPath(new URL('launched.js', import.meta.url)), ...args], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    detached: process.platform !== 'win32',
  })
  const passOn = (signal) => child.kill(signal)
  for (const signal of PASSED_ON) process.on(signal, passOn)
  child.on('error', (error) => {
    console.error(`Node 24 at ${node} does not start: ${error.message}. Run \`npm ci\` again, or install Node 24 yourself.`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    for (const passed of PASSED_ON) process.off(passed, passOn)
    if (signal) process.kill(process.pid, signal)
    else process.exitCode = code
  })
}
