import { BSON } from 'mongodb'
import { expect, it, onTestFinished } from 'vitest'
import { playMongo, type Reply } from '../../../../test/support/engines/scripted-mongodb.ts'
import { blobsAt } from '../../../knowledge/adapters/mongodb/blob-store.ts'
import type { CollectionSpec } from '../../ports/document-store.ts'
import { connectMongo } from './connection.ts'
import { documentsAt } from './document-store.ts'
import { startSnapshot } from './snapshot.ts'

/** Replies of a replica set and of servers without snapshots. A fake server sends them to the real driver. */

const SPEC: CollectionSpec = { name: 'items', indexes: [] }
const SECONDS = 1_700_000_000
const AT = new BSON.Timestamp({ t: SECONDS, i: 7 })

const found = (documents: readonly object[], more: object = {}): Reply => ({
  cursor: { id: BSON.Long.ZERO, ns: 'kis.items', firstBatch: documents, ...more },
})

/** Connects to a server that replies to reads by `reply`. Returns the client with the recorded commands. */
async function connectTo(reply: (command: string, body: BSON.Document) => Reply | undefined) {
  const commands: BSON.Document[] = []
  const server = await playMongo((command, body) => {
    if (command === 'find' || command === 'aggregate') commands.push(body)
    return reply(command, body)
  })
  const client = await connectMongo({ url: server.url, database: 'kis' })
  onTestFinished(async () => {
    await client.close()
    await server[Symbol.asyncDispose]()
  })
  return { client, commands }
}

it('reads documents and bytes of all databases at the time of its first read', async () => {
  const file = new BSON.ObjectId()
  const { client, commands } = await connectTo((_command, { find, aggregate, readConcern }) => {
    if (find === 'starts') return found([], { atClusterTime: AT })
    if (aggregate) return found([{ n: 1 }])
    if (find === 'contents') return found([{ _id: 'key', file, size: 5, uploads: [] }])
    if (find === 'contents.chunks')
      return found([{ data: new BSON.Binary(Buffer.from('abc')) }, { data: new BSON.Binary(Buffer.from('de')) }])
    return found([{ _id: String(readConcern?.level) }])
  })
  const snapshot = (await startSnapshot(client, 'kis'))!
  expect(snapshot.createdAt).toEqual(new Date(1_000 * SECONDS))
  for (const database of ['one', 'other']) {
    const items = documentsAt(snapshot, database).collection(SPEC)
    expect(await items.findOne({ _id: 'a' })).toEqual({ _id: 'snapshot' })
    expect(await items.find({}, { limit: 2 })).toEqual([{ _id: 'snapshot' }])
    expect(await items.countDocuments({}, { limit: 1 })).toBe(1)
  }
  const blobs = blobsAt(snapshot, 'bytes')
  expect(Buffer.from((await blobs.get('key'))!).toString()).toBe('abcde')
  expect(Buffer.from((await blobs.get('key', { offset: 1, length: 3 }))!).toString()).toBe('bcd')
  expect(await blobs.list('', 10)).toEqual([{ key: 'key', sizeBytes: 5 }])
  const [first, ...rest] = commands
  expect(first).toMatchObject({ readConcern: { level: 'snapshot' } })
  expect(first!.readConcern.atClusterTime).toBeUndefined()
  expect(new Set(rest.map(({ $db }) => $db))).toEqual(new Set(['one', 'other', 'bytes']))
  for (const { readConcern, lsid } of rest) {
    expect(readConcern).toEqual({ level: 'snapshot', atClusterTime: AT })
    expect(lsid).toEqual(first!.lsid)
  }
})

it('names the parameter that extends the retention, when the server has discarded the snapshot', async () => {
  const failure = { ok: 0, code: 239, codeName: 'SnapshotTooOld', errmsg: 'Read timestamp is older than the oldest available timestamp' }
  const { client } = await connectTo((command, { find }) =>
    find === 'starts' ? found([], { atClusterTime: AT }) : command === 'find' ? failure : undefined,
  )
  const snapshot = (await startSnapshot(client, 'kis'))!
  const why = /discarded the snapshot.*setParameter: 1, minSnapshotHistoryWindowInSeconds: 14400/
  await expect(documentsAt(snapshot, 'kis').collection(SPEC).find({}, { limit: 1 })).rejects.toThrow(why)
  await expect(blobsAt(snapshot, 'kis').get('key')).rejects.toThrow(why)
})

it.each([
  {
    server: 'a standalone server',
    reply: { ok: 0, code: 123, codeName: 'NotAReplicaSet', errmsg: 'node needs to be a replica set member' },
  },
  { server: 'a server without this level', reply: { ok: 0, code: 72, codeName: 'InvalidOptions', errmsg: 'snapshot is not supported' } },
  { server: 'a server that passes over the level', reply: found([]) },
])('detects that $server supports no snapshot', async ({ reply }) => {
  const { client } = await connectTo((command) => (command === 'find' ? reply : undefined))
  expect(await startSnapshot(client, 'kis')).toBe(null)
})

it('does not treat an outage as a lack of support', async () => {
  const { client } = await connectTo((command) => (command === 'find' ? { ok: 0, code: 189, errmsg: 'stepped down' } : undefined))
  await expect(startSnapshot(client, 'kis')).rejects.toMatchObject({ code: 'service_unavailable' })
})
