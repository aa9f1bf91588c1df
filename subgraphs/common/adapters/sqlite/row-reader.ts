import { servingFiles } from '../../process/threads/thread-calls.ts'
import { Connection, orFailure } from './database.ts'

/** Runs in a thread, for reads that would block the event loop too long. */
export const call = servingFiles((file) => {
  const connection = new Connection(file, { readOnly: true })
  return {
    handlers: {
      all: (text: string, parameters: readonly (string | number)[]) => orFailure(() => connection.prepare(text).all(...parameters)),
    },
    close: () => connection[Symbol.dispose](),
  }
})
