import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { addDocument, type Caller, createCaller, newCollection } from './client.ts'
import type { Service } from './processes/service.ts'

/** An attack of a hostile tenant or a stranger. Its `run` never rejects, whatever the service does. */
export interface Attack {
  readonly name: string
  /** Runs the attack once, which takes some seconds. */
  run(target: Target): Promise<void>
}

export interface Target {
  readonly service: Pick<Service, 'rest' | 'graphql'>
  /** A caller with every scope of its organization. */
  readonly attacker: Caller
  readonly signal: AbortSignal
}

const MEBIBYTE = 1024 * 1024
const LARGE_FILE_BYTES = 20 * MEBIBYTE
/** In one process as much as the largest body of a chat takes. */
const LONG_TEXT = 'a word or two '.repeat((18 * MEBIBYTE) / 14)
/** A client that is refused and asks again at once. */
const PAUSE_MS = 10
/** The longest time of one attack, so that each attack of a list gets its turn. */
const ATTACK_MS = 10_000

/** Returns a definition of one node whose text is validated with a schema. */
const judged = (template: string, schema: object) => ({
  inputs: { type: 'object', properties: { x: {} } },
  nodes: [{ id: 'text', type: 'template', template, response_schema: schema }],
  output: null,
})

async function runWorkflow({ attacker }: Target, code: string, definition: object, inputs: object): Promise<void> {
  const created = await attacker.rest('POST', '/v1/workflows', { code, name: code, definition })
  const { body } = created.status === 201 ? created : await attacker.rest('GET', '/v1/workflows?limit=100')
  const id = created.status === 201 ? body.id : body.data?.find((workflow: { code: string }) => workflow.code === code)?.id
  if (id) await attacker.rest('POST', `/v1/workflows/${id}/runs`, { inputs, wait: true, max_seconds: 5 })
}

const times = <T>(count: number, create: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => create(index))

/** Sends a request of the attacker, and drops the bytes of the response as they come. Parsing them costs the attacker. */
async function send({ service, attacker }: Target, path: string, init: RequestInit = {}): Promise<void> {
  const address = path === '/graphql' ? service.graphql : `${service.rest}${path}`
  const headers = { 'content-type': 'application/json', ...init.headers, authorization: `Bearer ${attacker.key}` }
  const { body } = await fetch(address, { ...init, headers })
  await body?.pipeTo(new WritableStream())
}

const largeFiles = new WeakMap<Caller, Promise<string>>()

/** The id of a file of the attacker with 20 MiB, which it uploads once. */
function largeFile({ attacker }: Target): Promise<string> {
  const content_base64 = () => Buffer.alloc(LARGE_FILE_BYTES, 'a line of text\n').toString('base64')
  const upload = async () =>
    (await attacker.rest('POST', '/v1/files', { file_name: 'large.txt', content_base64: content_base64() })).body.message.id
  const known = largeFiles.get(attacker) ?? upload()
  largeFiles.set(attacker, known)
  return known
}

const USAGE_RECORDS = 500
const withUsage = new WeakSet<Caller>()

/** Leaves some usage records of the attacker, once. */
async function createUsage(target: Target): Promise<void> {
  if (withUsage.has(target.attacker)) return
  withUsage.add(target.attacker)
  const body = JSON.stringify({ model: 'mock-embed', input: 'a' })
  for (let left = USAGE_RECORDS; left > 0; left -= 10)
    await Promise.all(times(10, () => send(target, '/v1/embeddings', { method: 'POST', body })))
}

/** Sends data over a raw connection, and keeps it open until the signal aborts or the service closes it. */
async function connection({ service, signal }: Target, head: readonly string[], body = ''): Promise<void> {
  const { hostname, port, host } = new URL(service.rest)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined).on('data', () => undefined)
  signal.addEventListener('abort', () => socket.destroy(), { once: true })
  if (signal.aborted) socket.destroy()
  socket.write(`${[...head, `host: ${host}`].join('\r\n')}\r\n\r\n${body}`)
  if (!socket.destroyed) await once(socket, 'close').catch(() => undefined)
}

export const ATTACKS: readonly Attack[] = [
  {
    name: 'a fence of newlines in a workflow',
    run: (target) => runWorkflow(target, 'fence', judged('```{{ inputs.x }}', { type: 'object' }), { x: '\n'.repeat(60_000) }),
  },
  {
    name: 'a pattern that backtracks',
    run: (target) =>
      runWorkflow(target, 'pattern', judged('"{{ inputs.x }}"', { type: 'string', pattern: '^(a+)+$' }), { x: `${'a'.repeat(29)}!` }),
  },
  {
    name: 'a schema that refers to itself',
    run: (target) => {
      const either = { anyOf: times(4, () => ({ $ref: '#/$defs/node' })) }
      const node = { type: 'object', properties: { a: either }, required: ['a'] }
      const deep = times(14, () => null).reduce<unknown>((inner) => ({ a: inner }), 1)
      return runWorkflow(target, 'recursive', judged('{{ inputs.x | json }}', { $ref: '#/$defs/node', $defs: { node } }), { x: deep })
    },
  },
  {
    name: 'a long list whose items must differ',
    run: (target) =>
      runWorkflow(target, 'unique', judged('{{ inputs.x | json }}', { type: 'array', uniqueItems: true }), {
        x: times(12_000, (i) => [i]),
      }),
  },
  {
    name: 'large bodies of strangers',
    async run({ service }) {
      const body = 'a'.repeat(19.8 * MEBIBYTE)
      const unauthenticated = createCaller(service, 'nobody')
      await Promise.all(times(4, () => unauthenticated.rest('POST', '/v1/chat/completions', body).catch(() => undefined)))
    },
  },
  {
    name: 'uploads that send nothing',
    async run(target) {
      const slow = { ...target, signal: AbortSignal.any([target.signal, AbortSignal.timeout(ATTACK_MS)]) }
      const head = ['POST /v1/files HTTP/1.1', `authorization: Bearer ${target.attacker.key}`, 'content-type: application/json']
      await Promise.all(times(8, () => connection(slow, [...head, `content-length: ${5 * MEBIBYTE}`], '{"file_name":"')))
    },
  },
  {
    name: 'variables without end',
    async run({ attacker }) {
      const i = Object.fromEntries(times(20_000, (index) => [`q${index}`, 1]))
      await attacker.graphql('query($i:SearchInput!){searchCollection(input:$i){cost}}', { i })
      const input = { name: 'x', scopes: [], modelAllowlist: times(50_000, () => ({})) }
      await attacker.graphql('mutation($i:CreateApiKeyInput!){createApiKey(input:$i){key}}', { i: input })
    },
  },
  {
    name: 'the text of an operation without end',
    run: async ({ attacker }) =>
      void (await attacker.graphql(`{ collections(after: """${'a'.repeat(4 * MEBIBYTE)}""") { edges { cursor } } }`)),
  },
  {
    name: 'operations that differ in long literals',
    run: async ({ attacker }) => {
      for (let i = 0; i < 100; i++)
        await attacker.graphql(`{ ${times(15, (n) => `a${n}: collection(id: "${Math.random()}${'x'.repeat(200)}") { name }`).join(' ')} }`)
    },
  },
  {
    name: 'more nodes than anyone reads',
    async run({ attacker }) {
      const documents = 'documents(first: 100) { edges { node { id collection { documents(first: 100) { edges { node { id } } } } } } }'
      const aliases = times(7, (n) => `a${n}: collections(first: 100) { edges { node { ${documents} } } }`)
      await attacker.graphql(`{ ${aliases.join(' ')} }`)
    },
  },
  {
    name: 'a document of unclosed comments, and many documents',
    async run({ attacker }) {
      const collection = (await newCollection(attacker)).id
      await Promise.all([
        addDocument(attacker, collection, 'comments.md', '<!--'.repeat(50_000)),
        ...times(10, (n) => addDocument(attacker, collection, `long-${n}.txt`, `Sentence ${n}. ${'Words of a long text. '.repeat(2_000)}`)),
      ])
    },
  },
  {
    name: 'uploads, eight at a time',
    async run({ attacker }) {
      const content_base64 = Buffer.alloc(3 * MEBIBYTE, 'a').toString('base64')
      await Promise.all(
        times(8, (n) => attacker.rest('POST', '/v1/files', { file_name: `large-${n}-${Math.random()}.txt`, content_base64 })),
      )
    },
  },
  {
    name: 'many runs at once',
    async run({ attacker }) {
      const definition = {
        inputs: { type: 'object', properties: { x: {} } },
        nodes: [{ id: 'text', type: 'template', template: '{{ inputs.x }}' }],
        output: null,
      }
      const created = await attacker.rest('POST', '/v1/workflows', {
        code: `many-${Math.random().toString(36).slice(2)}`,
        name: 'many',
        definition,
      })
      await Promise.all(times(100, () => attacker.rest('POST', `/v1/workflows/${created.body.id}/runs`, { inputs: { x: 'a' } })))
    },
  },
  {
    name: 'seven downloads of 20 MiB',
    async run(target) {
      const id = await largeFile(target)
      await Promise.all(times(7, () => send(target, `/v1/files/${id}/content`)))
    },
  },
  {
    name: 'fifteen pieces of a file in one operation',
    async run(target) {
      const id = await largeFile(target)
      const pieces = times(15, (n) => `a${n}: fileContent(id: "${id}", offset: ${n}, length: ${MEBIBYTE}) { content }`)
      await send(target, '/graphql', { method: 'POST', body: JSON.stringify({ query: `{ ${pieces.join(' ')} }` }) })
    },
  },
  {
    name: 'replays of a response of 15 MB',
    async run(target) {
      const body = JSON.stringify({ model: 'mock-chat', messages: [{ role: 'user', content: 'large' }] })
      const init = { method: 'POST', headers: { 'idempotency-key': 'the-large-response' }, body }
      await Promise.all(times(4, () => send(target, '/v1/chat/completions', init)))
    },
  },
  {
    name: 'exports of usage, twenty at a time',
    async run(target) {
      await createUsage(target)
      await Promise.all(times(20, () => send(target, '/v1/usage?format=csv')))
    },
  },
  {
    name: 'large messages over twenty WebSockets',
    async run({ service, attacker }) {
      const query = `# ${'a'.repeat(MEBIBYTE / 2)}\n{ models { id } }`
      const message = JSON.stringify({ id: '1', type: 'subscribe', payload: { query } })
      const attack = async () => {
        const socket = new WebSocket(service.graphql.replace('http', 'ws'), 'graphql-transport-ws')
        const closed = once(socket, 'close')
        await once(socket, 'open')
        socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${attacker.key}` } }))
        await once(socket, 'message')
        for (let i = 0; i < 7; i++) socket.send(message)
        await Promise.race([closed, setTimeout(1_000)])
        socket.close()
      }
      await Promise.allSettled(times(20, attack))
    },
  },
  {
    name: 'the tokens of 18 MB, counted',
    async run(target) {
      const body = JSON.stringify({ model: 'mock-chat', messages: [{ role: 'user', content: LONG_TEXT }] })
      await Promise.all(times(4, () => send(target, '/v1/messages/count_tokens', { method: 'POST', body })))
    },
  },
]

/**
 * Runs one attack again and again, until the signal aborts, and returns how often. An attack that the service ends
 * early counts as failed, which is intended.
 */
export async function attackForever({ run }: Attack, target: Target): Promise<number> {
  let rounds = 0
  // The pause lets the signal in when an attack is refused at once.
  for (; !target.signal.aborted; rounds++) {
    await run(target).catch(() => undefined)
    await setTimeout(PAUSE_MS)
  }
  return rounds
}
