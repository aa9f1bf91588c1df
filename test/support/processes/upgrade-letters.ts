import { MongoClient } from 'mongodb'
import { Upgrade } from '../../../subgraphs/common/adapters/mongodb/claimed/upgrade.ts'
import { silentLog } from '../../../subgraphs/common/process/log.ts'
import { LETTERS } from '../data/letters.ts'

/** Brings the letters of the database to their newest version: `upgrade-letters.ts URL DATABASE`. Says when it begins. */
const [url, database] = process.argv.slice(2)
await using client = new MongoClient(url!)
process.send?.('begins')
await using upgrade = await Upgrade.begin(client.db(database!), [LETTERS], silentLog)
await upgrade.finish()
