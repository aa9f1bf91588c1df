// What `kis copy` needs of inference's store while nothing serves it.

import type { DocumentStore } from '../common/ports/document-store.ts'
import { openCollections } from './use-cases/tables.ts'

export { openCollections as inferenceCollections } from './use-cases/tables.ts'

/** As many processes as an installation may have at the most, and more. */
const MAX_REPLICAS = 1_000
/** A process announces itself every 5 s. */
const GONE_AFTER_MS = 20_000

/** What the processes of inference have said of themselves last, a text for each. It changes every 5 s. */
export async function readReplicas(store: Pick<DocumentStore, 'collection'>, now: Date): Promise<readonly string[]> {
  const replicas = await openCollections(store).replicas.find({}, { limit: MAX_REPLICAS })
  const recent = replicas.filter(({ seenAt }) => seenAt.getTime() > now.getTime() - GONE_AFTER_MS)
  return recent.map(({ _id, seenAt }) => `${_id} ${seenAt.getTime()}`)
}
