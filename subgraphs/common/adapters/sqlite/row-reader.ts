import { serveWorker, workerInput } from '../../process/threads/worker-rpc.ts'
import { Connection, orFailure } from './database.ts'

/** The thread for reads that would block the event loop too long. */

const { file } = workerInput<{ readonly file: string }>()
const connection = new Connection(file, { readOnly: true })

serveWorker({
  all: (text: string, parameters: readonly (string | number)[]) => orFailure(() => connection.prepare(text).all(...parameters)),

  close() {
    connection[Symbol.dispose]()
  },
})
