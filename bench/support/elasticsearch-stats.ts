import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@elastic/elasticsearch'

const POLL_INTERVAL_MS = 500

interface IndexFigures {
  readonly diskBytes: number
  readonly segments: number
  /**
   * Bytes of the vectors and their graph, which a search needs in the page cache. Without the floats, which only
   * rescore the last candidates.
   */
  readonly searchedVectorBytes: number
}

/** Reads a server's statistics, its own and those of the indices of one pattern. */
export class ElasticsearchStats implements AsyncDisposable {
  readonly #client: Client
  readonly #pattern: string
  readonly #heapUsed: number[] = []

  constructor(url: string, pattern: string) {
    this.#client = new Client({ node: url })
    this.#pattern = pattern
  }

  /** Waits until no merge is running. Returns the time in ms. */
  async settled(): Promise<number> {
    const start = performance.now()
    for (;;) {
      const { _all } = await this.#client.indices.stats({ index: this.#pattern, metric: ['merge'] })
      if (_all.total!.merges!.current === 0) return performance.now() - start
      await sleep(POLL_INTERVAL_MS)
    }
  }

  async pollHeap(): Promise<void> {
    const { nodes } = await this.#client.nodes.stats({ metric: ['jvm'], filter_path: 'nodes.*.jvm.mem' })
    this.#heapUsed.push(Object.values(nodes).reduce((sum, { jvm }) => sum + jvm!.mem!.heap_used_in_bytes!, 0))
  }

  /**
   * The least and the most of all samples, including garbage and other indices. The least is close to the memory in
   * use.
   */
  get heapUsed(): { readonly least: number; readonly most: number } {
    return { least: Math.min(...this.#heapUsed), most: Math.max(...this.#heapUsed) }
  }

  async figures(): Promise<IndexFigures> {
    const { _all } = await this.#client.indices.stats({ index: this.#pattern, metric: ['store', 'segments', 'dense_vector'] })
    const { store, segments } = _all.total!
    // The client's types lack `dense_vector`.
    const { off_heap: offHeap } = (_all.total as { readonly dense_vector: { readonly off_heap: Readonly<Record<string, number>> } })
      .dense_vector
    const { total_veq_size_bytes: quantised = 0, total_vex_size_bytes: graph = 0 } = offHeap
    return { diskBytes: store!.size_in_bytes, segments: segments!.count, searchedVectorBytes: quantised + graph }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close()
  }
}
