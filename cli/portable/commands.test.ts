import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { copyingMark } from '../copy/copying.ts'
import { runExport, runImport } from './commands.ts'

it('neither reads nor writes the target of a copy that has not ended', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-half-'))
  try {
    writeFileSync(copyingMark(folder), '')
    const environment = { KIS_DATA_DIR: folder }
    const file = join(folder, 'one.kisorg')
    const nothing = () => undefined
    const asked = { file, organizationId: `org_${'0'.repeat(32)}`, withSecrets: false }
    await expect(runExport(asked, environment, nothing)).rejects.toThrow(/A copy into .* has not ended/)
    await expect(runImport({ file, as: undefined, check: false }, environment, nothing)).rejects.toThrow(/A copy into .* has not ended/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
