import { BSON, MongoServerError } from 'mongodb'
import { pino } from 'pino'
import { expect, it, onTestFinished } from 'vitest'
import { openMongoDocumentStore } from '../../../../test/support/engines/open-mongodb.ts'
import { playMongo, type Reply } from '../../../../test/support/engines/scripted-mongodb.ts'
import type { CollectionSpec } from '../../ports/document-store.ts'
import { ResilientClient } from './resilient-client.ts'

/** Replies of servers that the engines of the tests do not send. A fake server sends them to the real driver. */

const SPEC: CollectionSpec = { name: 'items', indexes: [{ fields: ['organizationId'] }] }
const INDEX = { v: 2, key: { organizationId: 1, _id: 1 }, name: 'organizationId_1__id_1' }
const LISTED = { cursor: { id: BSON.Long.ZERO, ns: 'kis.items', firstBatch: [{ v: 2, key: { _id: 1 }, name: '_id_' }, INDEX] } }

/** Opens a store on a server that replies by `replies`. Returns the store with its log. */
async function openOn(replies: Readonly<Record<string, Reply | (() => Promise<Reply>)>>, hello?: Reply) {
  const server = await playMongo((command) => {
    const reply = replies[command]
    return typeof reply === 'function' ? reply() : reply
  }, hello)
  const lines: { readonly level: number; readonly msg: string }[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const store = await openMongoDocumentStore({ url: server.url, database: 'kis', log })
  onTestFinished(async () => {
    await store[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  return { store, commands: server.commands, lines }
}

const failure = (code: number, errmsg = 'played') => ({ ok: 0, code, codeName: 'Played', errmsg })

it.each([24, 43, 46, 112, 150, 175, 202, 276, 285, 365, 384, 462, 11601])(
  'treats code %i as an outage, for reads and writes',
  async (code) => {
    const { store } = await openOn({ find: failure(code), findAndModify: failure(code) })
    const items = store.collection(SPEC)
    for (const call of [items.find({ organizationId: 'a' }, { limit: 1 }), items.findOneAndUpdate({ _id: 'a' }, { $set: { n: 1 } })])
      await expect(call).rejects.toMatchObject({ code: 'service_unavailable', shouldRetry: true, cause: { code } })
  },
)

it.each(['listed', 'new'])('waits for an index that is still being built: %s', async (state) => {
  const build = Promise.withResolvers<Reply>()
  const { store, commands } = await openOn({ ...(state === 'listed' && { listIndexes: LISTED }), createIndexes: () => build.promise })
  const read = store.collection(SPEC).find({ organizationId: 'a' }, { limit: 1 })
  const ready = store.ping(AbortSignal.timeout(30_000))
  await expect(store.ping(AbortSignal.timeout(100))).rejects.toThrow(/timeout/)
  expect(commands.filter((command) => command === 'createIndexes' || command === 'find')).toEqual(['createIndexes'])
  build.resolve({})
  expect(await read).toEqual([])
  await ready
})

it('allows an index more time than any other reply', async () => {
  await using server = await playMongo(async () => {
    await new Promise((resolve) => setTimeout(resolve, 500))
    return undefined
  })
  await using client = new ResilientClient(server.url, { socketTimeoutMS: 100, heartbeatLimitMs: 60_000, retryReads: false })
  await expect(client.db('kis').collection('items').findOne()).rejects.toThrow(/timed out/)
  expect(await client.patiently((patient) => patient.db('kis').createIndex('items', { n: 1 }))).toBe('n_1')
})

it('ends the wait for an index when it is closed', async () => {
  const { store, commands } = await openOn({ createIndexes: () => new Promise(() => undefined) })
  const read = expect(store.collection(SPEC).findOne({ organizationId: 'a' })).rejects.toMatchObject({ code: 'service_unavailable' })
  while (!commands.includes('createIndexes')) await new Promise((resolve) => setTimeout(resolve, 5))
  await store[Symbol.asyncDispose]()
  await read
})

it('reports that an index is missing, which was dropped or is still being built', async () => {
  const { store } = await openOn({
    find: failure(2, 'planner returned error :: caused by :: hint provided does not correspond to an existing index'),
  })
  await expect(store.collection(SPEC).findOne({ organizationId: 'a' })).rejects.toMatchObject({
    code: 'service_unavailable',
    message: 'The document store is unavailable at the moment: an index is missing or still being built.',
  })
})

it('passes on another bad value', async () => {
  const { store } = await openOn({ find: failure(2) })
  await expect(store.collection(SPEC).findOne({ organizationId: 'a' })).rejects.toBeInstanceOf(MongoServerError)
})

it.each([
  { server: 'a standalone server', hello: { setName: undefined }, warns: true },
  { server: 'a member of a replica set', hello: {}, warns: false },
  { server: 'a router of shards', hello: { setName: undefined, msg: 'isdbgrid' }, warns: false },
])('warns of the limits of a standalone server, and of no other: $server', async ({ hello, warns }) => {
  const { lines } = await openOn({}, hello)
  const warnings = lines.filter(({ level }) => level > 30).map(({ msg }) => msg)
  expect(warnings).toEqual(warns ? [expect.stringMatching(/standalone server.*its disk is lost.*takes over.*not repeated/)] : [])
})

it.each([
  { form: 'a date', localTime: new Date(1_700_000_000_000) },
  { form: 'a number', localTime: 1_700_000_000_000 },
  { form: 'a whole number of 64 bits', localTime: BSON.Long.fromNumber(1_700_000_000_000) },
])('reads the clock of the server from $form', async ({ localTime }) => {
  const { store } = await openOn({}, { localTime })
  expect(await store.ping(AbortSignal.timeout(30_000))).toEqual(new Date(1_700_000_000_000))
})
