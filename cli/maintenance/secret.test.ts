import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { forgetPrevious, keptSecrets } from '../../subgraphs/common/identity/kept-secret.ts'
import { parseSecret } from '../../subgraphs/common/identity/secrets.ts'
import { rotateSecret, showRotation } from './secret.ts'

let folder: string
let said: string[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kis-secret-'))
  said = []
})
afterEach(() => rmSync(folder, { recursive: true }))

const text = (name: string) => readFileSync(join(folder, name), 'utf8')
const rotate = (env: Record<string, string> = {}) => rotateSecret({ KIS_DATA_DIR: folder, ...env }, (line) => said.push(line))

it('gives the data folder a new secret, and keeps the one before until the service forgets it', () => {
  expect(() => rotate()).toThrow(/secret is not there/)
  const { current: first } = keptSecrets(folder)
  rotate()
  expect(said.join(' ')).toContain('Restart the service')
  expect(text('secret.previous')).toBe(Buffer.from(first).toString())
  const second = keptSecrets(folder)
  expect(second.previous).toEqual(first)
  expect(second.current).not.toEqual(first)
  expect(() => rotate()).toThrow(/A rotation is under way/)
  forgetPrevious(folder, second.current)
  expect(keptSecrets(folder).previous).toEqual(first)
  forgetPrevious(folder, first)
  forgetPrevious(folder, first)
  expect(keptSecrets(folder)).toEqual({ ...second, previous: null })
  rotate()
  expect(text('secret.previous')).toBe(Buffer.from(second.current).toString())
})

it('goes on where a kill has left both files alike, which a start takes for no rotation', () => {
  const { current: first } = keptSecrets(folder)
  writeFileSync(join(folder, 'secret.previous'), text('secret'))
  writeFileSync(join(folder, 'secret.new'), 'cut sho')
  expect(keptSecrets(folder)).toEqual({ current: first, next: null, previous: null })
  rotate()
  expect(keptSecrets(folder).previous).toEqual(first)
  expect(readdirSync(folder)).not.toContain('secret.new')
})

it('leaves a secret that comes from elsewhere alone', () => {
  mkdirSync(join(folder, 'data'))
  expect(() => rotate({ KIS_SECRET: 'x'.repeat(32) })).toThrow(/docs\/operate\/secrets.md/)
  const file = join(folder, 'file')
  writeFileSync(file, 'x'.repeat(32))
  expect(() => rotate({ KIS_SECRET_FILE: file })).toThrow(/KIS_SECRET/)
  expect(() => parseSecret('short', 'KIS_SECRET_NEXT')).toThrow('KIS_SECRET_NEXT must have at least 32 characters')
})

const part = (kind: string, current: number, left: number) => ({ kind, current, left })
for (const [what, billing, inference, isOver, last] of [
  ['none', { state: 'NONE', parts: [] }, { state: 'NONE', parts: [] }, true, 'No rotation is under way.'],
  ['the next one', { state: 'NEXT_ACCEPTED', parts: [] }, { state: 'NONE', parts: [] }, true, /Once all processes accept it/],
  ['a beginning', { state: 'MOVING', parts: [] }, { state: 'MOVED', parts: [part('AGENTS', 1, 0)] }, false, /still being looked through/],
  ['keys left', { state: 'MOVING', parts: [part('API_KEYS', 2, 1)] }, { state: 'MOVED', parts: [] }, false, /is still needed/],
  [
    'nothing left',
    { state: 'MOVED', parts: [part('API_KEYS', 3, 0)] },
    { state: 'MOVED', parts: [] },
    true,
    /take KIS_SECRET_PREVIOUS away/,
  ],
] as const)
  it(`tells ${what}`, async () => {
    const keys = isOver ? [] : [{ apiKeyId: 'key_1', organizationId: 'org_1', name: 'Left', lastUsedAt: null }]
    const data = { billingSecretRotation: billing, inferenceSecretRotation: inference, keysOfPreviousSecret: keys }
    const service = { ask: async <Data>() => data as Data }
    expect(await showRotation(service, false, (line) => said.push(line))).toBe(isOver)
    expect(said.at(-1)).toEqual(typeof last === 'string' ? last : expect.stringMatching(last))
    if (!isOver) expect(said).toContain('  left: key_1 of org_1, last used never: Left')
    said.length = 0
    expect(await showRotation(service, true, (line) => said.push(line))).toBe(isOver)
    expect(JSON.parse(said[0]!)).toEqual({ isOver, billing, inference, keys })
  })
