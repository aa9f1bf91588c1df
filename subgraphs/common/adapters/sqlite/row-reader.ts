import { serveWorker, workerInput } from '../../worker-rpc.ts'
import { Connection, storageFailureOf } from './database.ts'

/** The thread for reads of one file that may take longer than the loop should stand still. */

const connection = new Connection(workerInput<{ readonly file: string }>().file, { readOnly: true })

serveWorker({
  all(text: string, parameters: readonly (string | number)[]) {
    try {
      return connection.prepare(text).all(...parameters)
    } catch (error) {
      throw storageFailureOf(error) ?? error
    }
  },

  close() {
    connection[Symbol.dispose]()
  },
})
