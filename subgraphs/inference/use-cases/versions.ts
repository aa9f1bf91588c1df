import type { DocumentCollection } from '../../common/ports/document-store.ts'
import type { AgentRecord, AgentVersion, WorkflowRecord } from './tables.ts'

/**
 * Versions of an agent or a workflow that are kept, the newest ones. A run that continues with an older one fails with
 * `not_found`.
 */
const KEPT_VERSIONS = 100

/**
 * Keeps a version, and deletes the one that is now too old. Called before the agent or workflow itself is written, so
 * that each one that can be read has its version. The next attempt overwrites a version whose record was never written.
 */
export async function keepVersion(
  versions: DocumentCollection<AgentVersion>,
  { _id, version, organizationId, definition, updatedAt }: AgentRecord | WorkflowRecord,
): Promise<void> {
  await versions.findOneAndUpdate(
    { _id: `${_id}_${version}` },
    { $set: { organizationId, definition, createdAt: updatedAt } },
    { upsert: true },
  )
  if (version > KEPT_VERSIONS) await versions.findOneAndDelete({ _id: `${_id}_${version - KEPT_VERSIONS}` })
}
