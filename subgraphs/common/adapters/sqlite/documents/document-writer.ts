import { LRUCache } from 'lru-cache'
import { type CollectionSpec, DuplicateKey } from '../../../ports/document-store.ts'
import { servingFiles } from '../../../process/threads/thread-calls.ts'
import { meets, type Test } from '../../documents/filter.ts'
import { checkIndexed } from '../../documents/spec.ts'
import { encodeDocument, parseDocument, type StoredObject } from '../../documents/stored-value.ts'
import { applyChanges, type Change } from '../../documents/update.ts'
import { findCorruptionAtStart } from '../corruption-at-start.ts'
import { Connection, isUniqueViolation, orFailure } from '../database.ts'
import { Eraser } from '../eraser.ts'
import { GroupCommit } from '../group-commit.ts'
import type { Sql } from './query-sql.ts'
import { DOCUMENT_FILE, nameTable, toSchema } from './tables.ts'

/**
 * The thread that writes the documents of one file. It responds to a write after the commit that includes the write.
 */

/** `_id` and JSON text of a document. */
export type Row = readonly [id: string, text: string]

/** Selects the rows to write. `judged` tests decide which of them qualify. */
export interface Target {
  readonly sql: Sql
  readonly judged: readonly Test[]
}

/**
 * Limit of the writes of one commit, more than usually wait at once. It also limits how long the first write waits for
 * the rest.
 */
const MAX_BATCH = 256

/** The methods that the store calls. Documents are passed as JSON text. */
export type DocumentWriter = ReturnType<typeof writerOver>

function writerOver(connection: Connection, eraser: Eraser) {
  /** Parsed copies of frequently written documents, mostly wallets. */
  const parsed = new LRUCache<string, { readonly text: string; readonly document: StoredObject }>({ max: 64 })

  function insert(spec: CollectionSpec, id: string, text: string): void {
    connection.prepare(`INSERT INTO ${nameTable(spec)} VALUES (?, ?)`).run(id, text)
  }

  function insertFrom(spec: CollectionSpec, seed: StoredObject, changes: readonly Change[]): string {
    applyChanges(seed, changes, true)
    const id = seed._id
    if (typeof id !== 'string' || id === '') throw new TypeError(`an upsert into ${spec.name} names no _id`)
    checkIndexed(spec, seed)
    const text = encodeDocument(seed)
    insert(spec, id, text)
    return text
  }

  /** `seed` is the document that an upsert starts from. */
  function update(spec: CollectionSpec, { sql, judged }: Target, changes: readonly Change[], seed: StoredObject | null): string | null {
    const found = connection.prepare(sql.text).get<Row>(...sql.parameters)
    if (!found) return seed && insertFrom(spec, seed, changes)
    const [id, before] = found
    const cached = parsed.get(id)
    const document = cached?.text === before ? cached.document : parseDocument(before)
    if (!meets(document, judged)) {
      parsed.set(id, { text: before, document })
      if (seed) throw duplicateIn(spec)
      return null
    }
    // The cached document is invalid until all changes are applied.
    parsed.delete(id)
    applyChanges(document, changes, false)
    checkIndexed(spec, document)
    const after = encodeDocument(document)
    if (after !== before) connection.prepare(`UPDATE ${nameTable(spec)} SET doc = ? WHERE id = ?`).run(after, id)
    parsed.set(id, { text: after, document })
    return after
  }

  /** Deletes the first rows of the target, and returns them. */
  function remove(spec: CollectionSpec, { sql, judged }: Target, limit?: number): readonly Row[] {
    const found = connection.prepare(sql.text).all<Row>(...sql.parameters)
    const rows = found.filter(([, text]) => judged.length === 0 || meets(parseDocument(text), judged)).slice(0, limit)
    const deletion = connection.prepare(`DELETE FROM ${nameTable(spec)} WHERE id = ?`)
    for (const [id] of rows) deletion.run(id)
    if (rows.length > 0) eraser.deleted()
    return rows
  }

  return {
    createCollection(spec: CollectionSpec): void {
      for (const statement of toSchema(spec)) connection.database.exec(statement)
    },

    insert,

    insertMissing(spec: CollectionSpec, rows: readonly Row[]): number {
      const insertion = connection.prepare(`INSERT INTO ${nameTable(spec)} VALUES (?, ?) ON CONFLICT (id) DO NOTHING`)
      let inserted = 0
      let violation: unknown
      for (const [id, text] of rows) {
        try {
          inserted += Number(insertion.run(id, text).changes)
        } catch (error) {
          // Each document is a separate write: if a unique key of one is taken, the rest are still inserted.
          if (!isUniqueViolation(error)) throw error
          violation = error
        }
      }
      if (violation) throw violation
      return inserted
    },

    update,

    /** Updates without an upsert and without returning the document. */
    change: (spec: CollectionSpec, target: Target, changes: readonly Change[]) => update(spec, target, changes, null) !== null,
    deleteOne: (spec: CollectionSpec, target: Target) => remove(spec, target, 1)[0]?.[1] ?? null,
    deleteMany: (spec: CollectionSpec, target: Target) => remove(spec, target).length,
  }
}

/** `data` is the collection's name. The other thread recreates the error from it. */
function duplicateIn({ name }: CollectionSpec, cause?: unknown): DuplicateKey {
  return Object.assign(new DuplicateKey(name, cause), { data: name })
}

type Write = (spec: CollectionSpec, ...args: never[]) => unknown

function orDuplicate<T>(spec: CollectionSpec, write: () => T): T {
  try {
    return write()
  } catch (error) {
    throw isUniqueViolation(error) ? duplicateIn(spec, error) : error
  }
}

export const call = servingFiles((file) => {
  const connection = new Connection(file, { readOnly: false })
  const { database } = connection
  const commits = new GroupCommit(database)
  const eraser = new Eraser(database, () => commits.isBroken)
  const writes = Object.entries(writerOver(connection, eraser)).map(([name, write]: [string, Write]): [string, Write] => [
    name,
    (spec, ...args) => commits.write(() => orDuplicate(spec, () => write(spec, ...args))),
  ])
  return {
    handlers: {
      ...Object.fromEntries(writes),
      /** Rewrites the existing version, because only a write shows that the disk is full. */
      ping: () => commits.write(() => database.exec(`PRAGMA user_version=${DOCUMENT_FILE.schemaVersion}`)),
      corruptionSeenAtStart: () => orFailure(() => findCorruptionAtStart(database, file)),
    },
    batch: { maxCalls: MAX_BATCH, around: (run) => commits.batch(run) },
    close() {
      eraser[Symbol.dispose]()
      connection[Symbol.dispose]()
    },
  }
})
