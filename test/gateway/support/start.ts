import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import { type Client, createClient } from 'graphql-ws'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import type { GatewayConfig } from '../../../gateway/config.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../../../gateway/main.ts'
import type { SessionStore } from '../../../gateway/sessions/session-store.ts'
import { bytePaths } from '../../../subgraphs/common/bytes/byte-paths.ts'
import { InvalidApiKey } from '../../../subgraphs/common/errors.ts'
import type { Principal } from '../../../subgraphs/common/identity/principal.ts'
import { systemClock } from '../../../subgraphs/common/process/clock.ts'
import { silentLog } from '../../../subgraphs/common/process/log.ts'
import { LargeBodies } from '../../../subgraphs/common/server/admission/large-bodies.ts'
import { LoadShedder } from '../../../subgraphs/common/server/admission/load-shedder.ts'
import { Origins } from '../../../subgraphs/common/server/origins.ts'
import type { Json } from '../../support/client.ts'
import { shop } from './shop.ts'

/** Three keys of two organizations. */
export const KEY = `kis_live_${'a'.repeat(36)}`
export const OTHER_KEY = `kis_live_${'b'.repeat(36)}`
export const UNKNOWN_KEY = `kis_live_${'z'.repeat(36)}`

export function createPrincipal(apiKey: string): Principal {
  return {
    organizationId: `org_${apiKey.at(-1)}`,
    apiKeyId: `key_${apiKey.at(-1)}`,
    scopes: ['inference'],
    modelAllowlist: null,
    residencyPolicy: 'unrestricted',
    revision: 0,
    ancestors: [],
    rotations: 0,
    requestsPerMinute: null,
    tokensPerMinute: null,
    plan: { code: 'p', storageBytes: null, vectors: null, maxFileBytes: 1, requestsPerMinute: null, tokensPerMinute: null, concurrency: 1 },
  }
}

/** Nobody signs in. */
export const NO_SESSIONS: SessionStore = {
  open: async () => {
    throw new InvalidApiKey()
  },
  end: async () => undefined,
}

export const BYTE_PATHS = bytePaths(systemClock, randomBytes(32))

export const CONFIG: GatewayConfig = {
  introspection: true,
  maxBodyBytes: 1024 * 1024,
  trustedDocuments: new Map(),
  trustedDocumentsOnly: false,
  countNodes: () => 10_000,
  origins: new Origins(),
  oauth: null,
}

/** A gateway on a free port over the shop's subgraphs, closed when the test ends. */
export async function startGateway(options: Partial<GatewayOptions> = {}) {
  const { supergraphSdl, links, seen, start } = shop()
  /** Keys that were revoked, and the keys that were looked up, in order. */
  const revoked = new Set<string>()
  const lookups: string[] = []
  const gateway: Gateway = await createGateway({
    supergraphSdl,
    links,
    bytePaths: BYTE_PATHS,
    loadShedder: new LoadShedder({ ageMs: 0, stands: () => false }),
    sessions: NO_SESSIONS,
    authenticate: async (apiKey) => {
      lookups.push(apiKey)
      if (apiKey === UNKNOWN_KEY || revoked.has(apiKey)) throw new InvalidApiKey()
      return createPrincipal(apiKey)
    },
    clock: systemClock,
    log: silentLog,
    config: CONFIG,
    bodies: new LargeBodies({ largestBytes: (options.config ?? CONFIG).maxBodyBytes }),
    ...options,
  })
  // Clients open spare connections, as after an abort, which closing would wait for.
  const app = fastify({ forceCloseConnections: true })
  const parts = await gateway.register(app)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/graphql`
  const stop = async () => {
    await gateway[Symbol.asyncDispose]()
    await app.close()
  }
  onTestFinished(stop)

  async function post(body: unknown, headers: Record<string, string> = { authorization: `Bearer ${KEY}` }) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Json }
  }

  return { gateway, parts, app, url, wsUrl: url.replace('http', 'ws'), seen, start, revoked, lookups, post, stop }
}

export interface Closed {
  readonly code: number
  readonly reason: string
}

/** A graphql-ws client; `closed` resolves when its socket closes. */
export function connect(wsUrl: string, connectionParams: Record<string, unknown> = { authorization: `Bearer ${KEY}` }) {
  let socket: WebSocket | undefined
  let onClosed: (closed: Closed) => void = () => undefined
  const closed = new Promise<Closed>((resolve) => {
    onClosed = resolve
  })
  const client: Client = createClient({
    url: wsUrl,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
    // Long enough to stay open between two operations of a test.
    lazyCloseTimeout: 60_000,
    connectionParams,
    on: {
      opened: (opened) => {
        socket = opened as WebSocket
      },
      closed: (event) => onClosed(event as Closed),
    },
  })
  onTestFinished(() => client.dispose())
  return { client, closed, socket: () => socket! }
}

/** Subscribes and notes what comes. */
export function collect(
  client: Client,
  query: string,
  variables: Record<string, unknown> = {},
  operationName?: string,
  extensions?: Record<string, unknown>,
) {
  const results: Json[] = []
  let error: Json
  let done: () => void = () => undefined
  const over = new Promise<void>((resolve) => {
    done = resolve
  })
  const cancel = client.subscribe(
    { query, variables, ...(operationName && { operationName }), ...(extensions && { extensions }) },
    {
      next: (result) => void results.push(result),
      error: (reason) => {
        error = reason
        done()
      },
      complete: () => done(),
    },
  )
  return {
    results,
    cancel,
    over,
    /** Of the `error` frame that ended it. */
    error: () => error,
  }
}
