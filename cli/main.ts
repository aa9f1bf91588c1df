import { CATALOG_USAGE, catalogCheck } from './catalog-check.ts'
import { type Config, readConfig } from './config.ts'
import { MAINTENANCE_USAGE, maintain } from './maintain.ts'
import { whenNpmIsGone } from './npm-parent.ts'
import { ROLES, type Role, start } from './start.ts'

const USAGE = `kis start            the whole service in one process
kis start <role>     one service alone: ${ROLES.join(', ')}

${MAINTENANCE_USAGE}

${CATALOG_USAGE}

Configuration comes from the environment; docs/operate/configuration.md lists it.`

/**
 * After the drain, charges of ended calls are settled and the stores are closed within this time. Then, or at a second
 * signal, the process exits.
 */
const CLOSE_MS = 8_000

export async function main(args: readonly string[]): Promise<void> {
  const code = catalogCheck(args, process.env) ?? (await maintain(args, process.env))
  if (code !== undefined) {
    process.exitCode = code
    return
  }
  const [command, role] = args
  if (command !== 'start' || args.length > 2 || (role !== undefined && !ROLES.includes(role as Role))) {
    const asked = command === undefined || command === '--help' || command === 'help'
    console[asked ? 'log' : 'error'](USAGE)
    process.exitCode = asked ? 0 : 2
    return
  }
  const config = configOrExit(role as Role | undefined)
  const stop = new AbortController()
  const end = () => {
    stop.abort()
    setTimeout(() => process.exit(1), config.drainMs + CLOSE_MS).unref()
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(1)
      end()
    })
  }
  whenNpmIsGone(() => {
    if (!stop.signal.aborted) end()
  })
  try {
    await using running = await start((role as Role | undefined) ?? 'all', config, console.log)
    const stopped = new Promise((resolve) => {
      if (stop.signal.aborted) resolve(undefined)
      else stop.signal.addEventListener('abort', resolve, { once: true })
    })
    await Promise.race([running.ready, stopped])
    await stopped
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    if (process.env.KIS_LOG_LEVEL === 'debug') console.error(error)
    process.exit(1)
  }
  process.exit(0)
}

function configOrExit(role: Role | undefined): Config {
  try {
    return readConfig(process.env, role)
  } catch (error) {
    console.error((error as Error).message)
    process.exit(1)
  }
}
