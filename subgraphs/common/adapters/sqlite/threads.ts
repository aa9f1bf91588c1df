import { ServiceUnavailable } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { DuplicateKey } from '../../ports/document-store.ts'
import { type RemoteError, WorkerClient } from '../../worker-rpc.ts'

export interface ThreadOptions {
  readonly file: string
  /** Names the store in errors: `The document store`. */
  readonly what: string
  readonly log: Log
}

/** A full disk fails every write; the operator is told this often. */
const LOG_EVERY_MS = 10_000

/** A thread over a prepared file. What the storage cannot do arrives as `service_unavailable`. */
export function startThread(script: URL, { file, what, log }: ThreadOptions): WorkerClient {
  let quietUntil = 0
  const reviveError = (error: RemoteError): Error | undefined => {
    if (error.name === 'DuplicateKey') return new DuplicateKey(String(error.data), error)
    if (error.name !== 'StorageFailure') return undefined
    const cause = Object.assign(new Error(error.message), error)
    if (performance.now() >= quietUntil) {
      quietUntil = performance.now() + LOG_EVERY_MS
      log.error({ err: cause, file }, 'the storage of a SQLite file fails')
    }
    return new ServiceUnavailable(what, { cause })
  }
  const onExit = (error: unknown) => log.error({ err: error, file, script: script.pathname }, 'a thread of a SQLite file ended: restart')
  return new WorkerClient(script, what, { file }, { reviveError, onExit })
}

/** The thread of `row-reader.ts`, which answers `all(text, parameters)` with rows as arrays. */
export function startRowReader(options: ThreadOptions): WorkerClient {
  return startThread(new URL('./row-reader.ts', import.meta.url), options)
}
