import { longRecordsPage, type ReadBudget } from '../../common/documents/long-records.ts'
import { type Connection, type PageArguments, readPage } from '../../common/link/connection.ts'
import type { DocumentCollection } from '../../common/ports/document-store.ts'
import type { AgentRecord, AgentVersion, WorkflowRecord } from './tables.ts'

/**
 * Versions of an agent or a workflow that are kept, the newest ones. A run that continues with an older one fails with
 * `not_found`.
 */
const RETAINED_VERSIONS = 100

/**
 * Keeps a version, and deletes the one that is now too old. Called before the agent or workflow itself is written, so
 * that each one that can be read has its version. The next attempt overwrites a version whose record was never written.
 */
export async function storeVersion(
  versions: DocumentCollection<AgentVersion>,
  { _id, version, organizationId, definition, updatedAt }: AgentRecord | WorkflowRecord,
): Promise<void> {
  await versions.findOneAndUpdate(
    { _id: `${_id}_${version}` },
    { $set: { organizationId, definition, createdAt: updatedAt } },
    { upsert: true },
  )
  if (version > RETAINED_VERSIONS) await versions.findOneAndDelete({ _id: `${_id}_${version - RETAINED_VERSIONS}` })
}

/** A version with its number. */
export interface StoredVersion extends AgentVersion {
  readonly version: number
}

type Versioned = Pick<AgentRecord, '_id' | 'organizationId' | 'version'>

/** Returns a version of an agent or a workflow. Null: it is not kept, or there was none. */
export async function findStoredVersion(
  versions: DocumentCollection<AgentVersion>,
  { _id, organizationId, version: newest }: Versioned,
  version: number,
): Promise<StoredVersion | null> {
  // A version above the newest is that of a change which was not written.
  if (version < 1 || version > newest) return null
  const stored = await versions.findOne({ _id: `${_id}_${version}`, organizationId })
  return stored && { ...stored, version }
}

/** Lists the versions that are kept of an agent or a workflow, newest first. */
export function listVersions(
  versions: DocumentCollection<AgentVersion>,
  { _id, organizationId, version: newest }: Versioned,
  args: PageArguments,
  budget: ReadBudget,
): Promise<Connection<StoredVersion>> {
  const page = readPage(args, /^[1-9]\d{0,8}$/)
  const oldest = Math.max(1, newest - RETAINED_VERSIONS + 1)
  const read = async (from: string | null, limit: number) => {
    const first = page.isBackward
      ? Math.max(oldest, from === null ? oldest : Number(from) + 1)
      : Math.min(newest, from === null ? newest : Number(from) - 1)
    const left = Math.max(0, page.isBackward ? newest - first + 1 : first - oldest + 1)
    const numbers = Array.from({ length: Math.min(limit, left) }, (_, i) => (page.isBackward ? first + i : first - i))
    if (numbers.length === 0) return []
    const stored = await versions.find({ _id: { $in: numbers.map((number) => `${_id}_${number}`) } }, { limit: numbers.length })
    const byId = new Map(stored.filter((one) => one.organizationId === organizationId).map((one) => [one._id, one]))
    return numbers.flatMap((version): StoredVersion[] => {
      const found = byId.get(`${_id}_${version}`)
      return found ? [{ ...found, version }] : []
    })
  }
  const count = () => newest - oldest + 1
  return longRecordsPage(page, budget, ({ version }) => String(version), read, count)
}
