import { base64, type Caller, type Json, makeCaller, newCollection, settled } from '../client.ts'
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
/** Every paragraph is embedded twice, which takes minutes on a busy machine. */
const INGESTION_MS = 300_000

/**
 * A running service with the paragraphs of the retrieval benchmark, in one collection for each language and one for
 * both.
 */
export class Retrieval implements AsyncDisposable {
  readonly #data: EvalData
  readonly #service: Service
  readonly #caller: Caller
  readonly #collections = new Map<Pool, string>()

  private constructor(data: EvalData, service: Service) {
    this.#data = data
    this.#service = service
    this.#caller = makeCaller(service, service.key)
  }

  static async start(data: EvalData): Promise<Retrieval> {
    const started = new Retrieval(data, await startEmbedded())
    try {
      await started.#fill()
      return started
    } catch (error) {
      await started[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Returns the mean over all questions of a language. */
  async ndcg(from: Language, pool: Pool): Promise<number> {
    const { paragraphs, questions } = this.#data
    const present = new Set(paragraphs.filter(({ lang }) => pool === 'both' || lang === pool).map(({ id }) => id))
    const asked = questions.filter(({ lang }) => lang === from)
    const scores = await inParallel(asked, PARALLEL, async ({ text, paragraph_ids }) => {
      const { body } = await this.#caller.rest('POST', `/v1/collections/${this.#collections.get(pool)}/search`, { query: text })
      const found = body.data.map((hit: Json) => hit.file.file_name.replace('.txt', ''))
      return ndcgAt10(found, new Set(paragraph_ids.filter((id) => present.has(id))))
    })
    return mean(scores)
  }

  async #fill(): Promise<void> {
    for (const pool of ['ar', 'en', 'both'] as const) this.#collections.set(pool, (await newCollection(this.#caller)).id)
    const attached = await inParallel(this.#data.paragraphs, PARALLEL, async ({ id, lang, text }) => {
      const { body } = await this.#caller.rest('POST', '/v1/files', { file_name: `${id}.txt`, content_base64: base64(text) })
      const collections = [this.#collections.get(lang)!, this.#collections.get('both')!]
      return Promise.all(
        collections.map(async (collection) => {
          const document = await this.#caller.rest('POST', `/v1/collections/${collection}/documents`, { file_id: body.message.id })
          return { collection, document: document.body.id as string }
        }),
      )
    })
    for (const { collection, document } of attached.flat()) {
      const { status } = await settled(this.#caller, collection, document, INGESTION_MS)
      if (status !== 'ready') throw new Error(`${document} ${status}`)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service.close()
  }
}
