import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { type EmbeddedEngines, openEmbeddedEngines } from '../../subgraphs/inference/adapters/embedded/engines.ts'
import { extractiveEngine } from '../../subgraphs/inference/adapters/embedded/extractive/engine.ts'
import { PHRASES } from '../../subgraphs/inference/adapters/embedded/extractive/phrases.ts'
import type { ChatEngine } from '../../subgraphs/inference/ports/engines.ts'
import { openSqliteChunkIndex } from '../../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import type { ChunkIndex } from '../../subgraphs/knowledge/ports/chunk-index.ts'
import { EMBEDDING_TIMEOUT_MS, EvalSearch } from '../support/data/eval-search.ts'
import { evalData, type Language } from '../support/data/eval-vectors.ts'
import { soaking } from '../support/soak.ts'

const data = await evalData()
const title = data
  ? 'Responses of `extractive` over XQuAD, development half'
  : 'Responses of `extractive` (skipped: ../shared/eval is absent)'
/** Of the questions, one of so many is asked; all of them in `npm run soak`. */
const EVERY = soaking ? 1 : 6
const TIMEOUT_MS = 300_000
const { signal } = new AbortController()
const CALL = { engineModel: 'extractive', requestId: 'req_1', maxOutputTokens: null, warn: () => undefined }

describe.skipIf(!data)(title, async () => {
  const { paragraphs, questions } = data!
  const textOf = new Map(paragraphs.map(({ id, text }) => [id, text]))
  /** `ar-06-2` is of the article 06. */
  const articleOf = (id: string) => id.split('-')[1]
  let folder: string
  let index: ChunkIndex
  let engines: EmbeddedEngines
  let chat: ChatEngine
  let search: EvalSearch

  beforeAll(async () => {
    search = await EvalSearch.of(data!)
    folder = await mkdtemp(join(tmpdir(), 'kis-extractive-'))
    index = await openSqliteChunkIndex({ file: join(folder, 'index.sqlite'), log: silentLog })
    await search.fill(index)
    const modelDirectory = new URL('../../models/e5-small-ar-en/', import.meta.url)
    const deps = { clock: systemClock, ids: idSource(systemClock) }
    engines = await openEmbeddedEngines({ modelDirectory, log: silentLog, ...deps })
    // The same sentences are asked for again and again.
    const known = new Map<string, Float32Array>()
    const { embedding } = engines
    chat = extractiveEngine({
      ...deps,
      embedding: {
        ...embedding,
        countTokens: async (texts) => texts.map(() => 1),
        async embed(call, input, ending) {
          const texts = input as readonly string[]
          const fresh = [...new Set(texts)].filter((text) => !known.has(text))
          const { vectors } = await embedding.embed(call, fresh, ending)
          for (const [i, text] of fresh.entries()) known.set(text, vectors[i]!)
          return { vectors: texts.map((text) => known.get(text)!), tokens: 0, source: 'counted' }
        },
      },
    })
  }, EMBEDDING_TIMEOUT_MS)

  afterAll(async () => {
    await index?.[Symbol.asyncDispose]()
    await engines?.[Symbol.asyncDispose]()
    if (folder) await rm(folder, { recursive: true, force: true })
  })

  /** The text of the response, as an agent's model gives it over these search results. */
  async function respond(question: string, ids: readonly string[]): Promise<string> {
    const found = ids.map((id, i) => `[#${i + 1}] ${id}.txt: ${textOf.get(id)!.replaceAll(/\n\s*\n/g, '\n')}`).join('\n\n')
    const messages = [found, question].map((content) => ({ role: 'user', content }))
    const completion = await chat.complete(CALL, { messages }, signal)
    return (completion as unknown as { choices: [{ message: { content: string } }] }).choices[0].message.content
  }

  const share = (outcomes: readonly boolean[]) => outcomes.filter(Boolean).length / outcomes.length

  /**
   * `kept`: least share of answerable questions that get a response. `right`: least share of those responses that quote
   * the right paragraph. `refused`: least share of "not found" where the results are of other articles. Where they are
   * the right article's other paragraphs, "not found" is rarer; `near` is its least share.
   */
  for (const { from, pool, results, kept, right, refused, near } of [
    { from: 'en', pool: 'en', results: 8, kept: 0.95, right: 0.95, refused: 0.9, near: 0.35 },
    { from: 'ar', pool: 'ar', results: 8, kept: 0.9, right: 0.92, refused: 0.88, near: 0.4 },
    { from: 'en', pool: 'ar', results: 8, kept: 0.75, right: 0.88, refused: 0.88, near: 0.55 },
    { from: 'ar', pool: 'en', results: 8, kept: 0.75, right: 0.88, refused: 0.78, near: 0.55 },
    { from: 'en', pool: 'en', results: 1, kept: 0.95, right: 1, refused: 0.85, near: 0.25 },
    { from: 'ar', pool: 'ar', results: 1, kept: 0.93, right: 1, refused: 0.83, near: 0.3 },
    { from: 'en', pool: 'ar', results: 1, kept: 0.85, right: 1, refused: 0.8, near: 0.35 },
    { from: 'ar', pool: 'en', results: 1, kept: 0.85, right: 1, refused: 0.7, near: 0.4 },
  ] as const) {
    it(
      `answers from ${results} results and reports unanswerable questions: ${from} questions over ${pool} paragraphs`,
      async () => {
        const selected = questions.filter(({ lang }) => lang === from).filter((_, i) => i % EVERY === 0)
        const topTens = await search.topTens(index, from, pool, 'hybrid', EVERY)
        const outcomes = { kept: [] as boolean[], right: [] as boolean[], refused: [] as boolean[], near: [] as boolean[] }
        const notFound = PHRASES[from as Language].nothingFound
        for (const [i, { text, paragraph_ids }] of selected.entries()) {
          const rightId = paragraph_ids.find((id) => id.startsWith(pool))!
          const top = topTens[i]!
          const others = top.filter((id) => id !== rightId)
          const holding = [rightId, ...others].slice(0, results).sort((a, b) => top.indexOf(a) - top.indexOf(b))
          const response = await respond(text, holding)
          outcomes.kept.push(response !== notFound)
          if (response !== notFound) outcomes.right.push(response.includes(`[#${holding.indexOf(rightId) + 1}]`))
          const otherArticles = top.filter((id) => articleOf(id) !== articleOf(rightId)).slice(0, results)
          if (otherArticles.length > 0) outcomes.refused.push((await respond(text, otherArticles)) === notFound)
          outcomes.near.push((await respond(text, others.slice(0, results))) === notFound)
        }
        const reached = Object.fromEntries(Object.entries(outcomes).map(([name, list]) => [name, share(list)]))
        console.info(`${from}→${pool}, ${results} results: ${JSON.stringify(reached)}`)
        for (const [name, least] of Object.entries({ kept, right, refused, near }))
          expect.soft(reached[name], name).toBeGreaterThanOrEqual(least)
      },
      TIMEOUT_MS,
    )
  }
})
