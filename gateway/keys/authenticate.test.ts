import { describe, expect, it } from 'vitest'
import { InvalidApiKey, KisError } from '../../subgraphs/common/errors.ts'
import { sessionTokenFrom } from '../../subgraphs/common/identity/credentials.ts'
import type { Principal } from '../../subgraphs/common/identity/principal.ts'
import { handClock } from '../../test/gateway/support/clock.ts'
import { createPrincipal } from '../../test/gateway/support/start.ts'
import { Authenticator } from './authenticate.ts'

const KEY = `kis_live_${'k'.repeat(36)}`

function setUp(respond: (apiKey: string) => Promise<Principal> = async (apiKey) => createPrincipal(apiKey)) {
  const clock = handClock()
  const lookedUp: string[] = []
  const authenticator = new Authenticator(async (apiKey) => {
    lookedUp.push(apiKey)
    return respond(apiKey)
  }, clock)
  return {
    authenticator,
    clock,
    lookedUp,
    getPrincipal: (credentials: string | null = KEY) => authenticator.getPrincipal(credentials, 'req_1'),
  }
}

describe('API key cache', () => {
  it('trusts a key for less than 5 s', async () => {
    const { getPrincipal, lookedUp, clock } = setUp()
    await getPrincipal()
    clock.advance(1_000)
    expect(await getPrincipal(`Bearer ${KEY}`)).toEqual(createPrincipal(KEY))
    expect(lookedUp).toEqual([KEY])
    clock.advance(2_500)
    await getPrincipal()
    expect(lookedUp).toHaveLength(2)
  })

  it('refreshes a key in use before it is too old, without a wait for its callers', async () => {
    let respond = () => Promise.resolve(createPrincipal(KEY))
    const { getPrincipal, lookedUp, clock } = setUp(() => respond())
    await getPrincipal()
    clock.advance(1_400)
    await getPrincipal()
    expect(lookedUp).toHaveLength(1)
    clock.advance(200)
    const { promise, resolve } = Promise.withResolvers<Principal>()
    respond = () => promise
    for (let i = 0; i < 3; i++) expect(await getPrincipal()).toEqual(createPrincipal(KEY))
    expect(lookedUp).toHaveLength(2)
    resolve({ ...createPrincipal(KEY), revision: 1 })
    await expect.poll(async () => (await getPrincipal()).revision).toBe(1)
    // The age counts from the start of the lookup.
    clock.advance(1_400)
    await getPrincipal()
    expect(lookedUp).toHaveLength(2)
  })

  it('refuses a revoked key once the early refresh reports it', async () => {
    let isRevoked = false
    const { getPrincipal, clock } = setUp(async (apiKey) => {
      if (isRevoked) throw new InvalidApiKey()
      return createPrincipal(apiKey)
    })
    await getPrincipal()
    isRevoked = true
    clock.advance(1_600)
    expect(await getPrincipal()).toEqual(createPrincipal(KEY))
    await expect.poll(() => getPrincipal().catch((error: unknown) => error)).toBeInstanceOf(InvalidApiKey)
  })

  it('trusts a key until it is too old while early refreshes fail', async () => {
    let isDown = false
    const { getPrincipal, clock } = setUp(async (apiKey) => {
      if (isDown) throw new KisError('service_unavailable', 'Billing is unavailable.')
      return createPrincipal(apiKey)
    })
    await getPrincipal()
    isDown = true
    for (let age = 500; age < 3_500; age += 500) {
      clock.advance(500)
      expect(await getPrincipal()).toEqual(createPrincipal(KEY))
    }
    clock.advance(500)
    await expect(getPrincipal()).rejects.toMatchObject({ code: 'service_unavailable' })
  })

  it('trusts a key no longer because the clock is set back', async () => {
    const { getPrincipal, lookedUp, clock } = setUp()
    await getPrincipal()
    clock.advance(-3_600_000)
    await getPrincipal()
    expect(lookedUp).toHaveLength(2)
  })

  it('looks a key up once for many concurrent callers', async () => {
    const { getPrincipal, lookedUp } = setUp()
    await Promise.all([getPrincipal(), getPrincipal(`bearer ${KEY}`), getPrincipal()])
    expect(lookedUp).toEqual([KEY])
  })

  for (const malformed of [
    null,
    '',
    'Bearer',
    'sk-123',
    `kis_live_${'k'.repeat(35)}`,
    `kis_live_${'k'.repeat(37)}`,
    `kis_live_${'ك'.repeat(36)}`,
  ]) {
    it(`refuses a malformed key without a lookup: ${malformed}`, async () => {
      const { getPrincipal, lookedUp } = setUp()
      await expect(getPrincipal(malformed)).rejects.toBeInstanceOf(InvalidApiKey)
      expect(lookedUp).toEqual([])
    })
  }

  it('looks an unknown key up once a second at most', async () => {
    const { getPrincipal, lookedUp, clock } = setUp(async () => {
      // The error has the form that it has from another process.
      throw new KisError('invalid_api_key', 'No.')
    })
    for (let i = 0; i < 5; i++) await expect(getPrincipal()).rejects.toMatchObject({ code: 'invalid_api_key' })
    expect(lookedUp).toHaveLength(1)
    clock.advance(1_000)
    await expect(getPrincipal()).rejects.toMatchObject({ code: 'invalid_api_key' })
    expect(lookedUp).toHaveLength(2)
  })

  it('retries immediately a lookup that failed', async () => {
    let down = true
    const { getPrincipal } = setUp(async (apiKey) => {
      if (down) throw new KisError('service_unavailable', 'Billing is unavailable.')
      return createPrincipal(apiKey)
    })
    await expect(getPrincipal()).rejects.toMatchObject({ code: 'service_unavailable' })
    down = false
    expect(await getPrincipal()).toEqual(createPrincipal(KEY))
  })

  it('retains a valid key during many guesses', async () => {
    const { getPrincipal, lookedUp } = setUp(async (apiKey) => {
      if (apiKey !== KEY) throw new InvalidApiKey()
      return createPrincipal(apiKey)
    })
    await getPrincipal()
    for (let i = 0; i < 12_000; i++) await getPrincipal(`kis_live_${String(i).padStart(36, '0')}`).catch(() => undefined)
    await getPrincipal()
    expect(lookedUp.filter((apiKey) => apiKey === KEY)).toHaveLength(1)
  })
})

it('ignores a response about a session that was requested before the session ended', async () => {
  const TOKEN = sessionTokenFrom(new Uint8Array(32))
  const { promise, resolve } = Promise.withResolvers<Principal>()
  let isOver = false
  const { authenticator } = setUp(async () => {
    if (isOver) throw new InvalidApiKey()
    return promise
  })
  const early = authenticator.getPrincipal(TOKEN, 'req_1')
  isOver = true
  authenticator.evict(TOKEN)
  resolve(createPrincipal(KEY))
  await early
  await expect(authenticator.getPrincipal(TOKEN, 'req_2')).rejects.toBeInstanceOf(InvalidApiKey)
})

describe('Change of rules through this process', () => {
  const OTHER = `kis_live_${'o'.repeat(36)}`
  const UNKNOWN = `kis_live_${'u'.repeat(36)}`
  const admin = { ...createPrincipal(KEY), scopes: ['admin'] } as const
  const operator = { ...admin, scopes: ['operator'] } as const

  it('applies immediately: to keys of its organization, and of an operator to all', async () => {
    let revision = 0
    const { authenticator, getPrincipal, lookedUp } = setUp(async (apiKey) => ({ ...createPrincipal(apiKey), revision }))
    for (const key of [KEY, OTHER]) await getPrincipal(key)
    revision = 1
    authenticator.evictAfterChange(admin, false)
    expect([(await getPrincipal(KEY)).revision, (await getPrincipal(OTHER)).revision]).toEqual([1, 0])
    authenticator.evictAfterChange(operator, false)
    expect((await getPrincipal(OTHER)).revision).toBe(1)
    expect(lookedUp).toEqual([KEY, OTHER, KEY, OTHER])
  })

  it('preserves refusals of keys, unless it may have lifted one, or an operator made it', async () => {
    const { authenticator, getPrincipal, lookedUp } = setUp(async () => {
      throw new InvalidApiKey()
    })
    const changes = [() => undefined, () => evict(admin, false), () => evict(admin, true), () => evict(operator, false)]
    const evict = authenticator.evictAfterChange.bind(authenticator)
    const counts: number[] = []
    for (const change of changes) {
      change()
      await expect(getPrincipal(UNKNOWN)).rejects.toBeInstanceOf(InvalidApiKey)
      counts.push(lookedUp.length)
    }
    expect(counts).toEqual([1, 1, 2, 3])
  })

  it('preserves lookups of other organizations, so that repeated changes multiply none', async () => {
    const response = Promise.withResolvers<Principal>()
    const { authenticator, getPrincipal, lookedUp } = setUp(() => response.promise)
    const waiting = [getPrincipal(OTHER)]
    for (let i = 0; i < 10; i++) {
      authenticator.evictAfterChange(admin, true)
      waiting.push(getPrincipal(OTHER))
    }
    response.resolve(createPrincipal(OTHER))
    for (const each of waiting) expect(await each).toEqual(createPrincipal(OTHER))
    await getPrincipal(OTHER)
    expect(lookedUp).toEqual([OTHER])
  })

  it('applies to callers who wait for a refusal that is older than it', async () => {
    const responses = [Promise.withResolvers<Principal>(), Promise.withResolvers<Principal>()]
    let lookupCount = 0
    const { authenticator, getPrincipal } = setUp(() => responses[lookupCount++]!.promise)
    const early = getPrincipal()
    authenticator.evictAfterChange(admin, true)
    const late = getPrincipal()
    responses[0]!.reject(new InvalidApiKey())
    await expect(early).rejects.toBeInstanceOf(InvalidApiKey)
    responses[1]!.resolve(createPrincipal(KEY))
    expect(await late).toEqual(createPrincipal(KEY))
    expect(await getPrincipal()).toEqual(createPrincipal(KEY))
    expect(lookupCount).toBe(2)
  })

  it('applies during a lookup of a key, and the older response is not cached', async () => {
    const responses = [Promise.withResolvers<Principal>(), Promise.withResolvers<Principal>()]
    let lookupCount = 0
    const { authenticator, getPrincipal } = setUp(() => responses[lookupCount++]!.promise)
    const early = getPrincipal()
    authenticator.evictAfterChange(admin, false)
    const late = getPrincipal()
    responses[0]!.resolve(createPrincipal(KEY))
    expect((await early).revision).toBe(0)
    responses[1]!.resolve({ ...createPrincipal(KEY), revision: 1 })
    expect((await late).revision).toBe(1)
    expect((await getPrincipal()).revision).toBe(1)
  })
})

it('sheds a flood of distinct keys while their lookups are in flight', async () => {
  const { authenticator, lookedUp } = setUp(() => new Promise(() => undefined))
  const lookups = Array.from({ length: 1_001 }, (_, i) => authenticator.getPrincipal(`kis_live_${String(i).padStart(36, '0')}`, 'req_1'))
  // The lookups time out after the test.
  void Promise.allSettled(lookups)
  await expect(lookups.at(-1)).rejects.toMatchObject({ code: 'service_unavailable', shouldRetry: true })
  expect(lookedUp).toHaveLength(1_000)
})

describe('Access tokens', () => {
  const TOKEN = `${'a'.repeat(500)}.b_-b.cc`

  it('are verified if an issuer is configured, and cached like keys', async () => {
    const lookedUp: string[] = []
    const authenticate = async (apiKey: string) => {
      lookedUp.push(apiKey)
      return createPrincipal('key_1')
    }
    const authenticator = new Authenticator(authenticate, handClock(), { acceptsTokens: true })
    for (let i = 0; i < 3; i++) expect(await authenticator.getPrincipal(`Bearer ${TOKEN}`, 'req_1')).toEqual(createPrincipal('key_1'))
    expect(lookedUp).toEqual([TOKEN])
    for (const malformed of ['a.b', `a.b.${'c'.repeat(8_192)}`, 'a.b.c.d', 'a.b.ج'])
      await expect(authenticator.getPrincipal(malformed, 'req_1')).rejects.toBeInstanceOf(InvalidApiKey)
    expect(lookedUp).toHaveLength(1)
  })

  it('use no slot of a key while their issuer hangs, and time out', async () => {
    const authenticate = (apiKey: string) =>
      apiKey.startsWith('kis_') ? Promise.resolve(createPrincipal(apiKey)) : new Promise<Principal>(() => undefined)
    const authenticator = new Authenticator(authenticate, handClock(), { acceptsTokens: true })
    const lookups = Array.from({ length: 1_100 }, (_, i) => authenticator.getPrincipal(`a.b.${i}`, 'req_1'))
    const settled = Promise.allSettled(lookups)
    await expect(lookups.at(-1)).rejects.toMatchObject({ code: 'service_unavailable', shouldRetry: true })
    expect(await authenticator.getPrincipal(KEY, 'req_1')).toEqual(createPrincipal(KEY))
    for (const { status } of await settled) expect(status).toBe('rejected')
  })

  it('are refused without a lookup if no issuer is configured', async () => {
    const { getPrincipal, lookedUp } = setUp()
    await expect(getPrincipal(TOKEN)).rejects.toBeInstanceOf(InvalidApiKey)
    expect(lookedUp).toEqual([])
  })
})
