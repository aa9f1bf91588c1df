import { join } from 'node:path'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openSqliteChunkIndex } from '../../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import { temporaryFolder } from '../support/data/temporary-folder.ts'
import { chunkIndexContract } from './chunk-index.ts'

let opened = 0
const folder = temporaryFolder()

chunkIndexContract('SQLite', () => openSqliteChunkIndex({ file: join(folder, `${opened++}.sqlite`), log: silentLog }), {
  atomicWrites: true,
})
