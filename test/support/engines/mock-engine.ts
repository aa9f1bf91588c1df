import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { rankByWords } from './rerank-vendor.ts'

/**
 * A chat vendor on loopback that counts its requests. The last word of the model's name, or of the last message,
 * selects the behaviour: `gate` waits for `openGate()`; `slow` answers after 300 ms; `hang` sends two chunks and then
 * nothing; `cut` breaks the connection after two chunks; `429` and `500` answer that status; `large` answers 15 MB of
 * text, which compress well; `nan`, `narrow` and `few`
 * return vectors that are not numbers, too short or too few; `silent` and `segmentless` return transcripts without a
 * length or segments; `/rerank` scores each document by the share of the query's words that it has, and bills a search
 * unit for each 100 documents. Vectors have 8 components, computed from the text, so that equal texts have equal vectors.
 */
export interface MockEngine extends AsyncDisposable {
  readonly url: string
  readonly chats: number
  readonly embeddings: number
  readonly transcriptions: number
  readonly reranks: number
  /** The number of streams whose client disconnected before the end. */
  readonly abandoned: number
  /**
   * The request bodies, newest last. A form is recorded as its fields, with lists for names that end in `[]`, and the
   * file's name and size.
   */
  readonly requests: readonly Record<string, unknown>[]
  /** The request bodies with their arrival, as values of `performance.now()`. */
  readonly arrivals: readonly { readonly atMs: number; readonly body: Readonly<Record<string, unknown>> }[]
  /** Makes every later call answer this status. Null restores the scripts. */
  failWith(status: number | null): void
  /** Lets all present and later calls pass the gate. */
  openGate(): void
  /** Later calls wait at the gate again. */
  closeGate(): void
}

export const MOCK_USAGE = { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25, prompt_tokens_details: { cached_tokens: 4 } }
export const TRANSCRIPT = {
  text: 'Hello from the mock. مرحبا',
  segments: [
    { id: 0, start: 0, end: 1.2, text: ' Hello from the mock.' },
    { id: 1, start: 1.2, end: 2.5, text: ' مرحبا' },
  ],
}
const WORDS = ['Hello', ' from', ' the', ' mock', ' مرحبا']
const LARGE_RESPONSE_BYTES = 15 * 1024 * 1024

export async function startMockEngine(): Promise<MockEngine> {
  const counts = { chats: 0, embeddings: 0, transcriptions: 0, reranks: 0, abandoned: 0 }
  const requests: Record<string, unknown>[] = []
  const arrivals: { readonly atMs: number; readonly body: Record<string, unknown> }[] = []
  let failure: number | null = null
  let gate = Promise.withResolvers<void>()
  const server = createServer(async (request, response) => {
    const atMs = performance.now()
    const speech = request.url?.endsWith('/audio/transcriptions')
    const body = speech ? await readForm(request) : (JSON.parse((await readBytes(request)).toString() || '{}') as Record<string, unknown>)
    requests.push(body)
    arrivals.push({ atMs, body })
    const chat = request.url?.endsWith('/chat/completions')
    const reranks = request.url?.endsWith('/rerank')
    if (chat) counts.chats++
    else if (speech) counts.transcriptions++
    else if (reranks) counts.reranks++
    else counts.embeddings++
    const script = findScript(body, chat === true)
    const status = failure ?? (script === '429' ? 429 : script === '500' ? 500 : null)
    if (status !== null) {
      response.writeHead(status, { 'content-type': 'application/json', ...(status === 429 && { 'retry-after': '1' }) })
      response.end(JSON.stringify({ error: { message: 'as scripted', type: 'server_error', param: null, code: 'scripted' } }))
      return
    }
    if (script === 'gate') await gate.promise
    if (script === 'slow' || script === 'wide') await new Promise((resolve) => setTimeout(resolve, 300))
    if (speech && body.stream !== 'true') return respond(response, createTranscript(body, script))
    if (reranks) return respond(response, rerankResponse(body))
    if (!chat && !speech) return respond(response, createEmbeddings(body, script))
    if (chat && body.stream !== true) return respond(response, createCompletion(body))
    response.on('close', () => {
      if (!response.writableEnded) counts.abandoned++
    })
    if (speech) streamTranscript(response, body, script)
    else stream(response, body, script)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    get chats() {
      return counts.chats
    },
    get embeddings() {
      return counts.embeddings
    },
    get transcriptions() {
      return counts.transcriptions
    },
    get reranks() {
      return counts.reranks
    },
    get abandoned() {
      return counts.abandoned
    },
    requests,
    arrivals,
    failWith(status) {
      failure = status
    },
    openGate: () => gate.resolve(),
    closeGate() {
      gate = Promise.withResolvers()
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function readBytes(request: IncomingMessage): Promise<Buffer<ArrayBuffer>> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

async function readForm(request: IncomingMessage): Promise<Record<string, unknown>> {
  const form = await new Response(await readBytes(request), { headers: { 'content-type': request.headers['content-type']! } }).formData()
  const readPart = (value: File | string) => (value instanceof File ? { name: value.name, size: value.size } : value)
  return Object.fromEntries(
    [...new Set(form.keys())].map((name) => [name, name.endsWith('[]') ? form.getAll(name).map(readPart) : readPart(form.get(name)!)]),
  )
}

/**
 * Returns the transcript of 2.5 s of speech. As with OpenAI, `json` has only the text and the length in whole seconds.
 */
function createTranscript({ response_format }: Record<string, unknown>, script: string) {
  const usage = script === 'silent' ? {} : { usage: { type: 'duration', seconds: 3 } }
  if (response_format === 'json') return { text: TRANSCRIPT.text, ...usage }
  const { segments, ...rest } = TRANSCRIPT
  return { task: 'transcribe', language: 'english', duration: 2.5, ...rest, ...(script !== 'segmentless' && { segments }), ...usage }
}

export const TRANSCRIPT_DELTAS = ['Hello', ' from the mock.', ' مرحبا']
export const TRANSCRIPT_USAGE = { type: 'tokens', input_tokens: 40, output_tokens: 9, total_tokens: 49 }

/** Streams a transcript like OpenAI's models, with the token usage in the last event. */
function streamTranscript(response: ServerResponse, { response_format }: Record<string, unknown>, script: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (event: unknown) => response.write(`data: ${JSON.stringify(event)}\n\n`)
  const [first, ...others] = TRANSCRIPT_DELTAS.map((delta) => ({ type: 'transcript.text.delta', delta }))
  send(first)
  if (script === 'hang') return
  if (script === 'cut') {
    setTimeout(() => response.destroy(), 50)
    return
  }
  for (const event of others) send(event)
  if (response_format === 'diarized_json')
    for (const segment of TRANSCRIPT.segments) send({ type: 'transcript.text.segment', ...segment, id: `seg_${segment.id}`, speaker: 'A' })
  send({ type: 'transcript.text.done', text: TRANSCRIPT.text, usage: TRANSCRIPT_USAGE })
  response.end()
}

function findScript(body: Record<string, unknown>, chat: boolean): string {
  const last = chat ? (body.messages as { content: unknown }[]).at(-1)?.content : body.model
  return typeof last === 'string' ? (last.split(/[\s-]/).at(-1) ?? '') : ''
}

function respond(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body, (_key, value) => (Number.isNaN(value) ? 'NaN' : value)).replaceAll('"NaN"', 'NaN'))
}

function createCompletion({ model, messages }: Record<string, unknown>) {
  const last = (messages as { content: unknown }[]).at(-1)?.content
  const isLarge = typeof last === 'string' && last.endsWith('large')
  const content = isLarge ? 'large '.repeat(LARGE_RESPONSE_BYTES / 6) : (suggestQuestions(last) ?? WORDS.join(''))
  const message = { role: 'assistant', content, refusal: null }
  return {
    id: 'chatcmpl-mock',
    object: 'chat.completion',
    created: 1_750_000_000,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
    usage: MOCK_USAGE,
    vendor_extra: { kept: true },
  }
}

/** Questions about passages, in the languages that are asked for: one that the passage answers, and one with words of no passage. */
function suggestQuestions(content: unknown): string | null {
  if (typeof content !== 'string' || !content.startsWith('{"passages":')) return null
  const { passages } = JSON.parse(content) as { passages: { text: string; languages: string[] }[] }
  const questions = passages.flatMap(({ text, languages }, index) => [
    ...languages.map((language) => ({
      passage: index,
      question: language === 'Arabic' ? `ماذا يقول النص ${index}؟` : `What does passage ${index} say?`,
      phrase: text.split(/\s+/).slice(0, 4).join(' '),
    })),
    { passage: index, question: 'What is made up?', phrase: 'words of no passage at all' },
  ])
  return JSON.stringify({ questions })
}

function stream(response: ServerResponse, { model }: Record<string, unknown>, script: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const head = { id: 'chatcmpl-mock', object: 'chat.completion.chunk', created: 1_750_000_000, model }
  const send = (rest: unknown) => response.write(`data: ${JSON.stringify({ ...head, ...(rest as object) })}\n\n`)
  const delta = (content: object, finish_reason: string | null = null) =>
    send({ choices: [{ index: 0, delta: content, logprobs: null, finish_reason }] })
  delta({ role: 'assistant', content: '', refusal: null })
  if (script === 'hang' || script === 'cut') {
    delta({ content: WORDS[0] })
    if (script === 'cut') setTimeout(() => response.destroy(), 50)
    return
  }
  for (const word of WORDS) delta({ content: word })
  delta({}, 'stop')
  send({ choices: [], usage: MOCK_USAGE })
  response.end('data: [DONE]\n\n')
}

/** As Cohere. */
function rerankResponse({ query, documents }: Record<string, unknown>) {
  const results = rankByWords(query as string, documents as string[]).map(({ index, score }) => ({ index, relevance_score: score }))
  return { id: 'mock', results, meta: { billed_units: { search_units: Math.ceil(results.length / 100) } } }
}

function createEmbeddings({ model, input, encoding_format }: Record<string, unknown>, script: string) {
  const texts = (Array.isArray(input) ? input : [input]) as unknown[]
  const width = script === 'narrow' ? 7 : script === 'wide' ? 16 : 8
  const vectors = texts.map((text) => {
    const vector = new Float32Array(width)
    for (const [i, byte] of Buffer.from(String(text)).entries()) vector[i % width]! += byte
    // A vector for an empty text, or of zeros only, needs a direction too.
    if (vector.every((component) => component === 0)) vector[0] = 1
    if (script === 'nan') vector[0] = Number.NaN
    return vector
  })
  const data = (script === 'few' ? vectors.slice(1) : vectors).map((vector, index) => ({
    object: 'embedding',
    index,
    embedding: encoding_format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector],
  }))
  const tokens = texts.length * 10
  return { object: 'list', data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } }
}
