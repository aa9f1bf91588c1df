import { LRUCache } from 'lru-cache'
import { type CollectionSpec, DuplicateKey } from '../../../ports/document-store.ts'
import { servingFiles } from '../../../process/threads/thread-calls.ts'
import { meets, type Test } from '../../documents/filter.ts'
import { checkIndexed } from '../../documents/spec.ts'
import { encodeDocument, parseDocument, type StoredObject } from '../../documents/stored-value.ts'
import { applyChanges, type Change } from '../../documents/update.ts'
import { damageSeenAtStart } from '../damage-at-start.ts'
import { Connection, isUniqueViolation, orFailure } from '../database.ts'
import { Eraser } from '../eraser.ts'
import { GroupCommit } from '../group-commit.ts'
import { DOCUMENT_FILE } from './document-file.ts'
import type { Sql } from './query-sql.ts'
import { nameTable, toSchema } from './tables.ts'

/** The thread that writes the documents of one file. It answers a write after the commit that includes it. */

/** `_id` and JSON text of a document. */
export type Row = readonly [id: string, text: string]

/** Selects the rows to write. `judged` decides which of them qualify. */
export interface Target {
  readonly sql: Sql
  readonly judged: readonly Test[]
}

/** The methods that the store calls. Documents are passed as JSON text. */
export interface DocumentWriter {
  createCollection(spec: CollectionSpec): void
  insert(collection: CollectionSpec, id: string, text: string): void
  insertMissing(collection: CollectionSpec, rows: readonly Row[]): number
  /** `seed` is the document that an upsert starts from. */
  update(collection: CollectionSpec, target: Target, changes: readonly Change[], seed: StoredObject | null): string | null
  /** An update without an upsert, whose caller needs no document. */
  change(collection: CollectionSpec, target: Target, changes: readonly Change[]): boolean
  deleteOne(collection: CollectionSpec, target: Target): string | null
  deleteMany(collection: CollectionSpec, target: Target): number
  ping(): void
}

/** Writes of one commit: more than usually wait at once. It bounds how long the first one waits for the rest. */
const MAX_BATCH = 256

/** The collection's name is the `data` from which the other side of the thread makes the error again. */
function duplicateIn({ name }: CollectionSpec, cause?: unknown): DuplicateKey {
  return Object.assign(new DuplicateKey(name, cause), { data: name })
}

function orDuplicate<T>(collection: CollectionSpec, run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw isUniqueViolation(error) ? duplicateIn(collection, error) : error
  }
}

export const call = servingFiles((file) => {
  const connection = new Connection(file, { readOnly: false })
  const commits = new GroupCommit(connection.database)
  const eraser = new Eraser(connection.database, () => commits.isBroken)
  /** Frequently written documents, mostly wallets, kept parsed between writes. */
  const parsed = new LRUCache<string, { readonly text: string; readonly document: StoredObject }>({ max: 64 })

  function insertRow(collection: CollectionSpec, id: string, text: string): void {
    orDuplicate(collection, () => connection.prepare(`INSERT INTO ${nameTable(collection)} VALUES (?, ?)`).run(id, text))
  }

  function insertFrom(spec: CollectionSpec, seed: StoredObject, changes: readonly Change[]): string {
    applyChanges(seed, changes, true)
    const id = seed._id
    if (typeof id !== 'string' || id === '') throw new TypeError(`an upsert into ${spec.name} names no _id`)
    checkIndexed(spec, seed)
    const text = encodeDocument(seed)
    insertRow(spec, id, text)
    return text
  }

  function readRows({ sql, judged }: Target): readonly Row[] {
    const rows = connection.prepare(sql.text).all<Row>(...sql.parameters)
    return judged.length === 0 ? rows : rows.filter(([, text]) => meets(parseDocument(text), judged))
  }

  function deleteRow(collection: CollectionSpec, id: string): void {
    connection.prepare(`DELETE FROM ${nameTable(collection)} WHERE id = ?`).run(id)
    eraser.deleted()
  }

  const writer: DocumentWriter = {
    createCollection(spec) {
      for (const statement of toSchema(spec)) connection.database.exec(statement)
    },

    insert: insertRow,

    insertMissing(collection, rows) {
      const insert = connection.prepare(`INSERT INTO ${nameTable(collection)} VALUES (?, ?) ON CONFLICT (id) DO NOTHING`)
      let inserted = 0
      let duplicate: DuplicateKey | undefined
      for (const [id, text] of rows) {
        try {
          inserted += Number(insert.run(id, text).changes)
        } catch (error) {
          // Each document is a write of its own: if a unique key of one is taken, the rest are still inserted.
          if (!isUniqueViolation(error)) throw error
          duplicate = duplicateIn(collection, error)
        }
      }
      if (duplicate) throw duplicate
      return inserted
    },

    update(spec, { sql, judged }, changes, seed) {
      const found = connection.prepare(sql.text).get<Row>(...sql.parameters)
      if (!found) return seed && insertFrom(spec, seed, changes)
      const [id, before] = found
      const kept = parsed.get(id)
      const document = kept?.text === before ? kept.document : parseDocument(before)
      if (!meets(document, judged)) {
        parsed.set(id, { text: before, document })
        if (seed) throw duplicateIn(spec)
        return null
      }
      // Until it is whole again.
      parsed.delete(id)
      applyChanges(document, changes, false)
      checkIndexed(spec, document)
      const after = encodeDocument(document)
      const update = connection.prepare(`UPDATE ${nameTable(spec)} SET doc = ? WHERE id = ?`)
      if (after !== before) orDuplicate(spec, () => update.run(after, id))
      parsed.set(id, { text: after, document })
      return after
    },

    change(collection, target, changes) {
      return writer.update(collection, target, changes, null) !== null
    },

    deleteOne(collection, target) {
      const [found] = readRows(target)
      if (!found) return null
      deleteRow(collection, found[0])
      return found[1]
    },

    deleteMany(collection, target) {
      const rows = readRows(target)
      for (const [id] of rows) deleteRow(collection, id)
      return rows.length
    },

    /** Rewrites what exists: only a write shows that the disk is full. */
    ping() {
      connection.database.exec(`PRAGMA user_version=${DOCUMENT_FILE.schemaVersion}`)
    },
  }

  const writes = Object.fromEntries(
    Object.entries(writer).map(([name, handler]: [string, (...args: never[]) => unknown]) => [
      name,
      (...args: never[]) => commits.write(() => handler(...args)),
    ]),
  )
  return {
    handlers: { ...writes, damageSeenAtStart: () => orFailure(() => damageSeenAtStart(connection.database, file)) },
    batch: { maxCalls: MAX_BATCH, around: (run) => commits.batch(run) },
    close() {
      eraser[Symbol.dispose]()
      connection[Symbol.dispose]()
    },
  }
})
