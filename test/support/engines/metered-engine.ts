import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The instructions of a call to the engine, as JSON in its last message. */
export interface Script {
  /** The name of the call in `calls`. */
  readonly id: string
  /** The number of pieces of the answer, one token each. */
  readonly pieces: number
  /**
   * When the engine reports usage: with every chunk, at the end, or never. A number is the output tokens that it
   * reports at the end.
   */
  readonly usage: 'each' | 'end' | 'never' | number
  /**
   * The number of pieces that are sent without a call of `allow`; all by default. A unary answer sends its head when
   * the first piece is allowed, and its body when all are.
   */
  readonly allowed?: number
  /** Each piece is its own number, so that a lost or repeated one shows. */
  readonly isNumbered?: boolean
  /** `refuses` answers 503 at once. `babbles` sends an event that is not JSON after the pieces. */
  readonly fails?: 'refuses' | 'babbles'
}

/** What the engine records about a call. A repeated call is counted. */
export interface MeteredCall {
  readonly requests: number
  /** The number of pieces sent. */
  readonly produced: number
  /** When the answer's connection closed, as a value of `performance.now()`. Null while it is open. */
  readonly closedAt: number | null
  readonly hasFinished: boolean
  /** Allows this number of pieces in total. */
  allow(pieces: number): void
}

/** The input tokens that the engine reports for every call. */
export const METERED_INPUT_TOKENS = 30

/** A chat vendor on loopback that produces only as many pieces as it is allowed to, and counts them. */
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
    call.requests++
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
    if (stream) await respondInChunks(response, script, call, head)
    else await respondBuffered(response, script, call, head)
  }
}

class Call implements MeteredCall {
  requests = 0
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

  /** Waits until this number of pieces is allowed, or the caller has disconnected. */
  async until(pieces: number): Promise<void> {
    while (this.#allowed < pieces && this.closedAt === null) await this.#woken.promise
  }
}

function createUsage({ usage, pieces }: Script, produced: number) {
  const completion_tokens = typeof usage === 'number' ? usage : Math.min(produced, pieces)
  return { prompt_tokens: METERED_INPUT_TOKENS, completion_tokens, total_tokens: METERED_INPUT_TOKENS + completion_tokens }
}

async function respondInChunks(response: ServerResponse, script: Script, call: Call, head: object): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (rest: object) => response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...rest })}\n\n`)
  const each = () => (script.usage === 'each' ? { usage: createUsage(script, call.produced) } : {})
  for (let piece = 1; piece <= script.pieces; piece++) {
    await call.until(piece)
    if (response.destroyed) return
    call.produced = piece
    send({
      choices: [
        {
          index: 0,
          delta: { ...(piece === 1 && { role: 'assistant' }), content: script.isNumbered ? ` ${piece}` : ' word' },
          finish_reason: null,
        },
      ],
      ...each(),
    })
  }
  if (script.fails === 'babbles') {
    response.write('data: {"choices": [oh no\n\n')
    return void response.end()
  }
  send({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  if (script.usage !== 'never') send({ choices: [], usage: createUsage(script, call.produced) })
  // Wait for one more piece than there are, so that a caller can disconnect after the last piece and before the end.
  await call.until(script.allowed === undefined ? script.pieces : script.pieces + 1)
  if (response.destroyed) return
  call.hasFinished = true
  response.end('data: [DONE]\n\n')
}

async function respondBuffered(response: ServerResponse, script: Script, call: Call, head: object): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.flushHeaders()
  await call.until(script.pieces)
  if (response.destroyed) return
  call.produced = script.pieces
  call.hasFinished = true
  const message = { role: 'assistant', content: ' word'.repeat(script.pieces), refusal: null }
  const usage = script.usage === 'never' ? {} : { usage: createUsage(script, call.produced) }
  response.end(
    JSON.stringify({
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
      ...usage,
    }),
  )
}
