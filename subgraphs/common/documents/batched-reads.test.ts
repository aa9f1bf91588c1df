import { expect, it } from 'vitest'
import { BatchedReads } from './batched-reads.ts'

function counted(missing: readonly string[] = []) {
  const reads: (readonly string[])[] = []
  const batched = new BatchedReads<string>(async (keys) => {
    reads.push(keys)
    return new Map(keys.filter((key) => !missing.includes(key)).map((key) => [key, key.toUpperCase()]))
  })
  return { batched, reads }
}

it('batches the reads of one event-loop tick, once per key', async () => {
  const { batched, reads } = counted(['c'])
  const found = await Promise.all(['a', 'b', 'a', 'c'].map((key) => batched.find(key)))
  expect(found).toEqual(['A', 'B', 'A', null])
  expect(reads).toEqual([['a', 'b', 'c']])
})

it('reads again in a later tick', async () => {
  const { batched, reads } = counted()
  await batched.find('a')
  await batched.find('a')
  expect(reads).toEqual([['a'], ['a']])
})

it('splits a batch above the limit of one read', async () => {
  const { batched, reads } = counted()
  const keys = Array.from({ length: 2_500 }, (_, i) => `k${i}`)
  expect(await Promise.all(keys.map((key) => batched.find(key)))).toEqual(keys.map((key) => key.toUpperCase()))
  expect(reads.map(({ length }) => length)).toEqual([1_000, 1_000, 500])
})

it('rejects everything that waits for a read that fails', async () => {
  const batched = new BatchedReads<string>(async () => {
    throw new Error('no store')
  })
  const found = await Promise.allSettled([batched.find('a'), batched.find('b')])
  expect(found.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})
