import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { buildSbom, findProblems, type Lock } from '../../.ci/dependencies.ts'

const { packages: LOCK } = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')) as { packages: Lock }
const withPackage = (fields: object): Lock => ({ ...LOCK, 'node_modules/other': { version: '1.0.0', license: 'MIT', ...fields } })

/** What of CycloneDX's shape the tests look at. */
interface Bom {
  readonly bomFormat: string
  readonly specVersion: string
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}
interface Component {
  readonly 'bom-ref': string
  readonly name: string
  readonly group?: string
}

describe('Licences of dependencies', () => {
  it('are all permitted, and no package runs anything at installation', () => {
    expect(findProblems(LOCK)).toEqual([])
    expect(readFileSync(new URL('../../.npmrc', import.meta.url), 'utf8')).toContain('ignore-scripts=true')
  })

  it.each([
    ['is under AGPL-3.0-only', { license: 'AGPL-3.0-only' }],
    ['is under Elastic-2.0', { license: 'Elastic-2.0' }],
    ['is under (MIT AND GPL-2.0-only)', { license: '(MIT AND GPL-2.0-only)' }],
    ['is under no licence', { license: undefined }],
    ['has an install script', { hasInstallScript: true }],
  ])('report a package that %s', (problem, fields) => {
    expect(findProblems(withPackage(fields))).toEqual([`other@1.0.0 ${problem}`])
    expect(findProblems(withPackage({ ...fields, dev: true }))).toEqual([])
  })

  it('accept a choice of licences of which one is allowed', () =>
    expect(findProblems(withPackage({ license: '(GPL-3.0-or-later OR MIT)' }))).toEqual([]))
})

describe('Bill of materials', () => {
  const bom = buildSbom(LOCK) as Bom

  it('lists each package once, with its version, licence and hash, without development packages', () => {
    expect([bom.bomFormat, bom.specVersion, bom.metadata.component.name]).toEqual(['CycloneDX', '1.6', 'knowledge-and-inference-service'])
    const refs = bom.components.map((component) => component['bom-ref'])
    expect(new Set(refs).size).toBe(refs.length)
    expect(refs).toEqual([...refs].sort())
    expect(refs).not.toContainEqual(expect.stringContaining('/vitest@'))
    expect(bom.components.find(({ name, group }) => name === 'query-planner' && group === '@apollo')).toMatchObject({
      type: 'library',
      scope: 'required',
      purl: expect.stringMatching(/^pkg:npm\/%40apollo\/query-planner@\d/),
      licenses: [{ license: { id: 'Elastic-2.0' } }],
      hashes: [{ alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/) }],
    })
  })

  it('lists dependencies, and is deterministic for one lock file', () => {
    const all = new Set([bom.metadata.component['bom-ref'], ...bom.components.map((component) => component['bom-ref'])])
    for (const { ref, dependsOn } of bom.dependencies) for (const each of [ref, ...dependsOn]) expect(all).toContain(each)
    const reached = new Set<string>()
    const reach = (ref: string) => {
      if (reached.has(ref)) return
      reached.add(ref)
      for (const next of bom.dependencies.find((one) => one.ref === ref)!.dependsOn) reach(next)
    }
    reach(bom.metadata.component['bom-ref'])
    expect(reached).toEqual(all)
    const shuffled = Object.fromEntries(Object.entries(LOCK).reverse())
    expect(JSON.stringify(buildSbom(shuffled))).toBe(JSON.stringify(bom))
    expect(JSON.stringify(bom)).not.toMatch(/https?:/)
  })
})
