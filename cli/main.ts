import { setTimeout as sleep } from 'node:timers/promises'
import { VERSIONS } from '../subgraphs/common/process/versions.ts'
import { maintain } from './maintenance/maintain.ts'
import { whenNpmIsGone } from './npm-parent.ts'
import { catalogCheck } from './settings/catalog-check.ts'
import type { Config } from './settings/config.ts'
import { configCheck } from './settings/config-check.ts'
import { ROLES, type Role } from './settings/roles.ts'
import { helpFor, UsageError, wrongArguments } from './settings/usage.ts'

/**
 * After the drain, charges of ended calls are settled and the stores are closed within this time. After it, or at a
 * second signal, the process exits.
 */
const CLOSE_MS = 8_000

/** Runs a `kis` command and sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  try {
    await run(args)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    console.error(error.message)
    process.exitCode = error.exitCode
  }
}

async function run(args: readonly string[]): Promise<void> {
  const help = helpFor(args)
  if (help !== null) return console.log(help)
  const code =
    version(args) ?? catalogCheck(args, process.env) ?? (await configCheck(args, process.env)) ?? (await maintain(args, process.env))
  if (code !== undefined) {
    process.exitCode = code
    return
  }
  const [command, role] = args
  const migrates = command === 'migrate' && args.length === 1
  if (command !== 'start' && !migrates) throw wrongArguments(command!, `kis ${command} takes no arguments.`)
  if (args.length > 2 || (role !== undefined && !ROLES.includes(role as Role)))
    throw wrongArguments('start', `kis start takes at most one role: ${ROLES.join(', ')}.`)
  // The service is imported here and below, because no other command needs it.
  const { readConfig } = await import('./settings/config.ts')
  const config = orExit(() => readConfig(process.env, role as Role | undefined))
  if (migrates) {
    const { migrateStores } = await import('./migrate.ts')
    return migrateStores(config, console.log).catch((error) => {
      console.error(error instanceof Error ? error.message : error)
      process.exitCode = 1
    })
  }
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
