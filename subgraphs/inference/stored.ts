// What `kis copy` needs of inference's store while nothing serves it.

import type { DocumentStore } from '../common/ports/document-store.ts'
import { countLive } from './use-cases/runs/live-replicas.ts'
import { openCollections } from './use-cases/tables.ts'

export { openCollections as inferenceCollections } from './use-cases/tables.ts'

/** Counts the processes of inference that have announced themselves in a store on MongoDB, up to 15 s after their death. */
export function countProcesses(store: Pick<DocumentStore, 'collection'>, now: Date): Promise<number> {
  return countLive(openCollections(store).replicas, now)
}
