import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startImport } from '../../subgraphs/billing/import-mark.ts'
import { ORGANIZATION } from '../../subgraphs/billing/use-cases/portable/kinds.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { VERSIONS } from '../../subgraphs/common/process/versions.ts'
import { readConfig } from '../settings/config.ts'
import { readStoreLocations } from '../settings/servers.ts'
import { ArchiveWriter } from './archive-writer.ts'
import { runExport, runImport } from './commands.ts'
import { FORMAT } from './format.ts'
import { openToWrite } from './stores.ts'

const nothing = () => undefined

it('neither reads nor writes stores with an unfinished import of all data', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-half-'))
  try {
    const environment = { KIS_DATA_DIR: join(folder, 'data') }
    const { locations } = readStoreLocations(environment)
    {
      // This call also creates the secret of the folder.
      readConfig(environment)
      await using stores = await openToWrite(locations, { installation: null, log: silentLog })
      await startImport(stores.documents.billing, 'exp_1')
    }
    const file = join(folder, 'all.kis')
    const input = { file, organizationId: undefined, withSecret: false, check: false }
    for (const organizationId of [undefined, `org_${'0'.repeat(32)}`])
      await expect(runExport({ ...input, organizationId }, environment, nothing)).rejects.toThrow(/has not ended/)
    expect(existsSync(file)).toBe(false)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

it('shows what only an operator may decide and what the archive lacks, before and after an import', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-rules-'))
  const at = '2026-01-01T00:00:00.000Z'
  const said = async (digit: string, rules: object, check: boolean) => {
    const file = join(folder, `${digit}-${check}.kisorg`)
    await using archive = await ArchiveWriter.create(file, {
      ...{ what: 'kis-archive', format: FORMAT, id: `exp_${digit.repeat(32)}`, ...VERSIONS, begunAt: at, secret: null },
      scope: { what: 'organization', id: `org_${digit.repeat(32)}`, name: 'A\nB\u001b[2J\u009b', models: [] },
    })
    await archive.record(ORGANIZATION, { name: 'A', residencyPolicy: 'unrestricted', plan: 'self-hosted', createdAt: at, ...rules })
    await archive.finish({ from: at, to: at })
    const lines: string[] = []
    await runImport({ file, as: undefined, check }, { KIS_DATA_DIR: join(folder, 'data') }, (line) => lines.push(line))
    return lines
  }
  try {
    const stored = { limits: { requestsPerMinute: 5, concurrency: 3 }, suspendedAt: at, suspensionReason: 'unpaid\nso far\u202e' }
    const shown = `Set by the archive: plan self-hosted; limits requests_per_minute 5, concurrency 3; suspended since ${at}, because "unpaid\\nso far\\u{202e}".`
    const checked = await said('1', stored, true)
    expect(checked[0]).toContain('"A\\nB\\u001b[2J\\u{9b}"')
    expect(checked.slice(1)).toEqual([shown])
    expect(await said('1', stored, false)).toContain(shown)
    expect(await said('2', {}, false)).toContain('Set by the archive: plan self-hosted; no limits of its own; not suspended.')
    const owners = [`mem_${'7'.repeat(32)}`]
    const lacking = `billing/organization refers to ${owners[0]}, which is missing`
    await expect(said('3', { owners }, true)).rejects.toThrow(`is readable, but incomplete: ${lacking}.`)
    expect(await said('3', { owners }, false)).toContain(`Incomplete, as it was when it was exported: ${lacking}.`)
  } finally {
    rmSync(folder, { recursive: true })
  }
}, 60_000)
