import { expect, it } from 'vitest'
import { makeChunk, makeDocument } from '../../../../test/support/data/chunks.ts'
import { MemoryBlobStore } from '../../../../test/support/knowledge.ts'
import { readChunkGroup, storeChunks } from './stored-chunks.ts'

const place = { documentId: 'doc_1', generation: 'g1', collectionId: 'col_1' }

it('keeps vectors and token states of passages, also of those without', async () => {
  const blobs = new MemoryBlobStore()
  const chunks = ['one', 'two', 'three', 'four'].map((text, i) => makeChunk(text, i))
  await storeChunks({ blobs }, { ...makeDocument('doc_1'), collectionId: 'col_1' }, chunks)
  const kept = await readChunkGroup({ blobs }, place, 0)
  expect(kept!.chunks.map(({ vector }) => vector)).toEqual(chunks.map(({ vector }) => vector))
  expect(kept!.chunks.map(({ tokenStates }) => tokenStates)).toEqual(chunks.map(({ tokenStates }) => tokenStates))
})

it('reads what was kept before token states were', async () => {
  const blobs = new MemoryBlobStore()
  const { vector, tokenStates: _states, words: _words, grams: _grams, ...passage } = makeChunk('one', 0)
  const json = Buffer.from(JSON.stringify({ attributes: {}, passages: [passage] }))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(json.length)
  await storeChunks({ blobs }, { ...makeDocument('doc_1'), collectionId: 'col_1' }, [makeChunk('other', 0)])
  const [key] = blobs.keys.keys()
  await blobs.put(key!, Buffer.concat([length, json, Buffer.from(vector.buffer)]))
  const kept = await readChunkGroup({ blobs }, place, 0)
  expect(kept!.chunks).toEqual([{ ...passage, vector, tokenStates: null }])
})
