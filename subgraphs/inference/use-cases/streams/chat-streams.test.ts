import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { type Step, stream, usageChunk } from '../../test-support/scripted-engine.ts'
import { streamChatCompletion } from '../calls/stream-chat-completion.ts'
import { ChatStreams, RETENTION_MS } from './chat-streams.ts'
import { type FollowedChatEvent, GRACE_MS, type SourceEvent } from './live-stream.ts'

const request = { model: 'chat', stream: true, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 100 }
/** "Hello" is 6 tokens, at 1,000 nano-USD. */
const INPUT = 6_000n
/** The cost of one piece, which is a token at 2,000 nano-USD. */
const PIECE = 2_000n
/** A text that takes 1 MiB of memory. */
const LARGE = 'x'.repeat(512 * 1024)

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

function isGone(ref: WeakRef<object>): boolean {
  collectGarbage()
  return ref.deref() === undefined
}

const weakly = ([event]: readonly FollowedChatEvent[]) => new WeakRef(event!.chunks)

const isCut = () => true

/** Yields the events of a call with pieces of 1 MiB. After them, the call waits or ends. */
async function* largeEvents(pieces: number, atEnd: 'ends' | 'waits'): AsyncGenerator<SourceEvent, undefined> {
  const nothing = { warnings: null, rateLimits: null, usage: null, cost: null }
  for (let i = 0; i < pieces; i++) {
    yield { ...nothing, chunks: [{ choices: [{ index: 0, delta: { content: LARGE }, finish_reason: null }] }] } as unknown as SourceEvent
  }
  if (atEnd === 'waits') await new Promise(() => undefined)
  return undefined
}

function world(steps: readonly Step[]) {
  const { deps, billing, far } = parts()
  far.steps = [...steps]
  const streams = new ChatStreams(deps)
  const open = (context = createRequestContext(), idempotencyKey: string | null = null) =>
    streams.open(
      { ...context, isCut: context.isCut ?? isCut },
      { operation: 'chat_completion_stream', request, idempotencyKey },
      (callContext) => streamChatCompletion(deps, callContext, request),
    )
  const follow = (id: string, after: string | null = null, context = createRequestContext()) =>
    streams.follow({ ...context, isCut }, id, after)
  return { deps, billing, far, streams, open, follow }
}

type Events = AsyncIterator<FollowedChatEvent, undefined>

async function takeEvents(events: Events, count: number): Promise<FollowedChatEvent[]> {
  const got: FollowedChatEvent[] = []
  while (got.length < count) {
    const { done, value } = await events.next()
    if (done) throw new Error(`ended after ${got.length} events`)
    got.push(value)
  }
  return got
}

async function rest(events: Events): Promise<FollowedChatEvent[]> {
  const got: FollowedChatEvent[] = []
  for (;;) {
    const { done, value } = await events.next()
    if (done) return got
    got.push(value)
  }
}

const textOf = (events: readonly FollowedChatEvent[]) =>
  events
    .flatMap(({ chunks }) => chunks)
    .map((chunk) => (chunk as { choices?: { delta: { content?: string } }[] }).choices?.[0]?.delta.content ?? '')
    .join('')
    .replaceAll(LARGE, 'L')

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

describe('Chat call whose connection is lost', () => {
  it('continues for the grace period, then stops and is charged for its output', async () => {
    const { open, follow, billing, far } = world([...stream(9).slice(0, 5), 'wait'])
    const events = open()
    const [{ id }] = (await takeEvents(events, 2)) as [FollowedChatEvent, FollowedChatEvent]
    await events.return!()
    await vi.advanceTimersByTimeAsync(GRACE_MS - 1)
    expect([billing.openHolds, far.ended]).toEqual([1, 0])
    await vi.advanceTimersByTimeAsync(1)
    await vi.waitFor(() => expect(billing.only.state).toBe('settled'))
    expect([billing.only.charged, far.ended, far.chats]).toEqual([INPUT + 5n * PIECE, 1, 1])
    const late = follow(id)
    expect(textOf(await takeEvents(late, 5))).toBe('w0 w1 w2 w3 w4 ')
    await expect(late.next()).rejects.toMatchObject({ code: 'invalid_request', shouldRetry: false })
  })

  it('continues as long as it has a follower, and again after that', async () => {
    const { open, follow, billing } = world([...stream(9).slice(0, 5), 'wait'])
    const events = open()
    const [{ id, cursor }] = (await takeEvents(events, 1)) as [FollowedChatEvent]
    await events.return!()
    const again = follow(id, cursor)
    expect(textOf(await takeEvents(again, 4))).toBe('w1 w2 w3 w4 ')
    await vi.advanceTimersByTimeAsync(GRACE_MS * 3)
    expect(billing.openHolds).toBe(1)
    await again.return!()
    await vi.advanceTimersByTimeAsync(GRACE_MS - 1)
    expect(billing.openHolds).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    await vi.waitFor(() => expect(billing.openHolds).toBe(0))
  })

  it('stops at once when its client cancels, or when it has no ID yet', async () => {
    const steps: Step[] = [...stream(9).slice(0, 5), 'wait']
    const left = world(steps)
    const events = left.open({ ...createRequestContext(), isCut: () => false })
    await takeEvents(events, 1)
    await events.return!()
    await vi.waitFor(() => expect(left.billing.only.state).toBe('settled'))
    const early = world(['wait'])
    const none = early.open()
    void none.next()
    await vi.waitFor(() => expect(early.far.chats).toBe(1))
    await none.return!()
    await vi.waitFor(() => expect(early.billing.openHolds).toBe(0))
  })

  it('stops with the process, and is charged for its output', async () => {
    const { open, billing, streams } = world([...stream(9).slice(0, 5), 'wait'])
    const events = open()
    await takeEvents(events, 5)
    await events.return!()
    streams[Symbol.dispose]()
    await vi.waitFor(() => expect(billing.only).toMatchObject({ state: 'settled', charged: INPUT + 5n * PIECE }))
  })
})

describe('Resumed chat stream', () => {
  it('yields each event once, after any cursor, with one charge', async () => {
    const { open, follow, billing, far } = world([...stream(4), [usageChunk(20, 4)]])
    const events = open()
    const all = await rest(events)
    const { id } = all[0]!
    expect(new Set(all.map((event) => event.id))).toEqual(new Set([id]))
    expect(all.map(({ cursor }) => cursor)).toEqual(['1', '2', '3', '4', '5'])
    for (const [i, { cursor }] of all.entries()) expect(await rest(follow(id, cursor))).toEqual(all.slice(i + 1))
    expect(await rest(follow(id))).toEqual(all)
    expect([far.chats, billing.holds.size]).toEqual([1, 1])
  })

  it('is unknown to other keys and some time after its end, like an ID that never existed', async () => {
    const { open, follow } = world([...stream(1), [usageChunk(20, 1)]])
    const [{ id }] = (await rest(open())) as [FollowedChatEvent, FollowedChatEvent]
    const other = createRequestContext({ ...somebody, apiKeyId: 'key_b', organizationId: 'org_b' })
    const missing = { code: 'not_found', message: expect.stringContaining(`\`${id}\``) }
    await expect(follow(id, null, other).next()).rejects.toMatchObject(missing)
    await vi.advanceTimersByTimeAsync(RETENTION_MS)
    await expect(follow(id).next()).rejects.toMatchObject(missing)
    await expect(follow('strm_none').next()).rejects.toMatchObject({ code: 'not_found' })
  })

  it('requires the scope `inference`', async () => {
    const { follow } = world([])
    await expect(follow('strm_none', null, createRequestContext({ ...somebody, scopes: [] })).next()).rejects.toMatchObject({
      code: 'permission_denied',
    })
  })

  it('continues after a follower was refused, and still stops if nobody else follows', async () => {
    const { streams, open, follow, billing } = world([...stream(9).slice(0, 5), 'wait'])
    const events = open()
    const [{ id, cursor }] = (await takeEvents(events, 1)) as [FollowedChatEvent]
    await events.return!()
    await vi.advanceTimersByTimeAsync(GRACE_MS - 1)
    // A client that ends its subscription would end the call. 52 of them: a refused one occupies no slot.
    const context = { ...createRequestContext(), isCut: () => false }
    for (let i = 0; i < 13; i++) {
      for (const after of ['x', '', '-1', '1000'])
        await expect(streams.follow(context, id, after).next()).rejects.toMatchObject({ code: 'invalid_request', param: 'after' })
    }
    expect(billing.openHolds).toBe(1)
    const again = follow(id, cursor)
    expect(textOf(await takeEvents(again, 4))).toBe('w1 w2 w3 w4 ')
    await again.return!()
    await vi.advanceTimersByTimeAsync(GRACE_MS - 1)
    await expect(follow(id, 'x').next()).rejects.toMatchObject({ code: 'invalid_request' })
    expect(billing.openHolds).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    await vi.waitFor(() => expect(billing.openHolds).toBe(0))
  })

  it('continues after a follower came too late for its cursor', async () => {
    const { streams, follow } = world([])
    const events = streams.openRun({ ...createRequestContext(), isCut }, {}, () => largeEvents(12, 'waits'))
    const [{ id }] = (await takeEvents(events, 10)) as [FollowedChatEvent]
    await events.return!()
    const context = { ...createRequestContext(), isCut: () => false }
    await expect(streams.follow(context, id, '1').next()).rejects.toMatchObject({ code: 'invalid_request', param: 'after' })
    expect(textOf(await takeEvents(follow(id, '10'), 2))).toBe('LL')
  })

  it('allows 50 followers per key, and tells another to wait', async () => {
    const { open, follow } = world([...stream(9).slice(0, 1), 'wait'])
    const [{ id }] = (await takeEvents(open(), 1)) as [FollowedChatEvent]
    const followers = Array.from({ length: 50 }, () => follow(id))
    for (const follower of followers) await takeEvents(follower, 1)
    await expect(follow(id).next()).rejects.toMatchObject({ code: 'rate_limit_exceeded', retryAfterMs: 1_000 })
    await followers[0]!.return!()
    expect(await takeEvents(follow(id), 1)).toHaveLength(1)
  })
})

describe('Stored stream events', () => {
  const openLarge = ({ streams }: Pick<ReturnType<typeof world>, 'streams'>, pieces: number, context = createRequestContext()) =>
    streams.openRun({ ...context, isCut }, {}, () => largeEvents(pieces, 'ends'))

  it('are limited to 8 MiB each: older events are dropped, and the rest can be followed', async () => {
    const buffered = world([])
    const all = await rest(openLarge(buffered, 12))
    const { id } = all[0]!
    await expect(buffered.follow(id).next()).rejects.toMatchObject({ code: 'invalid_request', param: 'after' })
    expect(textOf(await rest(buffered.follow(id, '9')))).toBe('LLL')
  })

  it('pause a call without a follower at the limit, and nothing is lost', async () => {
    const full = world([])
    const events = openLarge(full, 20)
    const [{ id, cursor }] = (await takeEvents(events, 1)) as [FollowedChatEvent]
    await events.return!()
    await vi.advanceTimersByTimeAsync(GRACE_MS - 1)
    expect(textOf(await rest(full.follow(id, cursor)))).toBe('L'.repeat(19))
  })

  it('are limited to 16 MiB per organization: ended streams are dropped first, the oldest first', async () => {
    const buffered = world([])
    const ids: string[] = []
    for (let i = 0; i < 4; i++) ids.push((await rest(openLarge(buffered, 6)))[0]!.id)
    await rest(openLarge(buffered, 6, createRequestContext({ ...somebody, apiKeyId: 'key_b', organizationId: 'org_b' })))
    for (const id of ids.slice(0, 2)) await expect(buffered.follow(id).next()).rejects.toMatchObject({ code: 'not_found' })
    for (const id of ids.slice(2)) expect(textOf(await rest(buffered.follow(id)))).toBe('L'.repeat(6))
  })

  it('are dropped from memory when others need the room, even for slow followers', async () => {
    const { streams, follow } = world([])
    const first = weakly(await rest(openLarge({ streams }, 6)))
    const [{ id }] = (await rest(openLarge({ streams }, 6))) as [FollowedChatEvent]
    const slow = follow(id)
    await takeEvents(slow, 1)
    for (let i = 0; i < 3; i++) await rest(openLarge({ streams }, 6))
    await expect(slow.next()).rejects.toMatchObject({ code: 'invalid_request', param: 'after' })
    await vi.waitFor(() => expect(isGone(first)).toBe(true), { timeout: 10_000 })
    // Two streams are left, each with the timer that removes it.
    expect(vi.getTimerCount()).toBe(2)
  })

  it('contain only events after the end, not the request', async () => {
    const { streams, follow } = world([])
    const chat = async () => {
      const messages = [LARGE]
      const source = Object.assign(largeEvents(1, 'ends'), { messages })
      const [{ id }] = (await rest(streams.openRun({ ...createRequestContext(), isCut }, {}, () => source))) as [FollowedChatEvent]
      return { id, messages: new WeakRef(messages) }
    }
    const { id, messages } = await chat()
    await vi.waitFor(() => expect(isGone(messages)).toBe(true), { timeout: 10_000 })
    expect(textOf(await rest(follow(id)))).toBe('L')
  })

  it('include at least the newest event: a new stream continues when others fill the memory', async () => {
    const { streams, follow } = world([])
    const openLive = (pieces: number) => streams.openRun({ ...createRequestContext(), isCut }, {}, () => largeEvents(pieces, 'waits'))
    for (let i = 0; i < 3; i++) await takeEvents(openLive(7), 7)
    const late = openLive(4)
    const [{ id, cursor }] = (await takeEvents(late, 1)) as [FollowedChatEvent]
    expect(textOf(await takeEvents(late, 1))).toBe('L')
    await late.return!()
    expect(textOf(await takeEvents(follow(id, cursor), 3))).toBe('LLL')
  })

  it('include all of a short stream while long ones fill the memory: the longest loses its first half', async () => {
    const { streams, follow } = world([])
    const openLive = (pieces: number) => streams.openRun({ ...createRequestContext(), isCut }, {}, () => largeEvents(pieces, 'waits'))
    const long = openLive(8)
    const [{ id: longest }] = (await takeEvents(long, 7)) as [FollowedChatEvent]
    const [{ id: other }] = (await takeEvents(openLive(6), 6)) as [FollowedChatEvent]
    const [{ id: short }] = (await takeEvents(openLive(4), 4)) as [FollowedChatEvent]
    expect(textOf(await takeEvents(follow(short), 4))).toBe('LLLL')
    expect(textOf(await takeEvents(follow(other), 6))).toBe('L'.repeat(6))
    await expect(follow(longest).next()).rejects.toMatchObject({ code: 'invalid_request', param: 'after' })
    expect(textOf(await takeEvents(follow(longest, '4'), 3))).toBe('LLL')
    expect(textOf(await takeEvents(long, 1))).toBe('L')
  })

  it('remain after expiry for a current reader', async () => {
    const { streams, follow } = world([])
    const [{ id }] = (await rest(openLarge({ streams }, 3))) as [FollowedChatEvent]
    const slow = follow(id)
    await takeEvents(slow, 1)
    await vi.advanceTimersByTimeAsync(RETENTION_MS * 2)
    expect(textOf(await rest(slow))).toBe('LL')
    await vi.advanceTimersByTimeAsync(RETENTION_MS)
    await expect(follow(id).next()).rejects.toMatchObject({ code: 'not_found' })
  })
})

describe('Stream repeated with the same idempotency key', () => {
  it('joins the call in progress from its start, and pays nothing', async () => {
    const { open, billing, far } = world([...stream(9).slice(0, 3), 'wait'])
    const first = open(createRequestContext(), 'again')
    await takeEvents(first, 2)
    const second = open(createRequestContext(), 'again')
    const joined = await takeEvents(second, 3)
    expect(textOf(joined)).toBe('w0 w1 w2 ')
    expect(joined.every(({ replayed }) => replayed)).toBe(true)
    await first.return!()
    await second.return!()
    await vi.advanceTimersByTimeAsync(GRACE_MS * 2)
    expect([far.chats, billing.holds.size, billing.openHolds]).toEqual([1, 1, 1])
  })

  it('has the same chunks after its end, and is not stored itself', async () => {
    const { open, follow, far } = world([...stream(4), [usageChunk(20, 4)]])
    const first = await rest(open(createRequestContext(), 'again'))
    for (let i = 0; i < 3; i++) {
      const replay = await rest(open(createRequestContext(), 'again'))
      expect(replay.map(({ chunks }) => chunks)).toEqual(first.map(({ chunks }) => chunks))
      expect(replay.map(({ cursor }) => cursor)).toEqual(first.map(({ cursor }) => cursor))
      await expect(follow(replay[0]!.id).next()).rejects.toMatchObject({ code: 'not_found' })
    }
    expect(await rest(follow(first[0]!.id))).toEqual(first)
    expect([far.chats, vi.getTimerCount()]).toEqual([1, 1])
  })

  it('for a run of an agent can be followed until the run ends', async () => {
    const { streams, follow } = world([])
    const ending = Promise.withResolvers<void>()
    async function* replayed(): AsyncGenerator<SourceEvent, undefined> {
      for await (const event of largeEvents(3, 'ends')) yield { ...event, replayed: true }
      await ending.promise
      return undefined
    }
    const events = streams.openRun({ ...createRequestContext(), isCut }, { idempotencyKey: 'again' }, replayed)
    const [{ id, cursor }] = (await takeEvents(events, 1)) as [FollowedChatEvent]
    await events.return!()
    await vi.advanceTimersByTimeAsync(GRACE_MS)
    const again = follow(id, cursor)
    expect(textOf(await takeEvents(again, 2))).toBe('LL')
    ending.resolve()
    expect(await rest(again)).toEqual([])
    await expect(follow(id).next()).rejects.toMatchObject({ code: 'not_found' })
  })

  it('leaves room for paid streams', async () => {
    const { streams, follow } = world([])
    async function* replayed(): AsyncGenerator<SourceEvent, undefined> {
      for await (const event of largeEvents(6, 'waits')) yield { ...event, replayed: true }
      return undefined
    }
    const charged = await rest(streams.openRun({ ...createRequestContext(), isCut }, {}, () => largeEvents(6, 'ends')))
    for (let i = 0; i < 3; i++) await takeEvents(streams.openRun({ ...createRequestContext(), isCut }, {}, replayed), 6)
    expect(await rest(follow(charged[0]!.id))).toEqual(charged)
  })

  it('refuses a repeat with a later retry when the start is no longer stored', async () => {
    const { streams, open } = world([])
    const call = { operation: 'chat_completion_stream', request, idempotencyKey: 'again' } as const
    await takeEvents(
      streams.open(createRequestContext(), call, () => largeEvents(12, 'waits')),
      12,
    )
    await expect(open(createRequestContext(), 'again').next()).rejects.toMatchObject({ code: 'idempotency_conflict', shouldRetry: true })
  })
})
