import type { ErasedStep, ErasureTask, Found } from '../../../common/erasure/erasing.ts'
import type { Deps } from '../deps.ts'
import { eraseDocumentEverywhere, findDocumentEverywhere } from './erase-document.ts'
import { eraseOrganization } from './erase-organization.ts'

/** Limit of counts: see the contract's `ErasedRecords`. */
const MAX_COUNTED = 1_000_000

/**
 * Finds knowledge's data for an erasure. Documents belong to the organization, so knowledge has no data of a person.
 */
export async function findErased(deps: Deps, task: ErasureTask): Promise<Found> {
  if (task.kind === 'person') return { found: {} }
  if (task.kind === 'document') return findDocumentEverywhere(deps, task)
  const { store } = deps
  const { organizationId } = task
  const limit = { limit: MAX_COUNTED }
  const usage = await store.usage.findOne({ _id: organizationId })
  return {
    found: {
      collections: await store.collections.countDocuments({ organizationId, listed: true }, limit),
      documents: await store.documents.countDocuments({ organizationId, listed: true }, limit),
      passages: Object.values(usage?.chunks ?? {}).reduce((sum, count) => sum + count, 0),
      files: await store.files.countDocuments({ organizationId }, limit),
      uploads: await store.uploads.countDocuments({ organizationId }, limit),
    },
  }
}

/** Erases as much of the data as one call can. Can be repeated. */
export async function eraseFound(deps: Deps, task: ErasureTask, signal: AbortSignal): Promise<ErasedStep> {
  if (task.kind === 'person') return { isEmpty: true }
  if (task.kind === 'document') return eraseDocumentEverywhere(deps, task, signal)
  return { isEmpty: await eraseOrganization(deps, task.organizationId, signal) }
}
