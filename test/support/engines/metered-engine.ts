import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a call tells the engine to do, as JSON in its last message. */
export interface Script {
  /** Names the call in `calls`. */
  readonly id: string
  /** Pieces of the answer, one token each. */
  readonly pieces: number
  /**
   * When the engine reports usage: on every chunk, at the end, or never. A number: tokens of output that it says it has
   * made, at the end.
   */
  readonly usage: 'each' | 'end' | 'never' | number
  /**
   * Pieces that are sent without `allow`. Default: all. A unary answer is sent when all its pieces are allowed, its
   * head with the first.
   */
  readonly allowed?: number
  /** `refuses`: with 503, at once. `babbles`: after its pieces it sends an event that is no JSON. */
  readonly fails?: 'refuses' | 'babbles'
}

/** What the engine knows of one call; the same call asked again is counted. */
export interface MeteredCall {
  readonly asked: number
  /** Pieces that were given away. */
  readonly produced: number
  /** By `performance.now()`, when the connection of the answer was closed; null: it is open. */
  readonly closedAt: number | null
  readonly hasFinished: boolean
  /** Lets it send this many pieces in all. */
  allow(pieces: number): void
}

/** Tokens of input that the engine reports for any call. */
export const METERED_INPUT_TOKENS = 30

/**
 * A vendor of the chat protocol on loopback that produces no more than it is allowed to, and keeps its own count of
 * that.
 */
export class MeteredEngine implements AsyncDisposable {
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch(() => response.destroy())
  })
  readonly calls = new Map<string, Call>()

  static async start(): Promise<MeteredEngine> {
    const engine = new MeteredEngine()
    engine.#server.listen(0, '127.0.0.1')
    await once(engine.#server, 'listening')
    return engine
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const { model, stream, messages } = JSON.parse(Buffer.concat(pieces).toString())
    const script = JSON.parse(messages.at(-1).content) as Script
    const call = this.calls.get(script.id) ?? new Call(script.allowed ?? script.pieces)
    this.calls.set(script.id, call)
    call.asked++
    response.on('close', () => {
      call.closedAt = performance.now()
      call.wake()
    })
    if (script.fails === 'refuses') {
      response.writeHead(503, { 'content-type': 'application/json' })
      return void response.end('{"error":{"message":"as scripted","type":"server_error","param":null,"code":null}}')
    }
    const head = { id: `chatcmpl-${script.id}`, created: 1_750_000_000, model }
    await call.until(1)
    if (response.destroyed) return
    if (stream) await answerInChunks(response, script, call, head)
    else await answerWhole(response, script, call, head)
  }
}

class Call implements MeteredCall {
  asked = 0
  produced = 0
  closedAt: number | null = null
  hasFinished = false
  #allowed: number
  #woken = Promise.withResolvers<void>()

  constructor(allowed: number) {
    this.#allowed = allowed
  }

  allow(pieces: number): void {
    this.#allowed = Math.max(this.#allowed, pieces)
    this.wake()
  }

  wake(): void {
    this.#woken.resolve()
    this.#woken = Promise.withResolvers()
  }

  /** Waits until so many pieces are allowed, or the caller is gone. */
  async until(pieces: number): Promise<void> {
    while (this.#allowed < pieces && this.closedAt === null) await this.#woken.promise
  }
}

function makeUsage({ usage, pieces }: Script, produced: number) {
  const completion_tokens = typeof usage === 'number' ? usage : Math.min(produced, pieces)
  return { prompt_tokens: METERED_INPUT_TOKENS, completion_tokens, total_tokens: METERED_INPUT_TOKENS + completion_tokens }
}

async function answerInChunks(response: ServerResponse, script: Script, call: Call, head: object): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (rest: object) => response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...rest })}\n\n`)
  const each = () => (script.usage === 'each' ? { usage: makeUsage(script, call.produced) } : {})
  for (let piece = 1; piece <= script.pieces; piece++) {
    await call.until(piece)
    if (response.destroyed) return
    call.produced = piece
    send({
      choices: [{ index: 0, delta: { ...(piece === 1 && { role: 'assistant' }), content: ' word' }, finish_reason: null }],
      ...each(),
    })
  }
  if (script.fails === 'babbles') {
    response.write('data: {"choices": [oh no\n\n')
    return void response.end()
  }
  send({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  if (script.usage !== 'never') send({ choices: [], usage: makeUsage(script, call.produced) })
  // One piece more than there are: the end itself waits, so that a caller can leave when all has been said.
  await call.until(script.allowed === undefined ? script.pieces : script.pieces + 1)
  if (response.destroyed) return
  call.hasFinished = true
  response.end('data: [DONE]\n\n')
}

async function answerWhole(response: ServerResponse, script: Script, call: Call, head: object): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.flushHeaders()
  await call.until(script.pieces)
  if (response.destroyed) return
  call.produced = script.pieces
  call.hasFinished = true
  const message = { role: 'assistant', content: ' word'.repeat(script.pieces), refusal: null }
  const usage = script.usage === 'never' ? {} : { usage: makeUsage(script, call.produced) }
  response.end(
    JSON.stringify({
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
      ...usage,
    }),
  )
}
