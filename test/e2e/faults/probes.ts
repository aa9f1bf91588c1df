import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import {
  addDocument,
  balancedWallet,
  base64,
  type Caller,
  createCaller,
  type Json,
  newCollection,
  newOrganization,
  type RestResponse,
  settled,
} from '../../support/client.ts'
import type { Script } from '../../support/engines/metered-engine.ts'
import { eventually } from '../../support/eventually.ts'
import type { Parts } from './parts.ts'

/** How long a client of the probes waits for an answer, or for the next piece of one. */
export const PATIENCE_MS = 20_000
/** A vendor of embeddings that has been cut off is asked again when its answer does not come. */
const EMBEDDED_MS = 200_000
/** Output tokens tell in the usage records which call of the fault it was. Calls before and after it have one. */
const CHAT_PIECES = 3
const STREAM_PIECES = 10
const STREAM_BEFORE = 5
const RUN_PIECES = 2

/** What a client saw of a fault. */
export interface Seen {
  readonly chat: string
  readonly stream: string
  readonly run: string
  readonly read: string
  readonly search: string
  readonly upload: string
}

/** One organization, and what it asks before, while and after something fails. */
export class Probes {
  readonly #parts: Parts
  readonly #id: string
  /** Past the proxy of clients. */
  readonly #direct: Caller
  /** Its key is known to every part. */
  readonly #client: Caller
  /** Its key is used while something fails, and not before. */
  readonly #late: Caller
  readonly #collection: Json
  readonly #agent: Json
  /** Documents that were acknowledged. */
  readonly #accepted: string[] = []
  #rounds = 0

  private constructor(parts: Parts, id: string, direct: Caller, lateKey: string, collection: Json, agent: Json) {
    const service = { ...parts.service, rest: parts.clientsAddress }
    this.#parts = parts
    this.#id = id
    this.#direct = direct
    this.#client = createCaller(service, direct.key)
    this.#late = createCaller(service, lateKey)
    this.#collection = collection
    this.#agent = agent
  }

  static async create(parts: Parts, id: string): Promise<Probes> {
    const { service } = parts
    const direct = await newOrganization(createCaller(service, service.key), service)
    const collection = await newCollection(direct, 'mock-embed')
    await addDocument(direct, collection.id, 'a.txt', 'The sultan keeps his letters in a cedar chest.')
    const agent = await direct.rest('POST', '/v1/agents', { code: 'a', name: 'A', model: 'metered', collection_ids: [collection.id] })
    const key = await direct.rest('POST', '/v1/keys', {
      name: 'late',
      scopes: ['inference', 'agents', 'knowledge:read', 'knowledge:write'],
    })
    expect([agent.status, key.status]).toEqual([201, 201])
    const probes = new Probes(parts, id, direct, key.body.key, collection, agent.body)
    // So that every link has connections.
    await eventually(() => probes.isWell(), 3 * PATIENCE_MS)
    return probes
  }

  /** Asks everything while the fault lasts, beside a stream that began before it. */
  async during(start: () => void | Promise<void>): Promise<Seen> {
    const script: Script = { id: `${this.#id}-stream`, pieces: STREAM_PIECES, usage: 'end', allowed: STREAM_BEFORE }
    const begun = Promise.withResolvers<void>()
    const streamed = this.#stream(script, begun.resolve)
    await Promise.race([begun.promise, streamed.then((seen) => Promise.reject(new Error(`${this.#id}: before the fault: ${seen}`)))])
    await start()
    this.#parts.engine.calls.get(script.id)!.allow(STREAM_PIECES + 1)
    const [chat, run, read, search, upload] = await this.#sendAll(this.#late, CHAT_PIECES, RUN_PIECES)
    return { chat, stream: await streamed, run, read, search, upload }
  }

  /** Whether everything is answered. */
  async isWell(): Promise<boolean> {
    return (await this.#sendAll(this.#client, 1, 1)).every((outcome) => outcome === 'answered')
  }

  /** Waits until every document that was acknowledged is ready. */
  async documentsAreReady(): Promise<void> {
    for (const id of this.#accepted)
      expect(await settled(this.#direct, this.#collection.id, id, EMBEDDED_MS)).toMatchObject({ status: 'ready' })
  }

  async holdsNothing(): Promise<boolean> {
    return (await this.#direct.rest('GET', '/v1/wallet')).body.held_usd === '0'
  }

  /**
   * Says which calls of the fault are charged. Call it when nothing is held.
   * @throws {AssertionError} the ledger does not add up, or the engine was asked twice for a call
   */
  async charged(): Promise<string> {
    await balancedWallet(this.#direct)
    for (const [id, { requests }] of this.#parts.engine.calls) if (id.startsWith(`${this.#id}-`)) expect([id, requests]).toEqual([id, 1])
    const { body } = await this.#direct.rest('GET', '/v1/usage?limit=100')
    const outputs = body.data.flatMap((record: Json) => (record.operation === 'chat_completion' ? [record.output_tokens] : []))
    const times = (tokens: number) => outputs.filter((each: number) => each === tokens).length
    const names = [
      ['chat', times(CHAT_PIECES)],
      ['stream', times(STREAM_PIECES)],
      ['run', times(RUN_PIECES)],
    ] as const
    for (const [name, count] of names) expect([name, count]).toEqual([name, Math.min(count, 1)])
    const others = outputs.filter((tokens: number) => ![1, CHAT_PIECES, STREAM_PIECES, RUN_PIECES].includes(tokens))
    const said = [...names.filter(([, count]) => count === 1).map(([name]) => name), ...(others.length > 0 ? ['part of the stream'] : [])]
    return said.join(', ') || 'nothing'
  }

  async #sendAll(client: Caller, chatPieces: number, runPieces: number): Promise<readonly [string, string, string, string, string]> {
    const round = ++this.#rounds
    const path = `/v1/collections/${this.#collection.id}`
    const script = (kind: string, pieces: number) =>
      JSON.stringify({ id: `${this.#id}-${kind}-${round}`, pieces, usage: 'end' } satisfies Script)
    const chat = { model: 'metered', messages: [{ role: 'user', content: script('chat', chatPieces) }] }
    return Promise.all([
      send(client, 'POST', '/v1/chat/completions', chat),
      send(client, 'POST', `/v1/agents/${this.#agent.id}/runs`, { input: script('run', runPieces) }),
      send(client, 'GET', path),
      send(client, 'POST', `${path}/search`, { query: 'letters of the sultan' }),
      this.#upload(client, `Letter ${round}.`),
    ])
  }

  async #upload(client: Caller, text: string): Promise<string> {
    let fileId = ''
    const uploaded = await send(client, 'POST', '/v1/files', { file_name: 'a.txt', content_base64: base64(text) }, ({ body }) => {
      fileId = body.message.id
    })
    if (uploaded !== 'answered') return uploaded
    const documents = `/v1/collections/${this.#collection.id}/documents`
    return send(client, 'POST', documents, { file_id: fileId }, ({ body }) => this.#accepted.push(body.id))
  }

  /** Says how a stream ended. `begun` is called when the pieces before the fault have come. */
  async #stream(script: Script, begun: () => void): Promise<string> {
    let text = ''
    const pieces = () => text.split('" word"').length - 1
    const end = () => {
      const code = /"code":\s*"(\w+)"/.exec(text)?.[1]
      return code ? `\`${code}\`` : text.includes('[DONE]') ? 'the end' : 'the connection is lost'
    }
    const controller = new AbortController()
    const response = await fetch(`${this.#parts.clientsAddress}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#client.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'metered', stream: true, messages: [{ role: 'user', content: JSON.stringify(script) }] }),
      signal: controller.signal,
    })
    let timer = setTimeout(() => controller.abort(), PATIENCE_MS)
    try {
      for await (const bytes of response.body!) {
        clearTimeout(timer)
        timer = setTimeout(() => controller.abort(), PATIENCE_MS)
        text += Buffer.from(bytes)
        if (pieces() === STREAM_BEFORE) begun()
      }
    } catch {
      if (controller.signal.aborted) return pieces() === STREAM_PIECES ? 'all, no end' : 'nothing more'
    } finally {
      clearTimeout(timer)
    }
    if (end() === 'the end' && pieces() === STREAM_PIECES) return 'all of it'
    return end()
  }
}

/** Gives `answered`, the status and the code of a failure, or what else became of a call. */
async function send(
  client: Caller,
  method: string,
  path: string,
  body?: unknown,
  onResponse?: (response: RestResponse) => void,
): Promise<string> {
  const outcome = client.rest(method, path, body).then(
    (response) => {
      if (response.status >= 300) return `${response.status} \`${response.body.error?.code ?? response.body}\``
      onResponse?.(response)
      return 'answered'
    },
    (error) => {
      if (!(error instanceof TypeError)) throw error
      return 'no connection'
    },
  )
  const over = new AbortController()
  try {
    return await Promise.race([outcome, sleep(PATIENCE_MS, 'no answer', over)])
  } finally {
    over.abort()
    outcome.catch(() => undefined)
  }
}
