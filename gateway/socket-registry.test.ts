import { expect, it } from 'vitest'
import { PUBLIC_SOCKETS, SocketRegistry } from './socket-registry.ts'

it('leaves room for other organizations, however many keys one has, and frees room', () => {
  const registry = new SocketRegistry({ ...PUBLIC_SOCKETS, sockets: 100 })
  const open = (organizationId: string, apiKeyId: string) => registry.add({} as never, 'key', { organizationId, apiKeyId })
  const many = Array.from({ length: 100 }, (_, i) => open('org_many', `key_${i}`))
  const accepted = many.filter((connection) => connection !== undefined)
  expect(accepted).toHaveLength(50)
  expect(open('org_other', 'key_other')).toBeDefined()
  for (const connection of accepted) registry.delete(connection)
  expect(registry.connections.size).toBe(1)
  expect(open('org_many', 'key_0')).toBeDefined()
})

it('limits the bytes of all sockets of an organization together, even after they are reopened', () => {
  let ms = 0
  const clock = { now: () => new Date(ms), sleep: async () => undefined }
  const registry = new SocketRegistry({ ...PUBLIC_SOCKETS, organizationBytesPerSecond: 10, organizationByteBurst: 100 })
  const open = (organizationId: string, apiKeyId: string) => registry.add({} as never, 'key', { organizationId, apiKeyId })!
  const first = open('org_many', 'key_1')
  expect(registry.consumeBytes(first, 60, clock)).toBe(true)
  registry.delete(first)
  const next = open('org_many', 'key_2')
  expect([registry.consumeBytes(next, 60, clock), registry.consumeBytes(open('org_other', 'key_3'), 60, clock)]).toEqual([false, true])
  ms += 2_000
  expect(registry.consumeBytes(next, 60, clock)).toBe(true)
})
