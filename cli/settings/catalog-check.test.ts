import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../test/support/data/temporary-folder.ts'
import { checkCatalog } from './catalog-check.ts'

describe('kis catalog check', () => {
  const folder = temporaryFolder()

  const check = (text: string, env: Readonly<Record<string, string>> = {}) => {
    const file = join(folder, 'catalog.yaml')
    writeFileSync(file, text)
    return checkCatalog(file, env)
  }

  const CATALOG = `engines:
  near: { kind: embedded, badge: local }
  anthropic: { kind: anthropic, api_key: "\${VENDOR_KEY}", badge: cloud }
  aws: { kind: bedrock, region: "\${REGION}", access_key_id: "\${ID}", secret_access_key: "\${SECRET}", badge: regional }
models:
  - { id: claude, engine: anthropic, kind: chat, max_output_tokens: 10, price: { input: "1", output: "2" } }
`

  it('reports for every engine and model whether it is enabled, or what it lacks', () => {
    expect(check(CATALOG, { REGION: 'eu-west-1' })).toEqual({
      code: 0,
      lines: [
        'near       on  embedded, local, without models',
        'anthropic  off: `api_key` came out empty  anthropic, cloud',
        '  claude   off: its engine is off  chat',
        'aws        off: `access_key_id+secret_access_key` came out empty  bedrock, regional, without models',
      ],
    })
  })

  it('reports aliases and fallbacks of a model', () => {
    const model = (fields: string) =>
      `  - { engine: near, kind: chat, max_output_tokens: 10, price: { input: "1", output: "2" }, ${fields} }\n`
    const { code, lines } = check(
      `engines:\n  near: { kind: embedded, badge: local }\nmodels:\n${model('id: a, aliases: [big, best], fallbacks: [b]')}${model('id: b')}`,
    )
    expect([code, ...lines.slice(1)]).toEqual([0, '  a   on  chat, alias big, alias best, falls back to b', '  b   on  chat'])
  })

  it('shows no value of a setting', () => {
    const { code, lines } = check(CATALOG, { VENDOR_KEY: 'secret-one', ID: 'secret-two', SECRET: 'secret-three' })
    expect([code, lines.join(' ').includes('secret-')]).toEqual([0, false])
    expect(lines.slice(1, 3)).toEqual(['anthropic  on  anthropic, cloud', '  claude   on  chat'])
  })

  it('ends with 1 and every problem at once when the service would not start', () => {
    const { code, lines } = check('engines:\n  a: { kind: oracle, badge: moon }\nmodels: 5\n')
    expect(code).toBe(1)
    expect(lines).toHaveLength(3)
    expect(checkCatalog(join(folder, 'absent.yaml'), {}).code).toBe(1)
  })

  it('reads the catalog that the service would read', () => {
    expect(checkCatalog(undefined, { KIS_CATALOG: new URL('../../catalog.yaml', import.meta.url).pathname }).code).toBe(0)
  })
})
