import { setTimeout as sleep } from 'node:timers/promises'
import { collectWhenIdle } from '../subgraphs/common/process/garbage/idle-collection.ts'
import { VERSIONS } from '../subgraphs/common/process/versions.ts'
import { refuseHalfRestored } from './backup/restoring.ts'
import { refuseHalfCopied } from './copy/copying.ts'
import { MAINTENANCE_USAGE, maintain } from './maintenance/maintain.ts'
import { whenNpmIsGone } from './npm-parent.ts'
import { CATALOG_USAGE, catalogCheck } from './settings/catalog-check.ts'
import type { Config } from './settings/config.ts'
import { CONFIG_USAGE, configCheck } from './settings/config-check.ts'
import { ROLES, type Role } from './settings/roles.ts'
import { readPlaces } from './settings/variables.ts'

const USAGE = `kis start            the whole service in one process
kis start <role>     one service alone: ${ROLES.join(', ')}

${MAINTENANCE_USAGE}

${CATALOG_USAGE}

${CONFIG_USAGE}

kis version          which version of the service, the API and the schema this is

Configuration comes from the environment; docs/operate/configuration.md lists it.`

/**
 * After the drain, charges of ended calls are settled and the stores are closed within this time. Then, or at a second
 * signal, the process exits.
 */
const CLOSE_MS = 8_000

export async function main(args: readonly string[]): Promise<void> {
  const code =
    version(args) ?? catalogCheck(args, process.env) ?? (await configCheck(args, process.env)) ?? (await maintain(args, process.env))
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
  // Here and below, because no other command needs the service.
  const { readConfig } = await import('./settings/config.ts')
  const config = orExit(() => {
    // First, because reading the configuration makes a secret in an empty folder.
    const { KIS_DATA_DIR } = readPlaces(process.env)
    refuseHalfRestored(KIS_DATA_DIR)
    refuseHalfCopied(KIS_DATA_DIR)
    return readConfig(process.env, role as Role | undefined)
  })
  const stop = new AbortController()
  const end = () => {
    stop.abort()
    setTimeout(() => process.exit(1), config.drainDelayMs + config.drainMs + CLOSE_MS).unref()
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
    const { start } = await import('./start.ts')
    await using running = await start((role as Role | undefined) ?? 'all', config, console.log, stop.signal)
    const stopped = new Promise((resolve) => {
      if (stop.signal.aborted) resolve(undefined)
      else stop.signal.addEventListener('abort', resolve, { once: true })
    })
    const isReady = await Promise.race([running.ready.then(() => true), stopped])
    collectWhenIdle()
    await stopped
    if (isReady) await sleep(config.drainDelayMs)
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    if (process.env.KIS_LOG_LEVEL === 'debug') console.error(error)
    process.exit(1)
  }
  process.exit(0)
}

function version(args: readonly string[]): number | undefined {
  if (args.length !== 1 || !['version', '--version'].includes(args[0]!)) return undefined
  console.log(`${VERSIONS.version}  API ${VERSIONS.api}  schema ${VERSIONS.schema}`)
  return 0
}

function orExit(read: () => Config): Config {
  try {
    return read()
  } catch (error) {
    console.error((error as Error).message)
    process.exit(1)
  }
}
