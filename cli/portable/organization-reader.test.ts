import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { VERSIONS } from '../../subgraphs/common/process/versions.ts'
import { TarWriter } from '../backup/tar-writer.ts'
import { FORMAT, HEAD, MAX_PART_LINES } from './format.ts'
import { OrganizationReader } from './organization-reader.ts'

it('refuses a part that has more lines than a part of records can have, before it reads them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-lines-'))
  try {
    for (const [lines, problem] of [
      [MAX_PART_LINES, /something else than entries/],
      [MAX_PART_LINES + 1, /has too many lines/],
    ] as const) {
      const file = join(folder, String(lines))
      using tar = new TarWriter(file, 'export')
      const at = '2026-01-01T00:00:00.000Z'
      const head = { what: 'kis-organization', format: FORMAT, id: `exp_${'a'.repeat(32)}`, organizationId: `org_${'b'.repeat(32)}` }
      tar.addEntry(HEAD, Buffer.from(JSON.stringify({ ...head, name: 'Many', ...VERSIONS, begunAt: at, models: [], secrets: null })))
      tar.addEntry('records/report/usage/00000001.jsonl.zst', zstdCompressSync('{}\n'.repeat(lines)))
      tar.finish()
      using archive = new OrganizationReader(file, VERSIONS.version)
      await expect(archive.read({ records: async () => undefined, file: async () => undefined })).rejects.toThrow(problem)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})
