import { type GraphQLResolveInfo, graphql } from 'graphql'
import { expect, it } from 'vitest'
import { newWorld } from '../../../test/support/data/knowledge-library.ts'
import { base64, createContext, depsOn, FakeInference, ManualClock, principal } from '../../../test/support/knowledge.ts'
import { SiftBudget } from '../../common/documents/lists.ts'
import type { LinkContext } from '../../common/link/link.ts'
import { subgraphSchema } from '../../common/link/subgraph.ts'
import type { ChunkIndex } from '../ports/chunk-index.ts'
import type { Deps } from '../use-cases/deps.ts'
import { createCollection } from '../use-cases/documents/collections.ts'
import { createDocument } from '../use-cases/documents/documents.ts'
import { uploadFile } from '../use-cases/files/files.ts'
import { RecordReads } from '../use-cases/record-reads.ts'
import type { Context } from './context.ts'
import { resolvers } from './index.ts'

async function stored() {
  const index = { createCollection: async () => undefined } as unknown as ChunkIndex
  const world = newWorld({ index })
  const deps = depsOn({ ...world, inference: new FakeInference(), clock: new ManualClock() })
  const context = createContext()
  const { _id: collectionId } = await createCollection(deps, context, { code: 'c', name: 'C', embeddingModel: 'embed' })
  const { _id: fileId } = await uploadFile(deps, context, { name: 'a.txt', contentBase64: base64('text') })
  const { document } = await createDocument(deps, context, { collectionId, fileId })
  return { deps, context, collectionId, fileId, documentId: document._id, document }
}

const schema = subgraphSchema('knowledge', resolvers)
const toContext = (deps: Deps, context: LinkContext): Context => ({
  ...context,
  deps,
  records: new RecordReads(deps.store),
  sifting: new SiftBudget(),
  problems: async () => [],
})
const execute = (deps: Deps, source: string, context: LinkContext) => graphql({ schema, source, contextValue: toContext(deps, context) })

for (const gone of ['collection', 'file'] as const) {
  it(`returns not_found for the ${gone} of a document deleted between the two reads`, async () => {
    const { deps, context, collectionId, fileId, document } = await stored()
    await (gone === 'file' ? deps.store.files.deleteMany({ _id: fileId }) : deps.store.collections.deleteMany({ _id: collectionId }))

    const read = async () => resolvers.Document![gone]!(document, {}, toContext(deps, context), {} as GraphQLResolveInfo)
    await expect(read()).rejects.toMatchObject({ code: 'not_found' })
  })
}

const OTHER_CONTEXT = createContext({ ...principal, organizationId: 'org_2' })
const WITHOUT_SCOPE = createContext({ ...principal, scopes: ['inference'] })

it('finds and lists nothing of another organization', async () => {
  const { deps, context, collectionId, fileId, documentId } = await stored()
  const query = `{
    collection(id: "${collectionId}") { id } collectionByCode(code: "c") { id } collections { edges { node { id } } }
    file(id: "${fileId}") { id } files { edges { node { id } } } document(id: "${documentId}") { id }
    _entities(representations: [{ __typename: "Collection", id: "${collectionId}" }, { __typename: "File", id: "${fileId}" },
      { __typename: "Document", id: "${documentId}" }, { __typename: "Chunk", id: "chunk_${documentId.slice(4)}_g1_0" }]) { __typename }
  }`
  const list = (...ids: string[]) => ({ edges: ids.map((id) => ({ node: { id } })) })
  expect(await execute(deps, query, context)).toMatchObject({
    data: {
      collection: { id: collectionId },
      collectionByCode: { id: collectionId },
      collections: list(collectionId),
      file: { id: fileId },
      files: list(fileId),
      document: { id: documentId },
      _entities: [{ __typename: 'Collection' }, { __typename: 'File' }, { __typename: 'Document' }, null],
    },
  })
  expect(await execute(deps, query, OTHER_CONTEXT)).toMatchObject({
    data: {
      collection: null,
      collectionByCode: null,
      collections: list(),
      file: null,
      files: list(),
      document: null,
      _entities: [null, null, null, null],
    },
  })
})

for (const field of [
  'collection(id: "col_1") { id }',
  'collectionByCode(code: "c") { id }',
  'collections { edges { node { id } } }',
  'file(id: "file_1") { id }',
  'files { edges { node { id } } }',
  'document(id: "doc_1") { id }',
]) {
  it(`refuses ${field.split(/\W/)[0]} for a key without \`knowledge:read\``, async () => {
    const { deps } = await stored()
    const { errors } = await execute(deps, `{ ${field} }`, WITHOUT_SCOPE)
    expect(errors?.[0]?.originalError).toMatchObject({ code: 'permission_denied' })
  })
}

it('lists the documents of a collection by status, and counts all', async () => {
  const { deps, context, collectionId, documentId } = await stored()
  const nodes = '{ edges { node { id } } }'
  const query = `{ collection(id: "${collectionId}") { documentCount queued: documents(status: QUEUED) ${nodes} ready: documents(status: READY) ${nodes} } }`
  expect(await execute(deps, query, context)).toMatchObject({
    data: { collection: { documentCount: 1, queued: { edges: [{ node: { id: documentId } }] }, ready: { edges: [] } } },
  })
})

it('reads the files and collections of a page of documents in one batch, once each', async () => {
  const { deps, context, collectionId } = await stored()
  for (const text of ['one', 'two', 'three']) {
    const { _id: fileId } = await uploadFile(deps, context, { name: `${text}.txt`, contentBase64: base64(text) })
    await createDocument(deps, context, { collectionId, fileId })
  }
  const reads: string[] = []
  const counted = <T extends object>(name: string, target: T): T =>
    new Proxy(target, {
      get(of, member: string) {
        const value = Reflect.get(of, member)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          if (member === 'find' || member === 'findOne') reads.push(`${name}.${member}`)
          return value.apply(of, args)
        }
      },
    })
  const { store } = deps
  const watched = { ...store, files: counted('files', store.files), collections: counted('collections', store.collections) }
  const query = `{ collection(id: "${collectionId}") { documents { edges { node {
    file { name } collection { code } } } } } }`
  const { data, errors } = await execute({ ...deps, store: watched }, query, context)
  expect(errors).toBeUndefined()
  const names = ['three.txt', 'two.txt', 'one.txt', 'a.txt']
  const edges = names.map((name) => ({ node: { file: { name }, collection: { code: 'c' } } }))
  expect(data).toEqual({ collection: { documents: { edges } } })
  // The query itself reads the collection first.
  expect(reads.toSorted()).toEqual(['collections.find', 'collections.findOne', 'files.find'])
})
