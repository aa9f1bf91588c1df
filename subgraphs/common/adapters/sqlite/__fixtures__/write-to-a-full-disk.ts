import { once } from 'node:events'
import { KisError } from '../../../errors.ts'
import { silentLog } from '../../../process/log.ts'
import { Unfit } from '../../../process/opening.ts'
import { openSqliteDocumentStore } from '../documents/document-store.ts'

/**
 * Writes to the file in its argument until a write fails. Prints `full` and the code of the failure, waits for a line,
 * and writes again. At the end prints how many writes were acknowledged, how many of those exist, and how many failed
 * writes exist.
 */

const WRITERS = 20

const [, , file = ''] = process.argv
await using store = await openSqliteDocumentStore({ file, log: silentLog })
const items = store.collection<{ _id: string; text: string }>({ name: 'items', indexes: [] })
const acknowledged: string[] = []
const failed: { _id: string; code: string }[] = []

async function write(_id: string): Promise<void> {
  try {
    await items.insertOne({ _id, text: 'x'.repeat(2_000) })
    acknowledged.push(_id)
  } catch (error) {
    failed.push({ _id, code: error instanceof KisError ? error.code : String(error) })
  }
}

for (let i = 0; failed.length === 0; i++) {
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(`before_${i}_${writer}`)))
}
// A ping writes less than the others, so some pings may still succeed.
let ping = 'ok'
while (ping === 'ok') {
  ping = await store.ping(AbortSignal.timeout(30_000)).then(
    () => 'ok',
    (error) => (error instanceof Unfit ? 'unfit' : String(error)),
  )
}
console.log(`full ${[...new Set(failed.map(({ code }) => code))].join()} ${ping}`)
await once(process.stdin, 'data')
const failures = failed.length
await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(`after_${writer}`)))
await store.ping(AbortSignal.timeout(30_000))

const isThere = async (_id: string) => (await items.findOne({ _id })) !== null
const count = async (ids: readonly string[]) => (await Promise.all(ids.map(isThere))).filter(Boolean).length
console.log(
  JSON.stringify({
    acknowledged: acknowledged.length,
    found: await count(acknowledged),
    failedAndFound: await count(failed.map(({ _id }) => _id)),
    failedLater: failed.length - failures,
  }),
)
process.stdin.destroy()
