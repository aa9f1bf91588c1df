import { type MessagePort, parentPort } from 'node:worker_threads'
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

let last = Promise.resolve()

parentPort!.on('message', ({ user, file, data, line }: Asked) => {
  last = last.then(async () => {
    try {
      await loadServed(file, { line, data })
    } catch (error) {
      parentPort!.postMessage({ user, failed: remoteError(error) } satisfies Failed)
    }
  })
})
