import { Client, type estypes } from '@elastic/elasticsearch'
import { attributeTerm } from '../../subgraphs/knowledge/adapters/elasticsearch/attributes.ts'
import { filterQuery } from '../../subgraphs/knowledge/adapters/elasticsearch/filter.ts'
import { entryId, readChunkId } from '../../subgraphs/knowledge/adapters/elasticsearch/indices.ts'
import type { SearchFilter } from '../../subgraphs/knowledge/domain/search/search-filter.ts'
import type { Put } from './eval-chunks.ts'

/** A `flat` field ignores this number, but the server requires at least the number of requested hits. */
const NUM_CANDIDATES = 100

/**
 * Elasticsearch's own exact search: the same vectors as floats without a graph (`flat`). It compares every vector that
 * passes the filter.
 */
export class ExactIndex implements AsyncDisposable {
  readonly #client: Client
  readonly #index: string

  private constructor(client: Client, index: string) {
    this.#client = client
    this.#index = index
  }

  static async create(url: string, index: string, dimensions: number): Promise<ExactIndex> {
    const client = new Client({ node: url })
    await client.indices.create({
      index,
      settings: { number_of_shards: 1, number_of_replicas: 0, refresh_interval: '-1' },
      mappings: {
        dynamic: 'strict',
        properties: {
          collection_id: { type: 'keyword' },
          attributes: { type: 'keyword', doc_values: false },
          vector: { type: 'dense_vector', dims: dimensions, index: true, similarity: 'cosine', index_options: { type: 'flat' } },
        },
      },
    })
    return new ExactIndex(client, index)
  }

  async put({ document: { collectionId, attributes }, chunks }: Put): Promise<void> {
    const terms = Object.entries(attributes).flatMap(([field, value]) => (value === null ? [] : [attributeTerm(field, value)]))
    const operations = chunks.flatMap(({ chunkId, vector }) => [
      { index: { _id: entryId(collectionId, chunkId) } },
      { collection_id: collectionId, attributes: terms, vector: [...vector] },
    ])
    const { errors } = await this.#client.bulk({ index: this.#index, operations })
    if (errors) throw new Error('a vector was not written')
  }

  async refresh(): Promise<void> {
    await this.#client.indices.refresh({ index: this.#index })
  }

  /** Returns chunk IDs, nearest first. */
  async nearest(collectionId: string, vector: readonly number[], filter: SearchFilter | null, count: number): Promise<readonly string[]> {
    const only: estypes.QueryDslQueryContainer[] = [{ term: { collection_id: collectionId } }, ...(filter ? [filterQuery(filter)] : [])]
    const knn = { field: 'vector', query_vector: [...vector], k: count, num_candidates: NUM_CANDIDATES, filter: only }
    const { hits } = await this.#client.search({ index: this.#index, knn, size: count, _source: false })
    return hits.hits.map(({ _id }) => readChunkId(collectionId, _id!))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close()
  }
}
