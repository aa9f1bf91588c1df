import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openSqliteChunkIndex } from '../../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import { chunkIndexContract } from './chunk-index.ts'

let folder: string
let opened = 0
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kis-chunk-index-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

chunkIndexContract('SQLite', () => openSqliteChunkIndex({ file: join(folder, `${opened++}.sqlite`), log: silentLog }), {
  atomicWrites: true,
})
