import { MongoClient } from 'mongodb'
import { migrateDatabase } from '../../../subgraphs/common/adapters/mongodb/migrations.ts'
import { migrateFile } from '../../../subgraphs/common/adapters/sqlite/documents/migrate-file.ts'
import { silentLog } from '../../../subgraphs/common/process/log.ts'
import { ADD, letters, REMOVE } from '../data/letters.ts'

/** Migrates the letters of a database or a file: `migrate-letters.ts URL DATABASE`, `migrate-letters.ts FILE`. Says when it begins. */
const [location, database] = process.argv.slice(2)
const kinds = letters(ADD, REMOVE)
if (database) {
  await using client = new MongoClient(location!)
  process.send?.('begins')
  await using _migrations = await migrateDatabase(client.db(database), kinds, silentLog)
} else {
  process.send?.('begins')
  await migrateFile(location!, kinds, silentLog)
}
