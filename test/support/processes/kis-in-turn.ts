import { setTimeout as sleep } from 'node:timers/promises'
import { main } from '../../../cli/main.ts'

/** A command that the parent process asks for, when the one before has ended. */
export interface AskedCommand {
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** Ends what a command has written to a stream, before its exit code. */
const ENDED = '\u0000ended '
/** The log is written a moment after the call. */
const LOG_MS = 10
const OWN = { ...process.env }
const UMASK = process.umask()

process.on('message', async ({ args, env }: AskedCommand) => {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, OWN, env)
  process.umask(UMASK)
  process.exitCode = 0
  await main(args).catch((error) => {
    console.error(error)
    process.exitCode = 1
  })
  await sleep(LOG_MS)
  for (const stream of [process.stdout, process.stderr]) stream.write(`${ENDED}${process.exitCode}\n`)
})

process.once('disconnect', () => process.exit())
