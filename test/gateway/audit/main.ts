import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { runAudit } from './run-audit.ts'

/**
 * `npm run audit:federation -- FOLDER`: runs the cases of graphql-hive/federation-gateway-audit against our gateway.
 * FOLDER is a checkout of it, after `npm install` there. Fetches nothing.
 */

/** What plain @apollo/gateway 2.14 passes of the audit's 199 cases. */
const LEAST_PASSED = 193
const START_MS = 60_000

const [folder] = process.argv.slice(2)
if (!folder) fail('Say where the audit is: npm run audit:federation -- FOLDER')
const server = join(resolve(folder), 'dist/cli.js')
if (!existsSync(server)) fail(`${server} is missing. Clone graphql-hive/federation-gateway-audit and run \`npm install\` there.`)

const port = await findPort()
const url = `http://localhost:${port}`
const child = spawn(process.execPath, [server, 'serve', '--port', String(port)], {
  cwd: resolve(folder),
  stdio: ['ignore', 'ignore', 'inherit'],
})
try {
  await untilReady()
  let [passed, total] = [0, 0]
  for await (const suite of runAudit(url)) {
    passed += suite.passed.filter(Boolean).length
    total += suite.passed.length
    console.log(`${suite.passed.map((each) => (each ? '.' : 'X')).join('')} ${suite.id}${suite.failure ? `: ${suite.failure}` : ''}`)
  }
  console.log(`${passed} of ${total} cases passed; at least ${LEAST_PASSED} must.`)
  process.exitCode = passed >= LEAST_PASSED ? 0 : 1
} finally {
  child.kill()
}

async function untilReady(): Promise<void> {
  for (const start = performance.now(); performance.now() - start < START_MS; await sleep(200)) {
    if (child.exitCode !== null) fail(`The audit's server ended with ${child.exitCode}.`)
    if ((await fetch(`${url}/_health`).catch(() => null))?.ok) return
  }
  fail(`The audit's server did not answer at ${url} within ${START_MS / 1_000} s.`)
}

async function findPort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port: free } = probe.address() as { port: number }
  probe.close()
  return free
}

function fail(message: string): never {
  console.error(message)
  process.exit(1)
}
