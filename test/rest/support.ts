import { readFileSync } from 'node:fs'
import { Supergraph } from '@apollo/federation-internals'
import { fastify } from 'fastify'
import { type ExecutionResult, GraphQLError, getVariableValues, type OperationDefinitionNode, parse, validate } from 'graphql'
import { restConfig } from '../../rest-adapter/config.ts'
import type { RestDeps } from '../../rest-adapter/http/deps.ts'
import { createRestAdapter } from '../../rest-adapter/main.ts'
import type { ByteRequest, ByteResponse } from '../../subgraphs/common/bytes/byte-response.ts'
import { InvalidApiKey, KisError } from '../../subgraphs/common/errors.ts'
import type { Link, LinkContext, Operation } from '../../subgraphs/common/link/link.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { endableIterator } from '../../subgraphs/common/process/endable-iterator.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { LargeBodies } from '../../subgraphs/common/server/admission/large-bodies.ts'
import { LoadShedder } from '../../subgraphs/common/server/admission/load-shedder.ts'

export const KEY = 'kis_live_the_key_of_these_tests'
/** How long `expect.poll` waits for what comes at once, unless the machine is busy. */
export const SOON = { timeout: 10_000 }

const supergraph = readFileSync(new URL('../../schema/supergraph.graphql', import.meta.url), 'utf8')
// `null`: whoever asks what is not enforced here, the fake judges by the key alone.
const apiSchema = Supergraph.build(supergraph, { supportedFeatures: null }).apiSchema().toGraphQLJSSchema()

/** What the adapter counts for itself, unless a test has a handler for it: the key has no limits. */
const COUNTING = { RateLimits: { rateLimits: null }, CountRequest: { countRequest: null }, CountBody: { countRequest: null } }

type Variables = Readonly<Record<string, unknown>>

/** Each names the variables that it reads. */
type Handler = (variables: never, context: LinkContext<string | null>) => unknown

/**
 * One handler an operation, by the operation's name; what it throws is the operation's error. Subscriptions give their
 * events' data.
 */
export type Handlers = Readonly<Record<string, Handler>>

/**
 * The gateway as its contract says: it takes only operations that the supergraph has, with variables that fit, and
 * judges the key.
 */
export class FakeGateway implements Link<string | null> {
  readonly handlers: Handlers
  readonly received: { readonly name: string; readonly variables: Variables; readonly context: LinkContext<string | null> }[] = []
  /** Subscriptions that were ended by their reader. */
  ended = 0

  constructor(handlers: Handlers) {
    this.handlers = handlers
  }

  async execute(operation: Operation, context: LinkContext<string | null>): Promise<ExecutionResult> {
    try {
      const handler = this.#findHandler(operation, context)
      return { data: (await handler()) as Record<string, unknown> }
    } catch (error) {
      return { errors: [asGraphQLError(error)] }
    }
  }

  subscribe(operation: Operation, context: LinkContext<string | null>): AsyncIterableIterator<ExecutionResult> {
    let source: AsyncIterator<Record<string, unknown>> | undefined
    let failed = false
    return endableIterator<ExecutionResult>(
      async () => {
        if (failed) return { done: true, value: undefined }
        try {
          source ??= (this.#findHandler(operation, context)() as AsyncIterable<Record<string, unknown>>)[Symbol.asyncIterator]()
          const { done, value } = await source.next()
          return done ? { done, value: undefined } : { done: false, value: { data: value } }
        } catch (error) {
          failed = true
          return { done: false, value: { errors: [asGraphQLError(error)] } }
        }
      },
      () => {
        this.ended++
      },
      context.signal,
    )
  }

  /** The handler `openBytes` gets the request instead of variables. */
  async openBytes(request: ByteRequest): Promise<ByteResponse> {
    return (this.handlers.openBytes as (request: ByteRequest) => Promise<ByteResponse>)(request)
  }

  #findHandler({ query, variables = {} }: Operation, context: LinkContext<string | null>): () => unknown {
    const document = parse(query)
    const stale = validate(apiSchema, document)
    if (stale.length > 0) throw new Error(stale.map(({ message }) => message).join('; '))
    const operation = document.definitions[0] as OperationDefinitionNode
    // As they arrive over HTTP: without what was left out.
    const sent = JSON.parse(JSON.stringify(variables)) as Variables
    const { errors } = getVariableValues(apiSchema, operation.variableDefinitions ?? [], sent)
    if (errors) throw new Error(errors.map(({ message }) => message).join('; '))
    if (context.caller !== KEY) throw new InvalidApiKey()
    const name = operation.name!.value
    // What the adapter asks for itself.
    if (name === 'CheckKey' || name === 'OrganizationOfKey') return () => ({ __typename: 'Query', organization: { id: 'org_1' } })
    if (name in COUNTING && !(name in this.handlers)) return () => COUNTING[name as keyof typeof COUNTING]
    this.received.push({ name, variables: sent, context })
    const handler = this.handlers[name]
    if (!handler) throw new Error(`the test has no handler for ${name}`)
    return () => handler(sent as never, context)
  }
}

function asGraphQLError(error: unknown): GraphQLError {
  if (error instanceof KisError) return new GraphQLError(error.message, { extensions: { ...error.extensions } })
  return new GraphQLError(String(error))
}

export interface RunningAdapter extends AsyncDisposable {
  readonly url: string
  readonly gateway: FakeGateway
  /** With the key, a JSON body when one is given, and what `init` adds. */
  fetch(path: string, init?: Omit<RequestInit, 'body'> & { readonly body?: unknown }): Promise<Response>
}

/** The adapter on a real port of this machine, before a fake gateway. */
export async function startAdapter(handlers: Handlers = {}, deps: Partial<RestDeps> = {}): Promise<RunningAdapter> {
  const gateway = new FakeGateway(handlers)
  const adapter = createRestAdapter({
    gateway,
    loadShedder: new LoadShedder({ ageMs: 0, stands: () => false }),
    clock: systemClock,
    ids: idSource(systemClock),
    log: silentLog,
    config: restConfig(),
    bodies: new LargeBodies({ largestBytes: restConfig().uploadBodyBytes }),
    ...deps,
  })
  const app = fastify({ ...adapter.serverOptions, forceCloseConnections: true })
  await adapter.register(app)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return {
    url,
    gateway,
    fetch(path, { body, headers, ...init } = {}) {
      const json = body === undefined ? {} : { body: JSON.stringify(body), method: 'POST' }
      return fetch(url + path, {
        ...json,
        ...init,
        redirect: 'manual',
        headers: {
          authorization: `Bearer ${KEY}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(headers as Record<string, string>),
        },
      })
    },
    [Symbol.asyncDispose]: () => app.close(),
  }
}

/** The fields of an error's body, with what its headers say. */
export async function readError(response: Response) {
  const { error } = (await response.json()) as { error: Record<string, string | null> }
  return {
    status: response.status,
    code: error.code,
    param: error.param,
    type: error.type,
    message: error.message,
    shouldRetry: response.headers.get('x-should-retry'),
  }
}
