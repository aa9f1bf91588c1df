import { COLLECTION, DIMENSIONS, createChunk, createDocument } from '../../../../../test/support/data/chunks.ts'
import { silentLog } from '../../../../common/process/log.ts'
import { openSqliteChunkIndex } from '../chunk-index.ts'

/**
 * Writes, replaces and deletes documents until the process is killed. Prints `put N`, `again N` or `gone N` after each
 * acknowledgment.
 */

const [file, round] = process.argv.slice(2)
const index = await openSqliteChunkIndex({ file: file!, log: silentLog })
await index.createCollection({ organizationId: 'org_a', collectionId: COLLECTION, dimensions: DIMENSIONS })

async function put(name: string, what: string): Promise<void> {
  const chunks = Array.from({ length: 20 }, (_, i) => createChunk(`${what} sultan ${name} part${i}`, i, name))
  await index.put(createDocument(name), chunks)
}

async function write(n: number): Promise<void> {
  const name = `doc-${round}-${n}`
  await put(name, 'first')
  process.stdout.write(`put ${name}\n`)
  if (n % 3 === 1) {
    await put(name, 'second')
    process.stdout.write(`again ${name}\n`)
  }
  if (n % 3 !== 2) return
  await index.deleteDocument(COLLECTION, name)
  process.stdout.write(`gone ${name}\n`)
}

// Run several concurrently, so that they share transactions.
for (let n = 0; ; n += 4) await Promise.all([0, 1, 2, 3].map((i) => write(n + i)))
