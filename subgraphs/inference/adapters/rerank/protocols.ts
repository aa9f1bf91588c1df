import type { RerankProtocol } from '../../domain/catalog/engine.ts'
import { isCount } from '../../domain/tokens/usage.ts'

/** What an answer says, before it is checked. */
interface Said {
  readonly results: unknown
  /** The field of a result that has its score. */
  readonly scoreField: 'relevance_score' | 'score'
  readonly tokens: number | null
  readonly searchUnits: number | null
}

/** How one kind of server is asked, and how it answers. */
interface Protocol {
  /** Below the engine's `base_url`. */
  readonly route: string
  /** Most documents of one call, unless the catalog says otherwise. */
  readonly maxBatch: number
  toBody(model: string, query: string, documents: readonly string[]): object
  read(response: unknown): Said
}

type Fields = Readonly<Record<string, unknown>>

export const PROTOCOLS: Readonly<Record<RerankProtocol, Protocol>> = {
  cohere: {
    route: 'rerank',
    // Cohere's reference of `/v2/rerank` recommends no more than 1,000 documents.
    maxBatch: 1_000,
    toBody: (model, query, documents) => ({ model, query, documents, top_n: documents.length }),
    read(response) {
      const { results, meta } = fieldsOf(response)
      const { billed_units: billed, tokens } = fieldsOf(meta)
      const { search_units: units } = fieldsOf(billed)
      return { results, scoreField: 'relevance_score', tokens: countOf(fieldsOf(tokens).input_tokens), searchUnits: countOf(units) }
    },
  },
  jina: {
    route: 'rerank',
    // Jina's reference of `/v1/rerank`: at most 2,048 documents.
    maxBatch: 2_048,
    toBody: (model, query, documents) => ({ model, query, documents, top_n: documents.length, return_documents: false }),
    read(response) {
      const { results, usage } = fieldsOf(response)
      return { results, scoreField: 'relevance_score', tokens: countOf(fieldsOf(usage).total_tokens), searchUnits: null }
    },
  },
  tei: {
    route: 'rerank',
    // The default of text-embeddings-inference (`--max-client-batch-size`).
    maxBatch: 32,
    // `truncate`: without it one document beyond the model's length fails the whole call.
    toBody: (_model, query, texts) => ({ query, texts, truncate: true, return_text: false }),
    read: (response) => ({ results: response, scoreField: 'score', tokens: null, searchUnits: null }),
  },
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function countOf(value: unknown): number | null {
  return isCount(value) ? value : null
}
