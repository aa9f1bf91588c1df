import { type MessagePort, parentPort } from 'node:worker_threads'
import { collectGarbage } from '../garbage/collect-garbage.ts'
import { loadServed, type RemoteError, remoteError } from './worker-rpc.ts'

/** The thread that `SharedThread` starts. */

export interface Asked {
  readonly user: number
  readonly file: string
  readonly data: unknown
  readonly line: MessagePort
}

/** The user's code did not load. */
export interface Failed {
  readonly user: number
  readonly failed: RemoteError
}

/** At a start, the thread's users come one soon after the other. */
const LOADED_MS = 1_000

let last = Promise.resolve()
let loaded: NodeJS.Timeout | undefined

parentPort!.on('message', ({ user, file, data, line }: Asked) => {
  last = last.then(async () => {
    try {
      await loadServed(file, { line, data })
      clearTimeout(loaded)
      loaded = setTimeout(collectGarbage, LOADED_MS)
      loaded.unref()
    } catch (error) {
      parentPort!.postMessage({ user, failed: remoteError(error) } satisfies Failed)
    }
  })
})
