import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { InvalidApiKey } from '../../subgraphs/common/errors.ts'
import { handClock } from '../../test/gateway/support/clock.ts'
import { REFUSED_AFTER_MS, SignInAttempts } from './sign-in-attempts.ts'

function setUp() {
  const clock = handClock()
  const attempts = new SignInAttempts(clock, () => clock.now().getTime())
  let tried = 0
  const wrong = (address = '192.0.2.1') =>
    attempts.attempt(address, async () => {
      tried += 1
      throw new InvalidApiKey()
    })
  const right = (address = '192.0.2.1') => attempts.attempt(address, async () => 'in')
  return { clock, attempts, wrong, right, tried: () => tried }
}

it('a refused attempt takes constant time', async () => {
  const { clock, attempts } = setUp()
  for (const [tookMs, respondedMs] of [
    [0, REFUSED_AFTER_MS],
    [3, REFUSED_AFTER_MS],
    [499, REFUSED_AFTER_MS],
    [501, 2 * REFUSED_AFTER_MS],
  ] as const) {
    const startedAt = clock.now().getTime()
    let isSettled = false
    const attempt = attempts.attempt('192.0.2.1', async () => {
      clock.advance(tookMs)
      throw new InvalidApiKey()
    })
    attempt.catch(() => {
      isSettled = true
    })
    await turn()
    clock.advance(startedAt + respondedMs - 1 - clock.now().getTime())
    await turn()
    expect(isSettled).toBe(false)
    clock.advance(1)
    await expect(attempt).rejects.toBeInstanceOf(InvalidApiKey)
  }
})

it('one address has eight wrong attempts a second, waits for its own attempts only, and is not locked out', async () => {
  const { clock, wrong, right, tried } = setUp()
  const all = Array.from({ length: 24 }, () => wrong())
  void Promise.allSettled(all)
  await turn()
  expect(tried()).toBe(4)
  await expect(wrong()).rejects.toMatchObject({ code: 'rate_limit_exceeded', retryAfterMs: 3_000 })
  expect(await right('192.0.2.2')).toBe('in')
  clock.advance(REFUSED_AFTER_MS)
  await turn()
  expect(tried()).toBe(8)
  const mine = right()
  for (let i = 0; i < 6; i++) {
    clock.advance(REFUSED_AFTER_MS)
    await turn()
  }
  expect(await mine).toBe('in')
  expect(tried()).toBe(24)
})

it('one IPv6 network is one address, and an IPv4 network inside it is not', async () => {
  const { wrong, right } = setUp()
  void Promise.allSettled(Array.from({ length: 24 }, (_, i) => wrong(`2001:db8:1:2::${i}`)))
  await expect(right('2001:db8:1:2:ffff::1')).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
  expect(await right('2001:db8:1:3::1')).toBe('in')
  void Promise.allSettled(Array.from({ length: 24 }, () => wrong('::ffff:192.0.2.1')))
  expect(await right('::ffff:192.0.2.2')).toBe('in')
})

it.each([
  { of: 'zeros in the network', address: (i: number) => `2001:db8::${i + 1}:2:3:4`, same: '2001:db8::9', other: '2001:db8:0:1::9' },
  { of: 'zeros written out', address: (i: number) => `2001:0DB8:0:0:${i}::`, same: '2001:db8::9', other: '2001:db8:0:1::9' },
  { of: 'zeros in front', address: (i: number) => `::${i + 1}:2:3:4`, same: '::9', other: '0:0:0:1::9' },
])('one IPv6 network with $of is one address, in any notation', async ({ address, same, other }) => {
  const { wrong, right } = setUp()
  void Promise.allSettled(Array.from({ length: 24 }, (_, i) => wrong(address(i))))
  await expect(right(same)).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
  expect(await right(other)).toBe('in')
})

it.each([
  { of: 'IPv4', address: (i: number) => `10.0.${i >> 8}.${i & 255}`, neighbour: '10.0.200.1', other: '192.0.2.9' },
  { of: 'IPv4 in IPv6', address: (i: number) => `::ffff:10.0.${i >> 8}.${i & 255}`, neighbour: '10.0.200.1', other: '::ffff:192.0.2.9' },
  { of: 'IPv6', address: (i: number) => `2001:db8:${i.toString(16)}::1`, neighbour: '2001:db8:ffff::1', other: '2001:db9::1' },
])('attempts from many addresses of $of block neighbors, and nobody else', async ({ address, neighbour, other }) => {
  const { wrong, clock, right } = setUp()
  const settled = Promise.allSettled(Array.from({ length: 1_200 }, (_, i) => wrong(address(i))))
  await expect(right(neighbour)).rejects.toMatchObject({ code: 'service_unavailable' })
  expect(await right(other)).toBe('in')
  await turn()
  clock.advance(REFUSED_AFTER_MS)
  await settled
  expect(await right(neighbour)).toBe('in')
})

it('an address that has signed in is not refused because of others', async () => {
  const { wrong, right } = setUp()
  expect(await right('10.0.200.1')).toBe('in')
  void Promise.allSettled(Array.from({ length: 1_200 }, (_, i) => wrong(`10.0.${i >> 8}.${i & 255}`)))
  expect(await right('10.0.200.1')).toBe('in')
})

it('attempts of at most 10,000 addresses run concurrently', async () => {
  const { wrong, right } = setUp()
  void Promise.allSettled(Array.from({ length: 10_000 }, (_, i) => wrong(`10.${i % 100}.0.${Math.floor(i / 100)}`)))
  await expect(right('192.0.2.9')).rejects.toMatchObject({ code: 'service_unavailable' })
})
