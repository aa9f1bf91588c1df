import { readConfig } from '../../../cli/settings/config.ts'
import { start } from '../../../cli/start.ts'

/** A start that the parent process asks for. */
export interface RequestedStart {
  readonly id: number
  readonly env: Readonly<Record<string, string>>
  /** A start that waits for something has begun well. */
  readonly mayWait: boolean
}

/** Why it ended by itself; null: it became ready, or waited, and was stopped. */
export interface EndedStart {
  readonly id: number
  readonly said: string | null
}

async function startAndStop({ env, mayWait }: RequestedStart): Promise<void> {
  const waits = Promise.withResolvers<void>()
  const say = (line: string) => {
    if (mayWait && line.startsWith('waiting for ')) waits.resolve()
  }
  await using running = await start('all', readConfig(env), say, new AbortController().signal)
  await Promise.race([running.ready, waits.promise])
}

process.on('message', async (asked: RequestedStart) => {
  const said = await startAndStop(asked).then(
    () => null,
    (error: Error) => error.message,
  )
  process.send!({ id: asked.id, said } satisfies EndedStart)
})

process.once('disconnect', () => process.exit())
