import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { ERRORS, type ErrorCode } from '../../schema/errors.ts'
import { testCatalog } from '../support/catalog.ts'
import { type Caller, createCaller, type Json, newOrganization } from '../support/client.ts'
import {
  createSelection,
  graphqlPositions,
  openapi,
  type RestOperation,
  type RootField,
  rootFields,
  routeName,
} from '../support/contract.ts'
import { wav } from '../support/data/audio.ts'
import { hostileJson, hostileText, pathsIn, withAt, writeJson } from '../support/data/hostile.ts'
import { type MockEngine, startMockEngine } from '../support/engines/mock-engine.ts'
import { WebhookReceiver } from '../support/engines/webhook-receiver.ts'
import { eventually } from '../support/eventually.ts'
import { FUZZ_TIMEOUT_MS, fuzz } from '../support/fuzz.ts'
import { MemberIssuer } from '../support/processes/member-issuer.ts'
import { type Service, startEmbedded } from '../support/processes/service.ts'
import { faultOfResponse } from '../support/rest-responses.ts'
import { furnish, type Possessions } from '../support/tenant.ts'
import { ARGUMENTS, BODIES, PATHS, SUBSCRIPTION_ARGUMENTS } from '../support/tenant-positions.ts'
import { Wire, type WireResponse } from '../support/wire.ts'

/** No answer takes longer, or takes longer twice; the vendors' part in it is a mock that answers at once. */
const SLOW_MS = 2_000
/** On a machine that is busy with other things it is so many times what a change of one record has just taken. */
const SLOW_CHANGES = 100
/** What the process may grow by: caches that are bounded fill up, and the allocator keeps what it has had. */
const MAX_GROWTH_BYTES = 600 * 1024 * 1024
/** Files, sockets and timers of connections that are being closed. */
const MAX_MORE_HANDLES = 40
/** A subscription without an end is left after this long. */
const LISTENED_MS = 150

interface Request {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
  readonly chunked: boolean
}

describe('Fuzzed input', () => {
  let mock: MockEngine
  let receiver: WebhookReceiver
  let memberIssuer: MemberIssuer
  let service: Service
  let wire: Wire
  let tenant: Caller & { readonly organizationId: string }
  let own: Possessions
  let changeMs = 0
  beforeAll(async () => {
    mock = await startMockEngine()
    receiver = await WebhookReceiver.start()
    memberIssuer = await MemberIssuer.start()
    service = await startEmbedded({ catalog: testCatalog(mock.url), env: { KIS_EGRESS_ALLOW: receiver.host, ...memberIssuer.env } })
    wire = new Wire(service.rest)
    tenant = await newOrganization(createCaller(service, service.key), service, { creditUsd: '1000' })
    own = await furnish(tenant, 'f', receiver, memberIssuer)
  }, 120_000)
  afterAll(async () => {
    wire?.close()
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    await receiver?.[Symbol.asyncDispose]()
    await memberIssuer?.[Symbol.asyncDispose]()
  })

  const show = ({ method, path, headers, body, chunked }: Request) =>
    `${method} ${path.slice(0, 400)} ${JSON.stringify(headers)}${chunked ? ' chunked' : ''} ${body?.toString() ?? ''}`

  async function judge(request: Request): Promise<string | null> {
    const send = () => wire.send(request.method, request.path, request.headers, request.body, request.chunked)
    try {
      const response = await send()
      const fault = findFault(request, response)
      if (fault !== null) return `${request.name}: ${fault}`
      const slowMs = Math.max(SLOW_MS, SLOW_CHANGES * changeMs)
      if (response.tookMs < slowMs) return null
      // A busy machine is slow once; a dear request is so each time.
      const again = await send()
      return again.tookMs < slowMs ? null : `${request.name}: ${Math.round(response.tookMs)} ms, then ${Math.round(again.tookMs)} ms`
    } catch (error) {
      return `${request.name}: ${error}`
    }
  }

  /** Once a seed: what changes for all that come after it is set back. */
  async function settle(): Promise<void> {
    const startedMs = performance.now()
    await tenant.rest('PATCH', '/v1/organization', { residency_policy: 'unrestricted', low_balance_threshold_usd: null })
    changeMs = performance.now() - startedMs
    const { status } = await wire.send('GET', '/healthz', {})
    if (status !== 200) throw new Error(`/healthz answers ${status}`)
  }

  /** The same after as before, once all that was begun has ended. */
  async function expectAtRest(before: Figures): Promise<void> {
    expect((await wire.send('GET', '/healthz', {})).status).toBe(200)
    await eventually(async () => (await tenant.rest('GET', '/v1/wallet')).body.held_usd === '0', 60_000)
    await eventually(async () => readFigures(service).handles <= before.handles + MAX_MORE_HANDLES, 30_000)
    const after = readFigures(service)
    console.info(`resident ${mib(before.rssBytes)} → ${mib(after.rssBytes)} MiB, handles ${before.handles} → ${after.handles}`)
    expect(after.rssBytes - before.rssBytes).toBeLessThan(MAX_GROWTH_BYTES)
    expect(service.processes.get('all')!.errors.match(/"level":(50|"error").{0,1000}/g) ?? []).toEqual([])
  }

  it(
    'gets an immediate error of the closed set from every REST route, and is not stored',
    async () => {
      const before = readFigures(service)
      const { faults } = await fuzz('REST', restRequest(own, tenant.key), judge, show, settle)
      expect(faults.join('\n\n')).toBe('')
      await expectAtRest(before)
    },
    FUZZ_TIMEOUT_MS,
  )

  it(
    'gets the same from every GraphQL field',
    async () => {
      const before = readFigures(service)
      const { faults } = await fuzz('GraphQL', graphqlRequest(own, tenant.key), judge, show, settle)
      expect(faults.join('\n\n')).toBe('')
      await expectAtRest(before)
    },
    FUZZ_TIMEOUT_MS,
  )

  it(
    'gets the same from every socket message',
    async () => {
      const before = readFigures(service)
      const { faults } = await fuzz(
        'messages',
        socketMessages(tenant.key),
        ({ protocol, messages }) => say(service.graphql.replace(/^http/, 'ws'), messages, protocol),
        ({ protocol, messages }) => `${protocol} ${messages.join(' | ')}`,
        settle,
      )
      expect(faults.join('\n\n')).toBe('')
      await expectAtRest(before)
    },
    FUZZ_TIMEOUT_MS,
  )

  it(
    'gets the same from every subscription',
    async () => {
      const before = readFigures(service)
      const client = tenant.socket()
      const listen = async ({ query, variables }: Operation): Promise<string | null> => {
        const { promise, resolve } = Promise.withResolvers<string | null>()
        const stop = client.subscribe(
          { query, variables: variables as Record<string, unknown> },
          {
            next: ({ errors }) => void (errors && resolve(faultOfErrors(errors as Json[]))),
            error: (errors) => resolve(Array.isArray(errors) ? faultOfErrors(errors) : faultOfClose(errors)),
            complete: () => resolve(null),
          },
        )
        const timer = setTimeout(() => resolve(null), LISTENED_MS)
        const fault = await promise
        clearTimeout(timer)
        stop()
        return fault === null ? null : `${query.slice(0, 60)}: ${fault}`
      }
      const { faults } = await fuzz(
        'subscriptions',
        subscription(own),
        listen,
        ({ query, variables }) => `${query} ${writeJson(variables)}`,
        settle,
      )
      await client.dispose()
      expect(faults.join('\n\n')).toBe('')
      await expectAtRest(before)
    },
    FUZZ_TIMEOUT_MS,
  )
})

/** Closes that are the server's own fault: of WebSockets, and of graphql-ws. */
const SERVERS_CLOSES = new Set([1011, 4500])

/** Opens a socket, says the messages and waits for its close, or a moment. */
function say(url: string, messages: readonly Buffer[], protocol: string): Promise<string | null> {
  const socket = new WebSocket(url, protocol)
  const { promise, resolve } = Promise.withResolvers<string | null>()
  socket.on('open', () => {
    for (const message of messages) socket.send(message, { binary: message[0] === 0 })
    setTimeout(() => resolve(null), LISTENED_MS)
  })
  socket.on('close', (code, reason) => resolve(SERVERS_CLOSES.has(code) ? `closed by ${code} ${reason}` : null))
  // Who speaks another protocol is refused before.
  socket.on('error', () => resolve(null))
  return promise.finally(() => socket.terminate())
}

/** A message that is longer than messages may be closes its socket. */
const TOO_LONG = 1009

function faultOfClose(closed: unknown): string | null {
  const { code, reason, message } = closed as { code?: number; reason?: string; message?: string }
  return code === TOO_LONG ? null : `the socket: ${code ?? ''} ${reason ?? message ?? closed}`
}

interface Figures {
  readonly rssBytes: number
  readonly handles: number
}

function readFigures(service: Service): Figures {
  const { pid } = service.processes.get('all')!
  const kib = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1])
  return { rssBytes: kib * 1024, handles: readdirSync(`/proc/${pid}/fd`).length }
}

const mib = (bytes: number) => Math.round(bytes / 1024 / 1024)

/** What is wrong with an answer, or null. */
function findFault({ method, path, name }: Request, { status, headers, text }: WireResponse): string | null {
  if (status >= 500) return `${status} ${text.slice(0, 300)}`
  if (name.startsWith('graphql')) return faultOfGraphql(status, firstResponse(headers['content-type'], text))
  const isHead = method === 'HEAD'
  if (status < 400) {
    if (isHead) return null
    const notJson = headers['content-type']?.startsWith('application/json') ? faultOfJson(text) : null
    return notJson ?? faultOfResponse({ method, path, status, contentType: headers['content-type'], text })
  }
  if (!headers['x-request-id'] && path.startsWith('/v1')) return `${status} without x-request-id: ${text.slice(0, 200)}`
  if (isHead) return text === '' ? null : `HEAD with a body: ${text.slice(0, 200)}`
  if (!headers['content-type']?.startsWith('application/json')) return `${status} is no JSON: ${text.slice(0, 200)}`
  const notJson = faultOfJson(text)
  if (notJson) return notJson
  const { error } = JSON.parse(text)
  // What no route has met is told in the words of the chat protocol, wherever it was sent.
  const isGeneral = error?.code in ERRORS
  if (path.startsWith('/mcp') && !isGeneral)
    return typeof error?.code === 'number' && typeof error.message === 'string' ? null : `no JSON-RPC error: ${text.slice(0, 300)}`
  const isMessages = path.startsWith('/v1/messages') && !isGeneral
  const code: string = isMessages ? error?.details?.error_code : error?.code
  if (!(code in ERRORS)) return `an error outside the set: ${status} ${text.slice(0, 300)}`
  if (isMessages) return null
  if (ERRORS[code as ErrorCode].status !== status) return `${code} with status ${status}`
  const missing = ['message', 'type', 'param', 'code'].filter((key) => !(key in error))
  if (missing.length > 0) return `an error without ${missing}: ${text.slice(0, 300)}`
  if (!headers['x-should-retry']) return `${status} without x-should-retry`
  return faultOfResponse({ method, path, status, contentType: headers['content-type'], text })
}

function faultOfJson(text: string): string | null {
  try {
    JSON.parse(text)
    return null
  } catch (error) {
    return `${error}: ${text.slice(0, 200)}`
  }
}

/** The first answer of an event stream, or the only one of JSON. */
function firstResponse(contentType: string | undefined, text: string): string {
  return contentType?.startsWith('text/event-stream') ? (/^event: next\ndata: (.*)$/m.exec(text)?.[1] ?? text) : text
}

function faultOfGraphql(status: number, text: string): string | null {
  // Answers to methods that GraphQL has not, in the words of HTTP.
  if (status === 404 || status === 405 || text === '') return null
  const notJson = faultOfJson(text)
  if (notJson) return `${status} ${notJson}`
  const { errors, data, error } = JSON.parse(text)
  if (errors) return faultOfErrors(errors)
  return data !== undefined || error !== undefined ? null : `neither data nor errors: ${text.slice(0, 300)}`
}

const SERVERS_FAULT = new Set([
  'INTERNAL',
  'SERVICE_UNAVAILABLE',
  'PART_UNAVAILABLE',
  'INDEX_REBUILDING',
  'ENGINE_ERROR',
  'ENGINE_UNAVAILABLE',
  'ENGINE_TIMEOUT',
])

function faultOfErrors(errors: readonly Json[]): string | null {
  for (const error of errors) {
    const code = error.extensions?.code
    if (code === 'PERSISTED_QUERY_NOT_FOUND') continue
    if (typeof code !== 'string' || !(code.toLowerCase() in ERRORS))
      return `an error outside the set: ${JSON.stringify(error).slice(0, 400)}`
    if (SERVERS_FAULT.has(code)) return JSON.stringify(error).slice(0, 400)
  }
  return null
}

/** Unmaking what one has would leave nothing to fuzz; that it is unmade is shown elsewhere. */
const UNMAKES = /^(delete|revoke|rotate)/

const unknownId = (id: string) => `${id.slice(0, -4)}0000`

/** A valid value with some of it hostile: put in place of something, beside it, or instead of the whole. */
function spoiled(valid: unknown): fc.Arbitrary<unknown> {
  const paths = pathsIn(valid)
  const at = fc.constantFrom<readonly string[]>(...(paths.length > 0 ? paths : [[]]))
  const once = (value: fc.Arbitrary<unknown>) =>
    fc
      .tuple(value, at, fc.oneof({ arbitrary: hostileJson, weight: 9 }, { arbitrary: fc.constant(undefined), weight: 1 }))
      .map(([input, path, put]) => {
        try {
          return withAt(input, path, put)
        } catch {
          return input
        }
      })
  return fc.oneof(
    { arbitrary: once(fc.constant(valid)), weight: 6 },
    { arbitrary: once(once(fc.constant(valid))), weight: 2 },
    { arbitrary: hostileJson, weight: 1 },
    { arbitrary: fc.constant(valid), weight: 1 },
  )
}

const BROKEN_BODIES: readonly Buffer[] = [
  Buffer.from(''),
  Buffer.from('{'),
  Buffer.from('{"a":1,}'),
  Buffer.from('\ufeff{"model":"mock-chat"}'),
  Buffer.from('{"a":"\\ud800"}'),
  Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  Buffer.from('[]'),
  Buffer.from('null'),
  Buffer.from('"text"'),
  Buffer.from('[['.repeat(50_000)),
  Buffer.from(`{"a":${'['.repeat(3_000)}${']'.repeat(3_000)}}`),
  Buffer.from('{"model":"mock-chat","model":"x","messages":[]}'),
  Buffer.from('{"__proto__":{"model":"mock-chat"},"constructor":{"prototype":{}}}'),
  Buffer.from(`{"model":"${'x'.repeat(200_000)}"}`),
  Buffer.from('{"model":"a"}', 'utf16le'),
]
const CONTENT_TYPES = [
  'text/plain',
  'application/json; charset=utf-16',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'multipart/form-data; boundary=x',
  'multipart/form-data; boundary=""',
  'nonsense',
  'application/json;;;',
  '*/*',
]
const MORE_HEADERS: readonly Readonly<Record<string, string>>[] = [
  {},
  { accept: 'text/event-stream' },
  { expect: '100-continue' },
  { 'idempotency-key': '' },
  { 'idempotency-key': 'x'.repeat(300) },
  { 'idempotency-key': '\u00e9' },
  { 'last-event-id': '__proto__' },
  { 'last-event-id': '-1' },
  { 'x-request-id': '../x' },
  { 'mcp-protocol-version': '1999-01-01' },
  { 'mcp-session-id': '\u00ff' },
  { origin: 'http://evil.example' },
  { 'content-encoding': 'gzip' },
  { range: 'bytes=5-1' },
  { range: 'bytes=0-0,2-3' },
  { 'if-none-match': '*' },
  { authorization: 'Bearer nobody' },
  { authorization: 'Basic ' },
]

/** Pieces of a form as their boundary has them, whole or with some of it hostile. */
function formBody(fields: Readonly<Record<string, unknown>>): fc.Arbitrary<Buffer> {
  const part = (name: string, value: Buffer | string, more = '') =>
    Buffer.concat([
      Buffer.from(`--fuzz\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n`),
      Buffer.from(value),
      Buffer.from('\r\n'),
    ])
  const audio = wav(0.2)
  const files = [
    audio,
    audio.subarray(0, 43),
    Buffer.from('ID3'),
    Buffer.alloc(0),
    Buffer.from([0x1a, 0x45, 0xdf, 0xa3, 0x01]),
    Buffer.concat([audio.subarray(0, 40), Buffer.alloc(4, 0xff)]),
  ]
  const texts = Object.entries(fields).map(([name, value]) => part(name, String(value)))
  return fc
    .tuple(
      fc.constantFrom(...files),
      fc.constantFrom('; filename="a.wav"', '', '; filename=""', '; filename="../a.wav"', `; filename="${'ا'.repeat(300)}"`),
      fc.array(
        fc.tuple(
          fc.constantFrom(
            'language',
            'prompt',
            'temperature',
            'response_format',
            'stream',
            'timestamp_granularities[]',
            'chunking_strategy[type]',
            '__proto__',
            'model',
            'x',
          ),
          hostileText,
        ),
        { maxLength: 3 },
      ),
      fc.constantFrom('--fuzz--\r\n', '', '--fuzz--', '--fuz'),
    )
    .map(([file, more, extra, end]) =>
      Buffer.concat([...texts, ...extra.map(([name, value]) => part(name, value)), part('file', file, more), Buffer.from(end)]),
    )
}

function restRequest(own: Possessions, key: string): fc.Arbitrary<Request> {
  const createQuery = (operation: RestOperation) => {
    const parameters = operation.operation.parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name)
    const value = fc.oneof(
      fc.constantFrom(
        '1',
        '100',
        '0',
        '-1',
        'asc',
        'desc',
        'ready',
        'csv',
        'model',
        'day,model,key,operation',
        own.collection,
        own.usageCursor,
        own.entryCursor,
        '9'.repeat(20),
        '1750000000',
      ),
      hostileText.map((text) => encodeURIComponent(text.toWellFormed().slice(0, 2_000))),
      fc.constantFrom('%', '%E0%A4%A', '%00', 'a=b', ''),
    )
    return fc
      .array(fc.tuple(fc.constantFrom(...parameters, 'unknown', 'limit[]', '__proto__'), value), { maxLength: 4 })
      .map((pairs) => (pairs.length === 0 ? '' : `?${pairs.map(([name, input]) => `${name}=${input}`).join('&')}`))
  }
  const createPath = (operation: RestOperation): fc.Arbitrary<string> => {
    const names = [...operation.path.matchAll(/\{(\w+)\}/g)]
    const values = names.map(({ 0: braces, index }) => {
      const mine = own[PATHS[operation.path.slice(0, index + braces.length)]![0]!.kind]
      const valid = UNMAKES.test(operation.operation.operationId) ? unknownId(mine) : mine
      return fc.oneof(
        { arbitrary: fc.constant(encodeURIComponent(valid)), weight: 6 },
        { arbitrary: hostileText.map((text) => encodeURIComponent(text.toWellFormed().slice(0, 1_000))), weight: 2 },
        { arbitrary: fc.constantFrom('%', '%E0%A4%A', '..', '.', '%2e%2e', '%2F', 'a/b', ';', own.file, own.agent), weight: 1 },
      )
    })
    return fc
      .tuple(...values)
      .map((values) => names.reduce((path, { 0: braces }, i) => path.replace(braces, () => values[i]!), operation.path))
  }
  return fc.constantFrom(...openapi.operations).chain((operation) => {
    const valid = BODIES[operation.operation.operationId]?.(own)
    const isForm = operation.path === '/v1/audio/transcriptions' || operation.path.endsWith('/parts')
    const isStream = operation.operation.operationId === 'patchTusUpload'
    const streamed = valid && !isForm ? fc.constantFrom(valid, valid, { ...valid, stream: true }) : fc.constant(valid)
    const body: fc.Arbitrary<Buffer | undefined> =
      valid === undefined
        ? fc.oneof({ arbitrary: fc.constant(undefined), weight: 6 }, { arbitrary: fc.constantFrom(...BROKEN_BODIES), weight: 1 })
        : fc.oneof(
            { arbitrary: isForm ? formBody(valid) : streamed.chain(spoiled).map((json) => Buffer.from(writeJson(json))), weight: 8 },
            { arbitrary: fc.constantFrom(...BROKEN_BODIES), weight: 1 },
          )
    const natural = isForm ? 'multipart/form-data; boundary=fuzz' : isStream ? 'application/offset+octet-stream' : 'application/json'
    const protocol = operation.path.startsWith('/v1/uploads/tus') ? TUS_HEADERS : {}
    return fc
      .record({
        method: fc.oneof(
          { arbitrary: fc.constant(operation.method as string), weight: 12 },
          { arbitrary: fc.constantFrom('HEAD', 'OPTIONS', 'PUT', 'DELETE', 'GET', 'POST', 'PATCH', 'TRACE', 'PROPFIND'), weight: 1 },
        ),
        path: createPath(operation),
        query: createQuery(operation),
        body,
        type: fc.oneof({ arbitrary: fc.constant(natural), weight: 12 }, { arbitrary: fc.constantFrom(...CONTENT_TYPES), weight: 1 }),
        more: fc.oneof({ arbitrary: fc.constant({}), weight: 4 }, { arbitrary: fc.constantFrom(...MORE_HEADERS), weight: 1 }),
        chunked: fc.boolean(),
      })
      .filter(({ method, path }) => method === operation.method || (method !== 'DELETE' && !(method === 'POST' && path.includes('rotate'))))
      .map(({ method, path, query, body, type, more, chunked }) => ({
        name: routeName(operation),
        method,
        path: path + query,
        headers: {
          authorization: `Bearer ${key}`,
          accept: 'application/json, text/event-stream',
          ...(body && { 'content-type': type }),
          ...protocol,
          ...more,
        },
        body: method === 'GET' || method === 'HEAD' ? undefined : body,
        chunked,
      }))
  })
}

/** What makes a request one of the protocol of resumable uploads. */
const TUS_HEADERS = { 'tus-resumable': '1.0.0', 'upload-offset': '0', 'upload-length': '7' }

interface Operation {
  readonly query: string
  readonly variables: unknown
}

/** An operation of one root field, its arguments as variables, some of them hostile. */
function createOperation({ operation, name, field }: RootField, own: Possessions): fc.Arbitrary<Operation> {
  const args = (operation === 'subscription' ? SUBSCRIPTION_ARGUMENTS[name] : undefined) ?? ARGUMENTS[name]
  const valid = (args?.(own) ?? {}) as Record<string, Json>
  const harmless = UNMAKES.test(name) && typeof valid.id === 'string' ? { ...valid, id: unknownId(valid.id) } : valid
  const everything = Object.fromEntries(field.args.map((argument) => [argument.name, harmless[argument.name] ?? null]))
  return fc
    .tuple(fc.oneof(spoiled(harmless), spoiled(everything)), fc.integer({ min: 0, max: 2 }), fc.boolean())
    .map(([variables, depth, all]) => {
      const declared = field.args.filter(({ name: argument }) => all || argument in harmless)
      const head = declared.length > 0 ? `(${declared.map((argument) => `$${argument.name}: ${argument.type}`).join(', ')})` : ''
      const passed = declared.length > 0 ? `(${declared.map((argument) => `${argument.name}: $${argument.name}`).join(', ')})` : ''
      return { query: `${operation} Fuzz${head} { ${name}${passed} ${createSelection(field.type, depth)} }`, variables }
    })
}

const BROKEN_QUERIES: readonly string[] = [
  '',
  '{',
  '{ __typename }',
  '{ __schema { types { fields { type { fields { type { name } } } } } } }',
  `{ ${'organization { '.repeat(300)}id${' }'.repeat(300)} }`,
  `{ ${Array.from({ length: 2_000 }, (_, i) => `a${i}: __typename`).join(' ')} }`,
  'query A { ...F } fragment F on Query { ...F }',
  'query A { ...F } fragment F on Query { ...G } fragment G on Query { ...F }',
  `{ organization { ${Array.from({ length: 300 }, (_, i) => `a${i}: name`).join(' ')} } }`,
  'query ($a: Int = 99999999999999999999) { collections(first: $a) { edges { cursor } } }',
  '{ collections(first: 99999999999999999999) { edges { cursor } } }',
  '{ collections(first: 1e400) { edges { cursor } } }',
  '{ file(id: """\\u0000""") { id } }',
  '{ file(id: "\\ud800") { id } }',
  '{ file(id: "\\u{110000}") { id } }',
  'query ($i: [[[[[ID]]]]]) { file(id: $i) { id } }',
  'query @skip(if: true) { __typename }',
  '{ __typename @skip(if: $x) }',
  '{ __typename @include(if: 1) @include(if: 1) @include(if: 1) }',
  'subscription { documentUpdated { cursor } usageRecorded { cursor } }',
  'mutation { __typename }',
  'query A { __typename } query B { __typename }',
  '{ _entities(representations: []) { __typename } }',
  '{ searchCollection(input: { collectionId: "x", query: "y", filter: { a: { b: [1, 2.5, true, null, ENUM, $x] } } }) { cost } }',
  `{ a(${'x: ['.repeat(2_000)}`,
  '\u0000',
  '\ufeff{ __typename }',
  'extend type Query { x: Int }',
  `# ${'x'.repeat(100_000)}\n{ __typename }`,
  `{ file(id: "${'x'.repeat(100_000)}") { id } }`,
]

function graphqlRequest(own: Possessions, key: string): fc.Arbitrary<Request> {
  const fields = rootFields.filter(({ operation }) => operation !== 'subscription')
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const post = (name: string, body: Buffer, more: Readonly<Record<string, string>> = {}, chunked = false): Request => ({
    name,
    method: 'POST',
    path: '/graphql',
    headers: { ...headers, ...more },
    body,
    chunked,
  })
  const whole = fc
    .constantFrom(...fields)
    .chain((root) => createOperation(root, own).map((operation) => post(`graphql ${root.name}`, Buffer.from(writeJson(operation)))))
  const envelopes = fc
    .tuple(
      spoiled({
        query: '{ organization { id } }',
        variables: {},
        operationName: null,
        extensions: { persistedQuery: { version: 1, sha256Hash: 'x' } },
      }),
      fc.constantFrom(...MORE_HEADERS),
      fc.boolean(),
    )
    .map(([body, more, chunked]) => post('graphql envelope', Buffer.from(writeJson(body)), more, chunked))
  const texts = fc.constantFrom(...BROKEN_QUERIES).map((query) => post('graphql text', Buffer.from(writeJson({ query, variables: {} }))))
  const broken = fc
    .tuple(fc.constantFrom(...BROKEN_BODIES), fc.constantFrom('application/json', ...CONTENT_TYPES))
    .map(([body, type]) => post('graphql body', body, { 'content-type': type }))
  const gets = fc
    .tuple(fc.constantFrom('GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'), fc.constantFrom(...BROKEN_QUERIES), hostileText, hostileText)
    .map(([method, query, variables, extensions]) => ({
      name: 'graphql by other methods',
      method,
      path: `/graphql?query=${encodeURIComponent(query.toWellFormed().slice(0, 2_000))}&variables=${encodeURIComponent(variables.toWellFormed().slice(0, 500))}&extensions=${encodeURIComponent(extensions.toWellFormed().slice(0, 500))}`,
      headers: { authorization: `Bearer ${key}`, 'apollo-require-preflight': 'true' },
      body: undefined,
      chunked: false,
    }))
  return fc.oneof(
    { arbitrary: whole, weight: 12 },
    { arbitrary: envelopes, weight: 2 },
    { arbitrary: texts, weight: 2 },
    { arbitrary: broken, weight: 1 },
    { arbitrary: gets, weight: 1 },
  )
}

function subscription(own: Possessions): fc.Arbitrary<Operation> {
  const fields = rootFields.filter(({ operation, field }) => operation === 'subscription' && graphqlPositions(operation, field).length > 0)
  // Variables that are no object are a breach of the sockets' protocol, which closes them.
  return fc
    .constantFrom(...fields)
    .chain((root) => createOperation(root, own))
    .filter(({ variables }) => typeof variables === 'object' && variables !== null && !Array.isArray(variables))
}

interface Said {
  readonly protocol: string
  readonly messages: readonly Buffer[]
}

/** What a client of graphql-ws may say, well and badly. */
function socketMessages(key: string): fc.Arbitrary<Said> {
  const init = { type: 'connection_init', payload: { authorization: `Bearer ${key}` } }
  const subscribe = (query: string) => ({
    id: '1',
    type: 'subscribe',
    payload: { query, variables: {}, operationName: null, extensions: {} },
  })
  const message = fc.oneof(
    { arbitrary: spoiled(subscribe('{ organization { id } }')), weight: 4 },
    { arbitrary: spoiled(subscribe('subscription { documentUpdated(after: "0") { cursor } }')), weight: 3 },
    { arbitrary: fc.constantFrom(...BROKEN_QUERIES).map(subscribe), weight: 2 },
    { arbitrary: spoiled(init), weight: 1 },
    { arbitrary: spoiled({ id: '1', type: 'complete' }), weight: 1 },
    { arbitrary: spoiled({ type: 'ping', payload: {} }), weight: 1 },
  )
  const bytes = fc.oneof(
    { arbitrary: message.map((each) => Buffer.from(writeJson(each))), weight: 9 },
    { arbitrary: fc.constantFrom(...BROKEN_BODIES, Buffer.from([0, 1, 2])), weight: 1 },
  )
  return fc.record({
    protocol: fc.oneof(
      { arbitrary: fc.constant('graphql-transport-ws'), weight: 9 },
      { arbitrary: fc.constantFrom('graphql-ws', 'x'), weight: 1 },
    ),
    messages: fc
      .tuple(
        fc.oneof({ arbitrary: fc.constant(init as unknown), weight: 9 }, { arbitrary: spoiled(init), weight: 1 }),
        fc.array(bytes, { maxLength: 6 }),
      )
      .map(([first, rest]) => [Buffer.from(writeJson(first)), ...rest]),
  })
}
