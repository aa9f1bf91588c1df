import { writeSync } from 'node:fs'
import { silentLog } from '../../../process/log.ts'
import { openSqliteDocumentStore } from '../documents/document-store.ts'

/**
 * Writes to the file in its argument until it is killed, and prints what was acknowledged: `insert <id>` and `count
 * <n>`.
 */

const [, , file = '', round = ''] = process.argv
const store = await openSqliteDocumentStore({ file, log: silentLog })
const items = store.collection<{ _id: string; code: string; n?: number }>({ name: 'items', indexes: [{ fields: ['code'], unique: true }] })
const acknowledge = (line: string) => writeSync(1, `${line}\n`)

async function insert(writer: number): Promise<void> {
  for (let i = 0; ; i++) {
    const _id = `${round}_${writer}_${i}`
    await items.insertOne({ _id, code: _id })
    acknowledge(`insert ${_id}`)
  }
}

async function increment(): Promise<void> {
  for (;;) {
    const counter = await items.findOneAndUpdate({ _id: 'counter' }, { $inc: { n: 1 }, $setOnInsert: { code: 'counter' } }, { upsert: true })
    acknowledge(`count ${counter?.n}`)
  }
}

await Promise.all([...Array.from({ length: 10 }, (_, writer) => insert(writer)), ...Array.from({ length: 10 }, increment)])
