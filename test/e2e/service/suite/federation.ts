import { expect, it } from 'vitest'
import type { Json } from '../../../support/client.ts'
import type { Library } from './library.ts'

/** Queries that several subgraphs answer together. */
export function federation(library: Library): void {
  it('one GraphQL query goes through all three subgraphs', async () => {
    const { caller, collection } = library
    const { data, errors } = await caller.graphql(
      `query ($id: ID!) { collection(id: $id) { code documentCount chunkCount
         embeddingModel { id residency price { input } } organization { wallet { available held } quota { vectors { used limit } } }
         documents(first: 10) { edges { node { status file { name checksum } } } } } }`,
      { id: collection.id },
    )
    expect(errors).toBeUndefined()
    expect(data.collection).toMatchObject({
      documentCount: 2,
      chunkCount: expect.any(Number),
      embeddingModel: { id: 'e5-small-ar-en', residency: 'LOCAL', price: { input: '0.01' } },
      organization: { wallet: { held: '0' }, quota: { vectors: { used: data.collection.chunkCount, limit: 1_000_000 } } },
    })
    expect(data.collection.documents.edges.map((edge: Json) => edge.node.status)).toEqual(['READY', 'READY'])
    const usage = await caller.graphql(
      '{ usage(first: 1) { edges { node { amount model { id kind price { input } } apiKey { name last4 } } } } }',
    )
    expect(usage.data.usage.edges[0].node).toMatchObject({
      model: { price: { input: '0.01' } },
      apiKey: { last4: caller.key.slice(-4) },
    })
  })
}
