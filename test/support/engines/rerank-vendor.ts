import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request to the vendor. */
export interface RerankReceived {
  readonly path: string
  readonly authorization: string | undefined
  readonly body: {
    readonly model?: string
    readonly query: string
    readonly documents?: readonly string[]
    readonly texts?: readonly string[]
  } & Readonly<Record<string, unknown>>
}

/** What the vendor does instead of an answer: this status, this body under status 200, or nothing. */
export type Misbehaviour = number | { readonly body: unknown } | 'hang'

/**
 * A vendor of rerankers on loopback that speaks as Cohere below `/cohere`, as Jina below `/jina` and as
 * text-embeddings-inference below `/tei`. A document's score is the share of the query's words that it has. The Cohere
 * shape bills a search unit for each 100 documents, the Jina shape a token for each word that it reads; the third says
 * nothing of usage.
 */
export class RerankVendor implements AsyncDisposable {
  readonly received: RerankReceived[] = []
  misbehaviour: Misbehaviour | null = null
  readonly #server = createServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const body = JSON.parse(Buffer.concat(pieces).toString()) as RerankReceived['body']
    const { url: path = '', headers } = request
    this.received.push({ path, authorization: headers.authorization, body })
    const { misbehaviour } = this
    if (misbehaviour === 'hang') return
    const status = typeof misbehaviour === 'number' ? misbehaviour : 200
    response.writeHead(status, { 'content-type': 'application/json' })
    const failure = typeof misbehaviour === 'object' ? misbehaviour?.body : { message: 'as scripted' }
    response.end(JSON.stringify(misbehaviour === null ? responseTo(path, body) : failure))
  })

  static async start(): Promise<RerankVendor> {
    const vendor = new RerankVendor()
    await new Promise<void>((resolve) => vendor.#server.listen(0, '127.0.0.1', resolve))
    return vendor
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

/** Best first, by the share of the query's words that each text has. */
export function rankByWords(query: string, texts: readonly string[]) {
  const words = wordsOf(query)
  return texts
    .map((text, index) => ({ index, score: words.filter((word) => wordsOf(text).includes(word)).length / Math.max(1, words.length) }))
    .sort((a, b) => b.score - a.score)
}

function responseTo(path: string, { query, documents, texts, model }: RerankReceived['body']): unknown {
  const words = wordsOf(query)
  const read = documents ?? texts ?? []
  const scored = rankByWords(query, read)
  const results = scored.map(({ index, score }) => ({ index, relevance_score: score }))
  if (path.startsWith('/tei')) return scored
  if (path.startsWith('/jina')) {
    const tokens = read.reduce((sum, text) => sum + wordsOf(text).length + words.length, 0)
    return { model, object: 'list', usage: { total_tokens: tokens }, results }
  }
  const meta = { api_version: { version: '2' }, billed_units: { search_units: Math.ceil(read.length / 100) } }
  return { id: '2f1b3c9e-0000-4000-8000-000000000000', results, meta }
}
