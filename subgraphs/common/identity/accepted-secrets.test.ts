import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { systemClock } from '../process/clock.ts'
import { acceptedSecrets, deriveKeys, fingerprintsOf, listKeys } from './accepted-secrets.ts'
import { explainForeign, hasToMove, ownInstallation } from './installation.ts'
import type { Caller } from './principal.ts'
import { principalTokens } from './principal-token.ts'
import { SealedTexts } from './sealed-text.ts'

const [old, fresh, other] = [randomBytes(32), randomBytes(32), randomBytes(32)] as const
/** The processes of a rotation, in the order in which they are rolled. */
const PROCESSES = {
  before: acceptedSecrets(old, { next: null, previous: null }),
  preparing: acceptedSecrets(old, { next: fresh, previous: null }),
  moving: acceptedSecrets(fresh, { next: null, previous: old }),
  after: acceptedSecrets(fresh, { next: null, previous: null }),
}
type Process = keyof typeof PROCESSES
/** Those that run side by side while one step is rolled out. */
const PAIRS: readonly (readonly [Process, Process])[] = [
  ['before', 'preparing'],
  ['preparing', 'moving'],
  ['moving', 'after'],
]
const CALLER = { service: 'gateway' } as Caller

it('takes a secret that equals the current one for none', () => {
  expect(acceptedSecrets(old, { next: Buffer.from(old), previous: fresh })).toEqual({ current: old, next: null, previous: fresh })
})

for (const [one, two] of [...PAIRS, ...PAIRS.map(([a, b]) => [b, a] as const)]) {
  it(`a process that is ${two} takes tokens of one that is ${one}`, async () => {
    const tokens = (process: Process) => {
      const [current, ...others] = listKeys(deriveKeys(PROCESSES[process], 'principal tokens'))
      return principalTokens(current, systemClock, ...others)
    }
    const token = await tokens(one).sign(CALLER, 'billing')
    expect(await tokens(two).verify(token, 'billing')).toEqual(CALLER)
    await expect(tokens(two).verify(token, 'inference')).rejects.toThrow()
  })

  it(`a process that is ${two} opens what one that is ${one} has sealed`, () => {
    const texts = (process: Process) => new SealedTexts(...listKeys(deriveKeys(PROCESSES[process], 'sign-ins')))
    const sealed = texts(one).seal('a text', 'a place')
    const renewed = texts(two).renew(sealed, 'a place')
    expect([texts(two).open(sealed, 'a place'), texts(two).open(renewed, 'a place')]).toEqual(['a text', 'a text'])
    expect(texts(two).renew(renewed, 'a place')).toBe(renewed)
    expect(() => texts(two).open(sealed, 'another place')).toThrow()
    expect(() => texts(two).renew(sealed, 'another place')).toThrow()
  })
}

it('no process takes what another secret has signed or sealed', async () => {
  const [key] = listKeys(deriveKeys(acceptedSecrets(other, { next: null, previous: null }), 'principal tokens'))
  const token = await principalTokens(key, systemClock).sign(CALLER, 'billing')
  const [current, ...others] = listKeys(deriveKeys(PROCESSES.moving, 'principal tokens'))
  await expect(principalTokens(current, systemClock, ...others).verify(token, 'billing')).rejects.toThrow()
})

for (const [process, mark, is] of [
  ['before', fresh, 'refused'],
  ['preparing', old, 'taken'],
  ['preparing', fresh, 'taken'],
  ['moving', old, 'moved'],
  ['moving', fresh, 'taken'],
  ['after', old, 'refused'],
  ['after', fresh, 'taken'],
] as const)
  it(`the mark of the ${mark === old ? 'old' : 'new'} secret is ${is} by a process that is ${process}`, () => {
    const fingerprint = (secret: Uint8Array) => fingerprintsOf(deriveKeys({ ...PROCESSES.before, current: secret }, 'fingerprint')).current
    const own = { ...ownInstallation('inst_1', fingerprintsOf(deriveKeys(PROCESSES[process], 'fingerprint'))), movesAtOnce: true }
    const found = { id: 'inst_1', secretFingerprint: fingerprint(mark) }
    const problem = explainForeign('A store', found, own)
    if (is === 'refused') expect(problem).toMatch(/another secret.* KIS_SECRET_PREVIOUS until `kis secret` says/)
    else expect(problem).toBeNull()
    expect(hasToMove(found, own)).toBe(is === 'moved')
    expect(hasToMove(found, { ...own, movesAtOnce: false })).toBe(false)
    expect(explainForeign('A store', { ...found, id: 'inst_2' }, own)).toContain('belongs to the installation inst_2')
  })
