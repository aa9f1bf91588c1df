import { expect, it } from 'vitest'
import type { Json } from '../../../support/client.ts'
import type { Library } from './library.ts'

/** Queries that several subgraphs answer together. */
export function federation(library: Library): void {
  it('one GraphQL query uses all three subgraphs', async () => {
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

  it('a failed field leaves the data of others intact, and its error has the path', async () => {
    const { data, errors } = await library.caller.graphql(
      `mutation { made: createApiKey(input: { name: "kept" }) { key apiKey { id } }
        gone: deleteFile(id: "file_none") { id } }`,
    )
    expect(data).toEqual({ made: { key: expect.stringMatching(/^kis_live_/), apiKey: expect.anything() }, gone: null })
    expect(errors).toMatchObject([{ path: ['gone'], locations: [{ line: 2, column: 9 }], extensions: { code: 'NOT_FOUND' } }])
  })

  it('errors in the text, the selection and the variables have a code and a location each', async () => {
    const { caller } = library
    for (const [query, variables, code, column] of [
      ['{ organization {', {}, 'GRAPHQL_PARSE_FAILED', 17],
      ['{ organisation { id } }', {}, 'GRAPHQL_VALIDATION_FAILED', 3],
      ['query ($id: ID!) { file(id: $id) { id } }', {}, 'INVALID_VARIABLES', 8],
    ] as const) {
      const { data, errors } = await caller.graphql(query, variables)
      expect({ data, errors }).toMatchObject({ errors: [{ locations: [{ line: 1, column }], extensions: { code } }] })
    }
  })

  it('JSON that is nested too deeply, or names a prototype, is a request error', async () => {
    const { caller, collection } = library
    const nested = (depth: number) => JSON.parse('{"a":'.repeat(depth) + 1 + '}'.repeat(depth)) as unknown
    const search = 'query ($input: SearchInput!) { searchCollection(input: $input) { hits { score } } }'
    const client = caller.socket()
    for (const filter of [nested(65), nested(3_000), JSON.parse('{"__proto__":{"a":1}}')]) {
      const input = { collectionId: collection.id, query: 'x', filter }
      const { value } = await client.iterate<Json>({ query: search, variables: { input } }).next()
      for (const { errors } of [value, await caller.graphql(search, { input })])
        expect(errors).toMatchObject([{ extensions: { type: 'invalid_request_error', shouldRetry: false } }])
    }
    await client.dispose()
  })

  it('a subscription to a missing object is refused', async () => {
    const client = library.caller.socket()
    for (const [field, of] of [
      ['documentUpdated', 'documentUpdated(collectionId: "col_none") { cursor }'],
      ['agentRunEvents', 'agentRunEvents(runId: "run_none") { cursor }'],
      ['workflowRunEvents', 'workflowRunEvents(runId: "run_none") { cursor }'],
    ]) {
      const { value } = await client.iterate<Json>({ query: `subscription { ${of} }` }).next()
      expect(value.errors).toMatchObject([{ path: [field], locations: [{ line: 1, column: 16 }], extensions: { code: 'NOT_FOUND' } }])
    }
    await client.dispose()
  })
}
