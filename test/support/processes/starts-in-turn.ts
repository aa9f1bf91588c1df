import { readConfig } from '../../../cli/settings/config.ts'
import { start } from '../../../cli/start.ts'

/** A start that the parent process asks for. */
export interface AskedStart {
  readonly id: number
  readonly env: Readonly<Record<string, string>>
}

/** Why it ended by itself; null: it became ready, and was stopped. */
export interface EndedStart {
  readonly id: number
  readonly said: string | null
}

async function startAndStop(env: AskedStart['env']): Promise<void> {
  await using running = await start('all', readConfig(env), () => undefined, new AbortController().signal)
  await running.ready
}

process.on('message', async ({ id, env }: AskedStart) => {
  const said = await startAndStop(env).then(
    () => null,
    (error: Error) => error.message,
  )
  process.send!({ id, said } satisfies EndedStart)
})
