import { type Client, createClient } from 'graphql-ws'
import OpenAI from 'openai'
import { WebSocket } from 'ws'
import type { Service } from './processes/service.ts'
import { faultOfResponse } from './rest-responses.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
export type Json = any

export interface RestResponse {
  readonly status: number
  readonly body: Json
  readonly headers: Headers
}

/** The operations of a key's holder over every transport. */
export interface Caller {
  readonly key: string
  /** The service that it calls. */
  readonly service: Pick<Service, 'rest' | 'graphql'>
  readonly openai: OpenAI
  rest(method: string, path: string, body?: unknown): Promise<RestResponse>
  graphql(
    query: string,
    variables?: Record<string, unknown>,
  ): Promise<{ data: Json; errors?: { message: string; path?: unknown; extensions: Json }[] }>
  socket(): Client
  /** Exchanges the key for a session, as the portal does. Gives its id and the cookie, `name=value`. */
  signIn(): Promise<{ readonly id: string; readonly cookie: string }>
}

export function createCaller(service: Pick<Service, 'rest' | 'graphql'>, key: string): Caller {
  const authorization = `Bearer ${key}`
  return {
    key,
    service,
    openai: new OpenAI({ baseURL: `${service.rest}/v1`, apiKey: key || 'none', maxRetries: 0 }),
    async rest(method, path, body) {
      const response = await fetch(`${service.rest}${path}`, {
        method,
        headers: { authorization, ...(body !== undefined && !(body instanceof FormData) && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { body: typeof body === 'string' || body instanceof FormData ? body : JSON.stringify(body) }),
      })
      const text = await response.text()
      const fault = faultOfResponse({ method, path, status: response.status, contentType: response.headers.get('content-type'), text })
      if (fault) throw new Error(`The contract is not kept. ${fault}`)
      return { status: response.status, headers: response.headers, body: text.startsWith('{') ? JSON.parse(text) : text }
    },
    async graphql(query, variables) {
      const response = await fetch(service.graphql, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify({ query, variables }),
      })
      return response.json() as never
    },
    socket: () =>
      createClient({
        url: service.graphql.replace(/^http/, 'ws'),
        webSocketImpl: WebSocket,
        connectionParams: { authorization },
        retryAttempts: 0,
        lazy: true,
      }),
    async signIn() {
      const response = await fetch(new URL('/session', service.graphql), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
        body: JSON.stringify({ api_key: key }),
      })
      const { id } = (await response.json()) as Json
      return { id, cookie: response.headers.getSetCookie()[0]!.split(';')[0]! }
    },
  }
}

/** Creates an organization with an admin key and, unless it is 0, this credit. */
export async function newOrganization(
  operator: Caller,
  service: Service,
  { creditUsd = '10', plan = 'self-hosted', name = 'Test' }: { creditUsd?: string; plan?: string; name?: string } = {},
): Promise<Caller & { readonly organizationId: string }> {
  const created = await operator.rest('POST', '/v1/organizations', { name, plan })
  if (created.status !== 201) throw new Error(JSON.stringify(created.body))
  if (creditUsd !== '0') {
    const topUp = await operator.rest('POST', `/v1/organizations/${created.body.id}/top-ups`, { amount_usd: creditUsd, reference: 'test' })
    if (topUp.status !== 201) throw new Error(JSON.stringify(topUp.body))
  }
  return { ...createCaller(service, created.body.key), organizationId: created.body.id }
}

export const base64 = (text: string) => Buffer.from(text).toString('base64')

/** Uploads and attaches a text, and waits until the document is ready or failed. */
export async function addDocument(
  caller: Caller,
  collectionId: string,
  fileName: string,
  content: string | Uint8Array,
  metadata?: Record<string, unknown>,
): Promise<Json> {
  const uploaded = await caller.rest('POST', '/v1/files', { file_name: fileName, content_base64: Buffer.from(content).toString('base64') })
  if (uploaded.status !== 201) throw new Error(JSON.stringify(uploaded.body))
  const attached = await caller.rest('POST', `/v1/collections/${collectionId}/documents`, {
    file_id: uploaded.body.message.id,
    ...(metadata && { metadata }),
  })
  if (attached.status !== 201) throw new Error(JSON.stringify(attached.body))
  return settled(caller, collectionId, attached.body.id)
}

/** Returns the document when its ingestion has ended. */
export async function settled(caller: Caller, collectionId: string, documentId: string, timeoutMs = 60_000): Promise<Json> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const { body } = await caller.rest('GET', `/v1/collections/${collectionId}/documents/${documentId}`)
    if (body.status === 'ready' || body.status === 'failed') return body
    if (Date.now() > deadline) throw new Error(`not ended: ${JSON.stringify(body)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

export async function newCollection(
  caller: Caller,
  embeddingModel = 'e5-small-ar-en',
  code = `c${Math.random().toString(36).slice(2)}`,
): Promise<Json> {
  const { status, body } = await caller.rest('POST', '/v1/collections', {
    collection_code: code,
    collection_name: 'Test',
    embedding_model: embeddingModel,
  })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body
}

/** Throws unless nothing is held and the ledger entries add up to the balance. Returns the wallet. */
export async function balancedWallet(caller: Caller): Promise<{ balance_usd: string; held_usd: string; available_usd: string }> {
  const wallet = (await caller.rest('GET', '/v1/wallet')).body
  let sum = 0n
  for (let after = ''; ; ) {
    const { body } = await caller.rest('GET', `/v1/wallet/entries?limit=100${after && `&after=${after}`}`)
    for (const entry of body.data) sum += nano(entry.amount_usd)
    if (!body.has_more) break
    after = body.last_id
  }
  if (nano(wallet.held_usd) !== 0n) throw new Error(`held: ${wallet.held_usd}`)
  if (sum !== nano(wallet.balance_usd)) throw new Error(`entries sum to ${sum}, the balance is ${wallet.balance_usd}`)
  return wallet
}

/** Converts a decimal string in USD to nano-USD. */
export function nano(usd: string): bigint {
  const [whole = '0', fraction = ''] = usd.replace('-', '').split('.')
  const amount = BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'))
  return usd.startsWith('-') ? -amount : amount
}
