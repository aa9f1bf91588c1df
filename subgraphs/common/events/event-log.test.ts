import { expect, it } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import { MemoryDocumentStore } from '../../../test/support/memory-document-store.ts'
import type { DocumentCollection } from '../ports/document-store.ts'
import { silentLog } from '../process/log.ts'
import {
  EVENT_HEADS,
  EVENTS,
  type EventCollections,
  EventLog,
  type EventRecord,
  OUTBOX_INDEX,
  reportChange,
  reportCreation,
  type Telling,
} from './event-log.ts'

interface Thing extends Telling {
  readonly value: number
}

/** Returns one store, and a process's log on it. */
function world() {
  const store = new MemoryDocumentStore()
  const things = store.collection<Thing>({ name: 'things', indexes: [OUTBOX_INDEX] })
  const collections: EventCollections = { events: store.collection(EVENTS), eventHeads: store.collection(EVENT_HEADS) }
  let at = 0
  return {
    things,
    collections,
    openLog: (parts: Partial<EventCollections> = {}, records: DocumentCollection<Thing> = things) =>
      new EventLog<Thing>([records], { ...collections, ...parts }, silentLog),
    create: (id: string, organizationId = 'org_a') =>
      things.insertOne({ _id: id, organizationId, value: 0, ...reportCreation(organizationId, new Date(++at), { value: 0 }) }),
    change: async (id: string, value: number, organizationId = 'org_a') => {
      const { $set, $push } = reportChange(organizationId, new Date(++at), { value })
      await things.findOneAndUpdate({ _id: id }, { $set: { value, ...$set }, $push })
    },
  }
}

async function takeEvents(events: AsyncIterator<EventRecord, undefined>, count: number): Promise<EventRecord[]> {
  const received: EventRecord[] = []
  while (received.length < count) received.push((await events.next()).value!)
  return received
}

const summary = (events: readonly EventRecord[]) => events.map(({ sequence, subject, data }) => [sequence, subject, data.value])

it('yields the changes of an organization in one order, from now on or after a cursor', async () => {
  const { openLog, create, change } = world()
  const log = openLog()
  await create('a')
  await change('a', 1)
  await log.drain('org_a')
  const fromNow = log.follow('org_a', null)
  const first = fromNow.next()
  await create('b')
  await create('other', 'org_b')
  await change('b', 1)
  await log.drain('org_a')
  expect(summary([(await first).value!, ...(await takeEvents(fromNow, 1))])).toEqual([
    [3, 'b', 0],
    [4, 'b', 1],
  ])
  expect(summary(await takeEvents(log.follow('org_a', '1'), 3)).map(([sequence]) => sequence)).toEqual([2, 3, 4])
  await fromNow.return?.()
})

it('ends a waiting follower immediately', async () => {
  const { openLog } = world()
  const events = openLog().follow('org_a', null)
  const next = events.next()
  await events.return?.()
  expect(await next).toEqual({ done: true, value: undefined })
})

it('refuses an invalid cursor', async () => {
  const { openLog, create } = world()
  const log = openLog()
  await create('a')
  await log.drain('org_a')
  for (const cursor of ['x', '-1', '2', '1.5', ''])
    await expect(log.follow('org_a', cursor).next()).rejects.toMatchObject({ code: 'invalid_request', param: 'after' })
})

it('loses and repeats nothing, at whichever call a process dies', async () => {
  for (const effect of ['failed', 'lost answer'] as const) {
    for (let last = 1; ; last++) {
      const { openLog, things, collections, create, change } = world()
      await create('a')
      await create('b')
      await change('a', 1)
      let calls = 0
      const dying = <T extends object>(port: T): T =>
        new Proxy(port, {
          get:
            (target, key) =>
            async (...args: unknown[]) => {
              const call = ++calls
              if (call > last || (call === last && effect === 'failed')) throw new Error('dead')
              const result = await (Reflect.get(target, key, target) as (...args: unknown[]) => unknown).apply(target, args)
              if (call === last) throw new Error('dead')
              return result
            },
        })
      const dead = openLog({ events: dying(collections.events), eventHeads: dying(collections.eventHeads) }, dying(things))
      const survived = await dead.drain('org_a').then(
        () => true,
        () => false,
      )
      await change('b', 1)
      const log = openLog()
      await log.sweep()
      expect(summary(await takeEvents(log.follow('org_a', '0'), 4))).toEqual([
        [1, 'a', 0],
        [2, 'b', 0],
        [3, 'a', 1],
        [4, 'b', 1],
      ])
      expect(await collections.events.countDocuments({ organizationId: 'org_a' })).toBe(4)
      expect(await things.findOne({ _id: 'a' })).toMatchObject({ outbox: [] })
      if (survived) break
    }
  }
})

it('processes that copy concurrently produce one order for followers of all of them', async () => {
  const { openLog, create, change } = world()
  const logs = [openLog(), openLog(), openLog()]
  const seen: EventRecord[][] = logs.map(() => [])
  const followers = logs.map((log) => log.follow('org_a', '0'))
  const reading = followers.map(async (events, i) => {
    for await (const event of events) seen[i]!.push(event)
  })
  const subjects = ['a', 'b', 'c', 'd']
  for (const id of subjects) await create(id)
  await Promise.all(
    subjects.map(async (id) => {
      for (let value = 1; value <= 50; value++) {
        await change(id, value)
        logs[value % 3]!.kick('org_a')
        if (value % 7 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
    }),
  )
  await Promise.all(logs.map((log) => log.drain('org_a')))
  await eventually(() => seen.every(({ length }) => length === 204))
  for (const events of seen) {
    expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 204 }, (_, i) => i + 1))
    for (const id of subjects)
      expect(events.filter(({ subject }) => subject === id).map(({ data }) => data.value)).toEqual(Array.from({ length: 51 }, (_, i) => i))
  }
  await Promise.all(followers.map((events) => events.return?.()))
  await Promise.all(reading)
})

it('deletes the oldest events above its limit, and says so to those who request them', async () => {
  const { openLog, create, change, collections } = world()
  const log = openLog()
  await create('a')
  await log.drain('org_a')
  // The head claims 100,000 later events.
  await collections.eventHeads.findOneAndUpdate({ _id: 'org_a' }, { $set: { sequence: 101_000 } })
  await change('a', 1)
  await log.drain('org_a')
  await expect(log.follow('org_a', '5').next()).rejects.toMatchObject({ code: 'invalid_request', param: 'after' })
  expect(summary(await takeEvents(log.follow('org_a', '101000'), 1))).toEqual([[101_001, 'a', 1]])
  expect(await collections.events.countDocuments({ organizationId: 'org_a' })).toBe(1)
})

it('reports the end of each log, and the start that misses nothing since a time', async () => {
  const { openLog, create, things } = world()
  const log = openLog()
  const day = 86_400_000
  for (let i = 1; i <= 250; i++) {
    await things.insertOne({ _id: `t${i}`, organizationId: 'org_a', value: i, ...reportCreation('org_a', new Date(i * day), { value: i }) })
    if (i % 50 === 0) await log.drain('org_a')
  }
  await create('b', 'org_b')
  await log.drain('org_b')
  expect([...(await log.ends(['org_a', 'org_b', 'org_c']))]).toEqual([
    ['org_a', 250],
    ['org_b', 1],
  ])
  for (const [since, position] of [
    [0, 0],
    [1, 0],
    [120, 119],
    [250, 249],
    [400, 250],
  ] as const)
    expect(await log.positionBefore('org_a', new Date(since * day))).toBe(position)
  expect(await log.positionBefore('org_c', new Date(0))).toBe(0)
  expect((await log.page('org_a', 200)).map(({ sequence }) => sequence)).toEqual(Array.from({ length: 50 }, (_, i) => 201 + i))
  expect(await log.page('org_a', 250)).toEqual([])
  expect(await log.page('org_c', 0)).toEqual([])
})

it('skips deleted events when a page is requested', async () => {
  const { openLog, create, change, collections } = world()
  const log = openLog()
  await create('a')
  for (let value = 1; value <= 4; value++) await change('a', value)
  await log.drain('org_a')
  await collections.eventHeads.findOneAndUpdate({ _id: 'org_a' }, { $set: { forgotten: 3 } })
  await collections.events.deleteMany({ organizationId: 'org_a', sequence: { $lte: 3 } })
  expect((await log.page('org_a', 1)).map(({ sequence }) => sequence)).toEqual([4, 5])
  expect(await log.positionBefore('org_a', new Date(0))).toBe(3)
})

it('returns no ends for no organizations', async () => {
  expect(await world().openLog().ends([])).toEqual(new Map())
})
