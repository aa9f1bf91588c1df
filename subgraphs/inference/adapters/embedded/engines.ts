import { pathToFileURL } from 'node:url'
import type { Clock } from '../../../common/process/clock.ts'
import type { Log } from '../../../common/process/log.ts'
import type { ChatEngine, EmbeddingEngine } from '../../ports/engines.ts'
import { embeddingEngine } from './embedding-engine.ts'
import { extractiveEngine } from './extractive/engine.ts'
import { ModelThread } from './model-thread.ts'
import { readCalibration } from './read-calibration.ts'

export interface EmbeddedEngines extends AsyncDisposable {
  /** Serves `extractive`. */
  readonly chat: ChatEngine
  /** Serves `e5-small-ar-en`. */
  readonly embedding: EmbeddingEngine
  /**
   * Why the engines cannot serve, for the operator. Empty: they can. Waits while the model loads (about 1 s). Before
   * the first call, only the model's files are checked.
   */
  problems(): Promise<readonly string[]>
}

/** Opens the engines inside the process. The first call loads the model, in a thread. */
export async function openEmbeddedEngines(deps: {
  /** A folder like `models/e5-small-ar-en`: a `file:` URL, or a path. */
  readonly modelDirectory: URL | string
  readonly log: Log
  readonly clock: Clock
}): Promise<EmbeddedEngines> {
  const { modelDirectory, log, clock } = deps
  const { href } = typeof modelDirectory === 'string' ? pathToFileURL(modelDirectory) : modelDirectory
  const directory = new URL(href.endsWith('/') ? href : `${href}/`)
  const calibration = await readCalibration(directory)
  const thread = new ModelThread(directory, log, clock)
  const embedding = embeddingEngine(thread, calibration)
  return {
    chat: extractiveEngine({ embedding }),
    embedding,
    problems: () => thread.problems(),
    [Symbol.asyncDispose]: () => thread[Symbol.asyncDispose](),
  }
}
