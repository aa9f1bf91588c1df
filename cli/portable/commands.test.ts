import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ORGANIZATION } from '../../subgraphs/billing/use-cases/portable/kinds.ts'
import { VERSIONS } from '../../subgraphs/common/process/versions.ts'
import { copyingMark } from '../copy/copying.ts'
import { runExport, runImport } from './commands.ts'
import { FORMAT } from './format.ts'
import { OrganizationWriter } from './organization-writer.ts'

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

it('shows what the archive says that only an operator may decide, before an import and after it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-rules-'))
  const at = '2026-01-01T00:00:00.000Z'
  const said = async (digit: string, rules: object, check: boolean) => {
    const file = join(folder, `${digit}-${check}.kisorg`)
    const head = {
      what: 'kis-organization',
      format: FORMAT,
      id: `exp_${digit.repeat(32)}`,
      organizationId: `org_${digit.repeat(32)}`,
    } as const
    using archive = new OrganizationWriter(file, {
      ...head,
      name: 'A\nB\u001b[2J\u009b',
      ...VERSIONS,
      begunAt: at,
      models: [],
      secrets: null,
    })
    await archive.record(ORGANIZATION, { name: 'A', residencyPolicy: 'unrestricted', plan: 'self-hosted', createdAt: at, ...rules })
    archive.finish({ from: at, to: at })
    const lines: string[] = []
    await runImport({ file, as: undefined, check }, { KIS_DATA_DIR: join(folder, 'data') }, (line) => lines.push(line))
    return lines
  }
  try {
    const given = { limits: { requestsPerMinute: 5, concurrency: 3 }, suspendedAt: at, suspensionReason: 'unpaid\nso far\u202e' }
    const shown = `Set by the archive: plan self-hosted; limits requests_per_minute 5, concurrency 3; suspended since ${at}, because "unpaid\\nso far\\u{202e}".`
    const checked = await said('1', given, true)
    expect(checked[0]).toContain('"A\\nB\\u001b[2J\\u{9b}"')
    expect(checked.slice(1)).toEqual([shown])
    expect(await said('1', given, false)).toContain(shown)
    expect(await said('2', {}, false)).toContain('Set by the archive: plan self-hosted; no limits of its own; not suspended.')
  } finally {
    rmSync(folder, { recursive: true })
  }
}, 60_000)
