import { isDeepStrictEqual } from 'node:util'
import type { Db } from 'mongodb'
import type { CollectionSpec, DocumentCollection, DocumentStore, StoredDocument } from '../../ports/document-store.ts'
import type { Log } from '../../process/log.ts'
import { Unfit } from '../../process/opening.ts'
import { untilAborted } from '../../process/until-aborted.ts'
import { checkSpec } from '../documents/spec.ts'
import { OPERATION_LIMIT_MS, tryToWrite } from './connection.ts'
import { MongoCollection } from './document-collection.ts'
import { isDiskFull, translated } from './failures.ts'
import { checkSparse, createIndexes } from './indexes.ts'
import { LongReads } from './long-reads.ts'
import type { ResilientClient } from './resilient-client.ts'
import { databaseAt, type MongoSnapshot } from './snapshot.ts'

const WHAT = 'The document store'
const STANDALONE =
  'MongoDB is a standalone server: if its disk is lost, so is every acknowledged write; no other server takes over when it fails; and a write whose connection breaks is not repeated. Run it as a replica set'

/** Logs where documents are, with a warning about a server that is alone. */
export async function announce(client: ResilientClient, database: string, log: Log): Promise<void> {
  const { setName, msg } = await client.withTimeout(() => client.db(database).command({ hello: 1 }), OPERATION_LIMIT_MS)
  log.info({ database }, 'documents are in MongoDB')
  // `isdbgrid`: a router of shards.
  if (setName === undefined && msg !== 'isdbgrid') log.warn({ database }, STANDALONE)
}

/**
 * The documents of a database (4.4 or newer; `w: majority` is only useful with a replica set). Collections and indexes are
 * created and checked before the first use of any, so a `ping` after the declarations reports every wrong index.
 * Disposing them ends `meanwhile`, and closes the client.
 */
export function documentsOf(client: ResilientClient, database: string, meanwhile?: AsyncDisposable): DocumentStore {
  return new MongoDocumentStore(client, client.db(database), meanwhile)
}

/** The documents of a database at the moment of a snapshot, to read. Its collections and indexes were made before. */
export function documentsAt(snapshot: MongoSnapshot, database: string): DocumentStore {
  return new MongoDocumentStore(snapshot.client, databaseAt(snapshot, database), undefined, snapshot)
}

class MongoDocumentStore implements DocumentStore {
  readonly #client: ResilientClient
  readonly #db: Db
  readonly #meanwhile: AsyncDisposable | undefined
  readonly #snapshot: MongoSnapshot | undefined
  readonly #longReads = new LongReads()
  readonly #collections = new Map<string, MongoCollection<StoredDocument>>()
  /** Declared collections whose indexes have not been checked. */
  readonly #unprepared = new Set<CollectionSpec>()
  #preparing: Promise<void> | undefined

  constructor(client: ResilientClient, db: Db, meanwhile?: AsyncDisposable, snapshot?: MongoSnapshot) {
    this.#client = client
    this.#db = db
    this.#meanwhile = meanwhile
    this.#snapshot = snapshot
  }

  collection<T extends StoredDocument>(spec: CollectionSpec): DocumentCollection<T> {
    let collection = this.#collections.get(spec.name)
    if (!collection) {
      checkSpec(spec)
      checkSparse(spec)
      this.#unprepared.add(spec)
      collection = new MongoCollection(spec, this.#db.collection(spec.name), {
        what: WHAT,
        client: this.#client,
        longReads: this.#longReads,
        session: this.#snapshot?.session,
        ready: () => this.#ready(),
      })
      this.#collections.set(spec.name, collection)
    }
    if (!isDeepStrictEqual(collection.spec, spec)) throw new TypeError(`${spec.name} was declared with other indexes`)
    // The map holds collections of every type; the caller who declares the collection knows its type.
    return collection as unknown as DocumentCollection<T>
  }

  ping(signal: AbortSignal): Promise<Date> {
    return untilAborted(this.#ping(), signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#meanwhile?.[Symbol.asyncDispose]()
    await this.#client.close()
  }

  async #ping(): Promise<Date> {
    await this.#ready()
    try {
      return await this.#client.withTimeout(async () => {
        // Milliseconds since 1970 on some servers.
        const { localTime } = await this.#db.command({ hello: 1 })
        await tryToWrite(this.#client, this.#db.databaseName)
        return new Date(localTime)
      }, OPERATION_LIMIT_MS)
    } catch (error) {
      if (isDiskFull(error)) throw new Unfit([`the disk is full: MongoDB: ${(error as Error).message}`])
      throw translated(error, '', WHAT)
    }
  }

  /** Resolves when every declared collection has its indexes. After a failure the next use tries again. */
  async #ready(): Promise<void> {
    while (this.#unprepared.size > 0) {
      this.#preparing ??= this.#prepare().finally(() => {
        this.#preparing = undefined
      })
      await this.#preparing
    }
  }

  /** @throws {Unfit} an index is wrong or missing; the message names every problem of all collections */
  async #prepare(): Promise<void> {
    const specs = [...this.#unprepared]
    const problems: string[] = []
    await this.#client.patiently(async (client) => {
      const db = client.db(this.#db.databaseName)
      for (const spec of specs) problems.push(...(await createIndexes(db, spec, WHAT)))
    })
    if (problems.length > 0) throw new Unfit(problems.map((problem) => `in the MongoDB database ${this.#db.databaseName} ${problem}`))
    for (const spec of specs) this.#unprepared.delete(spec)
  }
}
