import { base64, type Caller, createCaller, type Json, newCollection, settled } from '../client.ts'
import { inParallel } from '../in-parallel.ts'
import { type Service, startEmbedded } from '../processes/service.ts'
import type { EvalData, Language } from './eval-vectors.ts'
import { mean, ndcgAt10 } from './ndcg.ts'

export type Pool = Language | 'both'

/** The language of the questions, the language of the paragraphs, and the least nDCG@10. */
export const DIRECTIONS: readonly (readonly [from: Language, pool: Pool, bar: number])[] = [
  ['ar', 'ar', 0.97],
  ['en', 'en', 0.98],
  ['ar', 'en', 0.88],
  ['en', 'ar', 0.93],
  ['ar', 'both', 0.9],
  ['en', 'both', 0.93],
]

/** The number of concurrent calls of one client. The service admits four uploads at a time. */
const PARALLEL = 4
/** The paragraphs are embedded, which takes minutes on a busy machine. */
const INGESTION_MS = 300_000

/**
 * A running service with the paragraphs of the retrieval benchmark in one collection, so that each is embedded once. A
 * filter on the names of the files leaves those of one language.
 */
export class Retrieval implements AsyncDisposable {
  readonly #data: EvalData
  readonly #service: Service
  readonly #caller: Caller
  readonly #collection: string

  private constructor(data: EvalData, service: Service, caller: Caller, collection: string) {
    this.#data = data
    this.#service = service
    this.#caller = caller
    this.#collection = collection
  }

  static async start(data: EvalData): Promise<Retrieval> {
    const service = await startEmbedded()
    try {
      const caller = createCaller(service, service.key)
      const started = new Retrieval(data, service, caller, (await newCollection(caller)).id)
      await started.#fill()
      return started
    } catch (error) {
      await service.close()
      throw error
    }
  }

  /** Returns the mean over all questions of a language. */
  async ndcg(from: Language, pool: Pool): Promise<number> {
    const { paragraphs, questions } = this.#data
    const present = new Set(paragraphs.filter(({ lang }) => pool === 'both' || lang === pool).map(({ id }) => id))
    const selected = questions.filter(({ lang }) => lang === from)
    const filter = pool === 'both' ? {} : { filter: { op: 'contains', field: 'file_name', value: `${pool}-` } }
    const scores = await inParallel(selected, PARALLEL, async ({ text, paragraph_ids }) => {
      const { body } = await this.#caller.rest('POST', `/v1/collections/${this.#collection}/search`, { query: text, ...filter })
      const found = body.data.map((hit: Json) => hit.file.file_name.replace('.txt', ''))
      return ndcgAt10(found, new Set(paragraph_ids.filter((id) => present.has(id))))
    })
    return mean(scores)
  }

  async #fill(): Promise<void> {
    const documents = await inParallel(this.#data.paragraphs, PARALLEL, async ({ id, text }) => {
      const { body } = await this.#caller.rest('POST', '/v1/files', { file_name: `${id}.txt`, content_base64: base64(text) })
      const document = await this.#caller.rest('POST', `/v1/collections/${this.#collection}/documents`, { file_id: body.message.id })
      return document.body.id as string
    })
    for (const document of documents) {
      const { status } = await settled(this.#caller, this.#collection, document, INGESTION_MS)
      if (status !== 'ready') throw new Error(`${document} ${status}`)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service.close()
  }
}
