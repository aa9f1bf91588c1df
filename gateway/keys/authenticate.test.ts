import { describe, expect, it } from 'vitest'
import { InvalidApiKey, KisError } from '../../subgraphs/common/errors.ts'
import { sessionTokenFrom } from '../../subgraphs/common/identity/credentials.ts'
import type { Principal } from '../../subgraphs/common/identity/principal.ts'
import { handClock } from '../../test/gateway/support/clock.ts'
import { makePrincipal } from '../../test/gateway/support/start.ts'
import { Authenticator } from './authenticate.ts'

const KEY = `kis_live_${'k'.repeat(36)}`

function setUp(answer: (apiKey: string) => Promise<Principal> = async (apiKey) => makePrincipal(apiKey)) {
  const clock = handClock()
  const asked: string[] = []
  const authenticator = new Authenticator(async (apiKey) => {
    asked.push(apiKey)
    return answer(apiKey)
  }, clock)
  return { authenticator, clock, asked, ask: (credentials: string | null = KEY) => authenticator.getPrincipal(credentials, 'req_1') }
}

describe('a key', () => {
  it('is believed for less than 5 s', async () => {
    const { ask, asked, clock } = setUp()
    await ask()
    clock.advance(1_000)
    expect(await ask(`Bearer ${KEY}`)).toEqual(makePrincipal(KEY))
    expect(asked).toEqual([KEY])
    clock.advance(2_500)
    await ask()
    expect(asked).toHaveLength(2)
  })

  it('that is in use is looked up again before it is too old, and its callers do not wait', async () => {
    let answer = () => Promise.resolve(makePrincipal(KEY))
    const { ask, asked, clock } = setUp(() => answer())
    await ask()
    clock.advance(1_400)
    await ask()
    expect(asked).toHaveLength(1)
    clock.advance(200)
    const { promise, resolve } = Promise.withResolvers<Principal>()
    answer = () => promise
    for (let i = 0; i < 3; i++) expect(await ask()).toEqual(makePrincipal(KEY))
    expect(asked).toHaveLength(2)
    resolve({ ...makePrincipal(KEY), revision: 1 })
    await expect.poll(async () => (await ask()).revision).toBe(1)
    // The age counts from the question.
    clock.advance(1_400)
    await ask()
    expect(asked).toHaveLength(2)
  })

  it('that is revoked is refused once the lookup ahead of its time knows it', async () => {
    let isRevoked = false
    const { ask, clock } = setUp(async (apiKey) => {
      if (isRevoked) throw new InvalidApiKey()
      return makePrincipal(apiKey)
    })
    await ask()
    isRevoked = true
    clock.advance(1_600)
    expect(await ask()).toEqual(makePrincipal(KEY))
    await expect.poll(() => ask().catch((error: unknown) => error)).toBeInstanceOf(InvalidApiKey)
  })

  it('is believed until it is too old while lookups ahead of its time fail', async () => {
    let isDown = false
    const { ask, clock } = setUp(async (apiKey) => {
      if (isDown) throw new KisError('service_unavailable', 'Billing is unavailable.')
      return makePrincipal(apiKey)
    })
    await ask()
    isDown = true
    for (let age = 500; age < 3_500; age += 500) {
      clock.advance(500)
      expect(await ask()).toEqual(makePrincipal(KEY))
    }
    clock.advance(500)
    await expect(ask()).rejects.toMatchObject({ code: 'service_unavailable' })
  })

  it('is not believed for longer because the clock is set back', async () => {
    const { ask, asked, clock } = setUp()
    await ask()
    clock.advance(-3_600_000)
    await ask()
    expect(asked).toHaveLength(2)
  })

  it('is asked for once by many at once', async () => {
    const { ask, asked } = setUp()
    await Promise.all([ask(), ask(`bearer ${KEY}`), ask()])
    expect(asked).toEqual([KEY])
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
    it(`that cannot be one is refused without asking: ${malformed}`, async () => {
      const { ask, asked } = setUp()
      await expect(ask(malformed)).rejects.toBeInstanceOf(InvalidApiKey)
      expect(asked).toEqual([])
    })
  }

  it('that is unknown is asked for once a second at most', async () => {
    const { ask, asked, clock } = setUp(async () => {
      // As it comes from another process.
      throw new KisError('invalid_api_key', 'No.')
    })
    for (let i = 0; i < 5; i++) await expect(ask()).rejects.toMatchObject({ code: 'invalid_api_key' })
    expect(asked).toHaveLength(1)
    clock.advance(1_000)
    await expect(ask()).rejects.toMatchObject({ code: 'invalid_api_key' })
    expect(asked).toHaveLength(2)
  })

  it('that could not be judged is asked for again at once', async () => {
    let down = true
    const { ask } = setUp(async (apiKey) => {
      if (down) throw new KisError('service_unavailable', 'Billing is unavailable.')
      return makePrincipal(apiKey)
    })
    await expect(ask()).rejects.toMatchObject({ code: 'service_unavailable' })
    down = false
    expect(await ask()).toEqual(makePrincipal(KEY))
  })

  it('that is good is not forgotten because of many guesses', async () => {
    const { ask, asked } = setUp(async (apiKey) => {
      if (apiKey !== KEY) throw new InvalidApiKey()
      return makePrincipal(apiKey)
    })
    await ask()
    for (let i = 0; i < 12_000; i++) await ask(`kis_live_${String(i).padStart(36, '0')}`).catch(() => undefined)
    await ask()
    expect(asked.filter((apiKey) => apiKey === KEY)).toHaveLength(1)
  })
})

it('does not believe an answer about a session that was asked for before the session ended', async () => {
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
  resolve(makePrincipal(KEY))
  await early
  await expect(authenticator.getPrincipal(TOKEN, 'req_2')).rejects.toBeInstanceOf(InvalidApiKey)
})

describe('a change of rules through this process', () => {
  const OTHER = `kis_live_${'o'.repeat(36)}`
  const UNKNOWN = `kis_live_${'u'.repeat(36)}`
  const admin = { ...makePrincipal(KEY), scopes: ['admin'] } as const
  const operator = { ...admin, scopes: ['operator'] } as const

  it('shows at once: in keys of its organization, and of an operator in all', async () => {
    let revision = 0
    const { authenticator, ask, asked } = setUp(async (apiKey) => ({ ...makePrincipal(apiKey), revision }))
    for (const key of [KEY, OTHER]) await ask(key)
    revision = 1
    authenticator.evictAfterChange(admin, false)
    expect([(await ask(KEY)).revision, (await ask(OTHER)).revision]).toEqual([1, 0])
    authenticator.evictAfterChange(operator, false)
    expect((await ask(OTHER)).revision).toBe(1)
    expect(asked).toEqual([KEY, OTHER, KEY, OTHER])
  })

  it('leaves refusals of keys alone, unless it may have lifted one, or an operator made it', async () => {
    const { authenticator, ask, asked } = setUp(async () => {
      throw new InvalidApiKey()
    })
    const changes = [() => undefined, () => forget(admin, false), () => forget(admin, true), () => forget(operator, false)]
    const forget = authenticator.evictAfterChange.bind(authenticator)
    const counts: number[] = []
    for (const change of changes) {
      change()
      await expect(ask(UNKNOWN)).rejects.toBeInstanceOf(InvalidApiKey)
      counts.push(asked.length)
    }
    expect(counts).toEqual([1, 1, 2, 3])
  })

  it('leaves lookups of other organizations alone, so that its repetition multiplies none', async () => {
    const response = Promise.withResolvers<Principal>()
    const { authenticator, ask, asked } = setUp(() => response.promise)
    const waiting = [ask(OTHER)]
    for (let i = 0; i < 10; i++) {
      authenticator.evictAfterChange(admin, true)
      waiting.push(ask(OTHER))
    }
    response.resolve(makePrincipal(OTHER))
    for (const each of waiting) expect(await each).toEqual(makePrincipal(OTHER))
    await ask(OTHER)
    expect(asked).toEqual([OTHER])
  })

  it('shows to whoever waits for a refusal that is older than it', async () => {
    const responses = [Promise.withResolvers<Principal>(), Promise.withResolvers<Principal>()]
    let asked = 0
    const { authenticator, ask } = setUp(() => responses[asked++]!.promise)
    const early = ask()
    authenticator.evictAfterChange(admin, true)
    const late = ask()
    responses[0]!.reject(new InvalidApiKey())
    await expect(early).rejects.toBeInstanceOf(InvalidApiKey)
    responses[1]!.resolve(makePrincipal(KEY))
    expect(await late).toEqual(makePrincipal(KEY))
    expect(await ask()).toEqual(makePrincipal(KEY))
    expect(asked).toBe(2)
  })

  it('shows also while a key is being looked up, and the older response is not remembered', async () => {
    const responses = [Promise.withResolvers<Principal>(), Promise.withResolvers<Principal>()]
    let asked = 0
    const { authenticator, ask } = setUp(() => responses[asked++]!.promise)
    const early = ask()
    authenticator.evictAfterChange(admin, false)
    const late = ask()
    responses[0]!.resolve(makePrincipal(KEY))
    expect((await early).revision).toBe(0)
    responses[1]!.resolve({ ...makePrincipal(KEY), revision: 1 })
    expect((await late).revision).toBe(1)
    expect((await ask()).revision).toBe(1)
  })
})

it('sheds a flood of distinct keys while their lookups are under way', async () => {
  const { authenticator, asked } = setUp(() => new Promise(() => undefined))
  const lookups = Array.from({ length: 1_001 }, (_, i) => authenticator.getPrincipal(`kis_live_${String(i).padStart(36, '0')}`, 'req_1'))
  // They time out after the test.
  void Promise.allSettled(lookups)
  await expect(lookups.at(-1)).rejects.toMatchObject({ code: 'service_unavailable', shouldRetry: true })
  expect(asked).toHaveLength(1_000)
})

describe('an access token', () => {
  const TOKEN = `${'a'.repeat(500)}.b_-b.cc`

  it('is judged where an issuer is named, and remembered as a key is', async () => {
    const asked: string[] = []
    const authenticate = async (given: string) => {
      asked.push(given)
      return makePrincipal('key_1')
    }
    const authenticator = new Authenticator(authenticate, handClock(), { acceptsTokens: true })
    for (let i = 0; i < 3; i++) expect(await authenticator.getPrincipal(`Bearer ${TOKEN}`, 'req_1')).toEqual(makePrincipal('key_1'))
    expect(asked).toEqual([TOKEN])
    for (const malformed of ['a.b', `a.b.${'c'.repeat(8_192)}`, 'a.b.c.d', 'a.b.ج'])
      await expect(authenticator.getPrincipal(malformed, 'req_1')).rejects.toBeInstanceOf(InvalidApiKey)
    expect(asked).toHaveLength(1)
  })

  it('takes no place of a key while its issuer hangs, and is given up', async () => {
    const authenticate = (given: string) =>
      given.startsWith('kis_') ? Promise.resolve(makePrincipal(given)) : new Promise<Principal>(() => undefined)
    const authenticator = new Authenticator(authenticate, handClock(), { acceptsTokens: true })
    const lookups = Array.from({ length: 1_100 }, (_, i) => authenticator.getPrincipal(`a.b.${i}`, 'req_1'))
    const given = Promise.allSettled(lookups)
    await expect(lookups.at(-1)).rejects.toMatchObject({ code: 'service_unavailable', shouldRetry: true })
    expect(await authenticator.getPrincipal(KEY, 'req_1')).toEqual(makePrincipal(KEY))
    for (const { status } of await given) expect(status).toBe('rejected')
  })

  it('is refused without asking where no issuer is named', async () => {
    const { ask, asked } = setUp()
    await expect(ask(TOKEN)).rejects.toBeInstanceOf(InvalidApiKey)
    expect(asked).toEqual([])
  })
})
