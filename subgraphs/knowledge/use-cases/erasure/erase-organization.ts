import { eraseEvents } from '../../../common/events/event-log.ts'
import { newJob } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { releaseBlob, removeUnused } from '../files/blobs.ts'
import { eraseFile } from '../files/files.ts'
import { dropUpload } from '../uploads/complete-upload.ts'

const PAGE = 100

/**
 * Erases the subgraph's data of a deleted organization: collections with their documents, then files, uploads and
 * counts. Returns true if nothing was left. Can be repeated: each call erases as much as it can, and workers delete
 * documents between calls.
 */
export async function eraseOrganization(deps: Deps, organizationId: string, signal: AbortSignal): Promise<boolean> {
  for (const erase of [eraseCollections, eraseFiles, eraseUploads, eraseBlobs, eraseCounts]) {
    signal.throwIfAborted()
    if (!(await erase(deps, organizationId))) return false
  }
  return true
}

/** Hides the collections. Workers delete them. */
async function eraseCollections({ store, clock, wake }: Deps, organizationId: string): Promise<boolean> {
  for (;;) {
    const listed = await store.collections.find({ organizationId, listed: true }, { limit: PAGE })
    for (const { _id } of listed) {
      const job = { ...newJob('delete', organizationId, clock.now()) }
      await store.collections.findOneAndUpdate({ _id, listed: true }, { $set: { listed: false, code: _id, job } })
    }
    if (listed.length > 0) wake()
    if (listed.length < PAGE) break
  }
  return (await store.collections.findOne({ organizationId, listed: false })) === null
}

async function eraseFiles(deps: Deps, organizationId: string): Promise<boolean> {
  let after = ''
  for (let isEmpty = true; ; isEmpty = false) {
    const files = await deps.store.files.find({ organizationId, _id: { $gt: after } }, { sort: { _id: 1 }, limit: PAGE })
    if (files.length === 0) return isEmpty
    for (const file of files) await eraseFile(deps, file)
    after = files.at(-1)!._id
  }
}

async function eraseUploads(deps: Deps, organizationId: string): Promise<boolean> {
  for (let isEmpty = true; ; isEmpty = false) {
    const uploads = await deps.store.uploads.find({ organizationId }, { limit: PAGE })
    if (uploads.length === 0) return isEmpty
    for (const upload of uploads) await dropUpload(deps, upload)
  }
}

/** Erases bytes whose file was never recorded. */
async function eraseBlobs(deps: Deps, organizationId: string): Promise<boolean> {
  // A hexadecimal digest follows the organization's ID, so every key is below `g`.
  const range = { $gt: `${organizationId}_`, $lt: `${organizationId}_g` }
  const blobs = await deps.store.blobs.find({ _id: range }, { limit: PAGE })
  for (const { _id, references } of blobs) {
    for (const fileId of Object.keys(references)) await releaseBlob(deps, _id, fileId)
    await removeUnused(deps, _id)
  }
  return blobs.length === 0
}

async function eraseCounts({ store }: Deps, organizationId: string): Promise<boolean> {
  const usage = await store.usage.findOneAndDelete({ _id: organizationId })
  return (await eraseEvents(store, organizationId)) && usage === null
}
