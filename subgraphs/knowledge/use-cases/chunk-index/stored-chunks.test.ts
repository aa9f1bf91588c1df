import { expect, it } from 'vitest'
import { createChunk, createDocument } from '../../../../test/support/data/chunks.ts'
import { MemoryBlobStore } from '../../../../test/support/knowledge.ts'
import { readChunkGroup, storeChunks } from './stored-chunks.ts'

const location = { documentId: 'doc_1', generation: 'g1', collectionId: 'col_1' }

it('stores vectors and token embeddings of chunks, including those without', async () => {
  const blobs = new MemoryBlobStore()
  const chunks = ['one', 'two', 'three', 'four'].map((text, i) => createChunk(text, i))
  await storeChunks({ blobs }, { ...createDocument('doc_1'), collectionId: 'col_1' }, chunks)
  const group = await readChunkGroup({ blobs }, location, 0)
  expect(group!.chunks.map(({ vector }) => vector)).toEqual(chunks.map(({ vector }) => vector))
  expect(group!.chunks.map(({ tokenStates }) => tokenStates)).toEqual(chunks.map(({ tokenStates }) => tokenStates))
})

it('reads chunks stored before token embeddings existed', async () => {
  const blobs = new MemoryBlobStore()
  const { vector, tokenStates: _tokenStates, words: _words, grams: _grams, ...chunk } = createChunk('one', 0)
  const json = Buffer.from(JSON.stringify({ attributes: {}, passages: [chunk] }))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(json.length)
  await storeChunks({ blobs }, { ...createDocument('doc_1'), collectionId: 'col_1' }, [createChunk('other', 0)])
  const [key] = blobs.keys.keys()
  await blobs.put(key!, Buffer.concat([length, json, Buffer.from(vector.buffer)]))
  const group = await readChunkGroup({ blobs }, location, 0)
  expect(group!.chunks).toEqual([{ ...chunk, vector, tokenStates: null }])
})
