import { expect, it } from 'vitest'
import { bytePaths } from './byte-paths.ts'

const SECRET = new Uint8Array(32).fill(1)
const OTHER = new Uint8Array(32).fill(2)
const FILE = { kind: 'file', organizationId: 'org_a', key: 'file_a' } as const

function manualClock() {
  let ms = Date.UTC(2026, 0, 1)
  return {
    now: () => new Date(ms),
    sleep: async () => undefined,
    advance(by: number) {
      ms += by
    },
  }
}

it('identifies what was signed, for one minute', async () => {
  const clock = manualClock()
  const paths = bytePaths(clock, SECRET)
  const { path, expiresAt } = await paths.sign(FILE)
  expect(expiresAt.getTime() - clock.now().getTime()).toBe(60_000)
  expect(await bytePaths(clock, SECRET).verify(path)).toMatchObject(FILE)
  clock.advance(60_000)
  await expect(paths.verify(path)).rejects.toMatchObject({ code: 'permission_denied' })
})

it('distinguishes paths with the same name and time, in any encoding', async () => {
  const paths = bytePaths(manualClock(), SECRET)
  const [{ path }, other] = [await paths.sign(FILE), await paths.sign(FILE)]
  const { id } = await paths.verify(path)
  expect((await paths.verify(other.path)).id).not.toBe(id)
  for (const again of [`${path}&a=1`, path.replace(/(?=.$)/, '%20')]) expect((await paths.verify(again)).id).toBe(id)
})

it('refuses the paths of another secret', async () => {
  const clock = manualClock()
  const { path } = await bytePaths(clock, OTHER).sign(FILE)
  await expect(bytePaths(clock, SECRET).verify(path)).rejects.toMatchObject({ code: 'permission_denied' })
})

it('refuses changed paths, and those of other addresses', async () => {
  const paths = bytePaths(manualClock(), SECRET)
  const { path } = await paths.sign(FILE)
  const [, , claims] = /token=([^.]+)\.([^.]+)/.exec(path)!
  const changed = Buffer.from(Buffer.from(claims!, 'base64url').toString().replace('org_a', 'org_b')).toString('base64url')
  for (const other of [
    path.replace(claims!, changed),
    path.slice(0, -2),
    path.replace('/bytes', '/graphql'),
    '/bytes',
    '/bytes?token=',
    `/bytes?token=${'x'.repeat(10_000)}`,
  ])
    await expect(paths.verify(other)).rejects.toMatchObject({ code: 'permission_denied' })
})
