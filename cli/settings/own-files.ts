import type { FolderFile } from '../../subgraphs/common/adapters/sqlite/data-folder.ts'
import type { Config } from './config.ts'
import { dataFiles } from './data-files.ts'
import type { Role } from './roles.ts'

/** Returns the SQLite files that a role opens. */
export function ownFiles(
  { settings: { billing, knowledge, inference }, dataDirectory }: Config,
  role: Role | 'all',
): readonly FolderFile[] {
  const opens = (each: Role) => role === 'all' || role === each
  const files = dataFiles(dataDirectory)
  return [
    ...(opens('billing') && !billing.mongodb ? [files.billing] : []),
    ...(opens('knowledge') && !knowledge.mongodb ? [files.knowledge, files.blobs] : []),
    ...(opens('knowledge') && !knowledge.elasticsearch ? [files.index] : []),
    ...(opens('inference') && !inference.mongodb ? [files.inference] : []),
  ]
}
