import type { GraphQLResolveInfo } from 'graphql'
import { expect, it } from 'vitest'
import { base64, contextOf, depsOn, FakeInference, ManualClock, MemoryBlobStore } from '../../../test/support/knowledge.ts'
import { MemoryDocumentStore } from '../../../test/support/memory-document-store.ts'
import type { ChunkIndex } from '../ports/chunk-index.ts'
import { createCollection } from '../use-cases/documents/collections.ts'
import { createDocument } from '../use-cases/documents/documents.ts'
import { uploadFile } from '../use-cases/files/files.ts'
import { resolvers } from './index.ts'

for (const gone of ['collection', 'file'] as const) {
  it(`answers not_found for the ${gone} of a document when it is deleted between the two reads`, async () => {
    const index = { createCollection: async () => undefined } as unknown as ChunkIndex
    const world = { documents: new MemoryDocumentStore(), blobs: new MemoryBlobStore(), index }
    const deps = depsOn({ ...world, inference: new FakeInference(), clock: new ManualClock() })
    const context = contextOf()
    const { _id: collectionId } = await createCollection(deps, context, { code: 'c', name: 'C', embeddingModel: 'embed' })
    const { _id: fileId } = await uploadFile(deps, context, { name: 'a.txt', contentBase64: base64('text') })
    const { document } = await createDocument(deps, context, { collectionId, fileId })
    await (gone === 'file' ? deps.store.files.deleteMany({ _id: fileId }) : deps.store.collections.deleteMany({ _id: collectionId }))

    const read = async () => resolvers.Document![gone]!(document, {}, { ...context, deps }, {} as GraphQLResolveInfo)
    await expect(read()).rejects.toMatchObject({ code: 'not_found' })
  })
}
