import { Moved, serveWorker, workerInput } from '../../../common/process/threads/worker-rpc.ts'
import { ModelNotLoaded } from './model-not-loaded.ts'
import { type Asked, type Finished, type Halfway, SecondHalf } from './second-half.ts'
import { StepQueue } from './step-queue.ts'

/** The thread that `SecondThread` starts and calls. */

export interface SecondInput {
  /** With a slash at its end. */
  readonly modelDirectory: string
  /** Threads that compute one layer together. */
  readonly threads: number
}

const { modelDirectory, threads } = workerInput<SecondInput>()
const loading = SecondHalf.load(new URL(modelDirectory), new StepQueue(), threads).catch(ModelNotLoaded.rethrow)
// Every call waits for it and gets its failure. Before the first call nobody does.
loading.catch(() => undefined)

/** So few batches are on their way that a call which is cancelled may finish them. */
const { signal } = new AbortController()

const running = new Set<Promise<Finished>>()

serveWorker({
  ready: async () => {
    await loading
  },
  finish: async (halfway: Halfway, asked: Asked) => {
    const half = await loading
    const work = half.finish(halfway, asked, signal)
    running.add(work)
    const finished = await work.finally(() => running.delete(work))
    return new Moved(
      finished,
      finished.tokenStates.map(({ buffer }) => buffer as ArrayBuffer),
    )
  },
  // The thread may end only when the network's native code has returned: otherwise the whole process ends.
  close: async () => {
    await Promise.allSettled([loading, ...running])
  },
})
