import { findCorruptionAtStart } from '../../../common/adapters/sqlite/corruption-at-start.ts'
import { Connection, orFailure } from '../../../common/adapters/sqlite/database.ts'
import { Eraser } from '../../../common/adapters/sqlite/eraser.ts'
import { GroupCommit } from '../../../common/adapters/sqlite/group-commit.ts'
import { servingFiles } from '../../../common/process/threads/thread-calls.ts'
import { BLOB_FILE, BLOB_SCHEMA, PIECE_BYTES } from './blob-file.ts'

/** The thread that writes the blobs of one file. It responds to a write after the commit. */

/** Maximum writes per commit. A blob is large enough for its own commit, and several would make it long. */
const MAX_BATCH = 1

export const call = servingFiles((file) => {
  const connection = new Connection(file, { readOnly: false })
  connection.database.exec(BLOB_SCHEMA)
  const commits = new GroupCommit(connection.database)
  const eraser = new Eraser(connection.database, () => commits.isBroken)

  function deleteBlob(key: string): void {
    connection.prepare('DELETE FROM piece WHERE blob = (SELECT number FROM blob WHERE key = ?)').run(key)
    const { changes } = connection.prepare('DELETE FROM blob WHERE key = ?').run(key)
    if (changes) eraser.deleted()
  }

  function deleteBlobs(prefix: string): void {
    const keys = connection.prepare('SELECT key FROM blob WHERE key >= ? AND key < ?').all<[string]>(prefix, `${prefix}\u{10ffff}`)
    for (const [key] of keys) deleteBlob(key)
  }

  function putBlob(key: string, bytes: Uint8Array): void {
    deleteBlob(key)
    const { lastInsertRowid: number } = connection.prepare('INSERT INTO blob (key, size) VALUES (?, ?)').run(key, bytes.length)
    const insert = connection.prepare('INSERT INTO piece VALUES (?, ?, ?)')
    for (let position = 0; position * PIECE_BYTES < bytes.length; position++) {
      insert.run(number, position, bytes.subarray(position * PIECE_BYTES, (position + 1) * PIECE_BYTES))
    }
  }

  return {
    handlers: {
      put: (key: string, bytes: Uint8Array) => commits.write(() => putBlob(key, bytes)),
      delete: (key: string) => commits.write(() => deleteBlob(key)),
      deleteAll: (prefix: string) => commits.write(() => deleteBlobs(prefix)),
      /**
       * Responds once the tables exist, which readers need. It rewrites an existing value, because only a write shows
       * that the disk is full.
       */
      ping: () => commits.write(() => connection.database.exec(`PRAGMA user_version=${BLOB_FILE.schemaVersion}`)),
      corruptionSeenAtStart: () => orFailure(() => findCorruptionAtStart(connection.database, file)),
    },
    batch: { maxCalls: MAX_BATCH, around: (run) => commits.batch(run) },
    close() {
      eraser[Symbol.dispose]()
      connection[Symbol.dispose]()
    },
  }
})
