import { expect, it } from 'vitest'
import { MemoryBlobStore } from '../../../../test/support/knowledge.ts'
import { copyBlobs, sumBlobs } from './copy-blobs.ts'

const nothing = () => undefined
const sumOf = async (store: MemoryBlobStore) => {
  const { count, text } = await sumBlobs(store, nothing)
  return [count, text]
}

it('gives the target the blobs of the source and no others, and writes only what differs', async () => {
  const [from, to] = [new MemoryBlobStore(), new MemoryBlobStore()]
  for (let i = 0; i < 1_200; i++) await from.put(`org/${i}`, Buffer.from(`blob ${i}`))
  await from.put('org/empty', new Uint8Array())
  await from.put('org/large', Buffer.alloc(40 * 1024 * 1024, 'x'))
  for (let i = 0; i < 600; i++) await to.put(`org/${i}`, Buffer.from(`blob ${i}`))
  await to.put('org/7', Buffer.from('blob 8'))
  await to.put('org/9', Buffer.from('longer than it was'))
  for (const gone of ['a', 'org/1300', 'z']) await to.put(gone, Buffer.from('gone'))
  const written: string[] = []
  const watched = Object.assign(Object.create(to) as MemoryBlobStore, {
    put: (key: string, bytes: Uint8Array) => {
      written.push(key)
      return to.put(key, bytes)
    },
  })
  await copyBlobs(from, watched, nothing)
  expect(await sumOf(to)).toEqual(await sumOf(from))
  expect(written.length).toBe(600 + 2 + 2)
  await copyBlobs(from, watched, nothing)
  expect(written.length).toBe(600 + 2 + 2)
  await to.put('org/7', Buffer.from('blob 8'))
  expect(await sumOf(to)).not.toEqual(await sumOf(from))
})
