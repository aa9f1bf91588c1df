/**
 * Returns a catalog of a mock cloud vendor, with plans small enough to reach their limits. No call waits for
 * an embedded model to load.
 */
export function mockCatalog(mockUrl: string): string {
  return createCatalog(mockUrl, { engine: '', models: '' })
}

/** Returns the catalog of `mockCatalog` with the embedded models. */
export function testCatalog(mockUrl: string): string {
  return createCatalog(mockUrl, {
    engine: '  embedded: { kind: embedded, badge: local }\n',
    models: `  - id: e5-small-ar-en
    engine: embedded
    kind: embedding
    dimensions: 384
    context_window: 512
    mark_tokens: 2
    query_prefix: "query: "
    passage_prefix: "passage: "
    cosine_spread: 0.03
    price: { input: "0.01" }
  - { id: extractive, engine: embedded, kind: chat, context_window: 32000, max_output_tokens: 2048, price: { input: "0.01", output: "0.01" } }
`,
  })
}

function createCatalog(mockUrl: string, embedded: { readonly engine: string; readonly models: string }): string {
  const scripted = ['nan', 'narrow', 'few', '500', '429', 'slow'].map(
    (script) =>
      `  - { id: mock-embed-${script}, engine: mock, kind: embedding, dimensions: 8, context_window: 8192, price: { input: "1" } }`,
  )
  return `
engines:
${embedded.engine}  mock: { kind: openai, base_url: "${mockUrl}", api_key: "sk-mock", badge: cloud }
  mock-ranks: { kind: rerank, protocol: cohere, base_url: "${mockUrl}", api_key: "sk-mock", badge: cloud }
models:
${embedded.models}  - id: mock-chat
    engine: mock
    kind: chat
    supports: [vision, tools, response_schema]
    context_window: 128000
    max_output_tokens: 1000
    price: { input: "1", cached_input: "0.5", output: "2" }
  - { id: mock-embed, engine: mock, kind: embedding, dimensions: 8, context_window: 8192, price: { input: "1" } }
  - { id: mock-embed-wide, engine: mock, kind: embedding, dimensions: 16, context_window: 8192, price: { input: "1" } }
  - { id: mock-rerank, engine: mock-ranks, kind: rerank, price: { search: "2" } }
  - { id: mock-rerank-500, engine: mock-ranks, kind: rerank, price: { search: "2" } }
  - { id: mock-speech, engine: mock, kind: transcription, supports: [streaming], price: { audio: "0.006" } }
${scripted.join('\n')}
plans:
  tiny: { storage_bytes: 1000, vectors: 3, max_file_bytes: 2000, requests_per_minute: null, tokens_per_minute: null, concurrency: 512 }
`
}
