import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  addDocument,
  balancedWallet,
  type Caller,
  createCaller,
  type Json,
  nano,
  newCollection,
  newOrganization,
} from '../support/client.ts'
import { type Received, VendorCloud } from '../support/engines/vendor-cloud.ts'
import { eventually } from '../support/eventually.ts'
import { inParallel } from '../support/in-parallel.ts'
import { type Service, startEmbedded } from '../support/processes/service.ts'
import {
  CASES,
  type Case,
  CLIENTS,
  installClients,
  installPrograms,
  type OfficialClient,
  type Outcome,
  readOutcomes,
  renderLacks,
  renderTable,
  runProgram,
} from './official-clients.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TEXT = 'Thirty days of annual leave, مدفوعة الأجر 🌴.'
/** 20 s at the pace of the mock, so that an aborted stream is ended by its client only. */
const LONG_WORDS = 1_000
const LONG_TEXT = 'word '.repeat(LONG_WORDS)
const TEXTS = ['Annual leave is thirty days.', 'الإجازة السنوية ثلاثون يوما.']
/** More processes at once would only wait for each other on two cores. */
const AT_ONCE = 4
/** All programs together take a minute on two idle cores. */
const WAIT_MS = 5 * 60_000

const runtimes = await installClients()

/** What a client's program showed, with the organization that it had to itself. */
interface Seen {
  readonly caller: Caller
  readonly outcomes: ReadonlyMap<string, Outcome>
}

const GUIDE = readFileSync(join(ROOT, 'docs/guide/clients.md'), 'utf8')
const SNIPPETS = [...GUIDE.matchAll(/^## (.*)\n[\s\S]*?^```(js|python)\n([\s\S]*?)^```/gm)].map(([, title, language, code]) => ({
  title: title!,
  code: code!,
  kind: language === 'js' ? ('node' as const) : code!.includes('from openai') ? ('python with openai' as const) : ('python' as const),
}))

const missing = (kind: keyof typeof runtimes) => {
  const runtime = runtimes[kind]
  return 'reason' in runtime && process.env.KIS_REQUIRE_CLIENTS !== '1' ? runtime.reason : null
}

/** The price of a call of `gpt-4o-mini` in nano-USD. */
const priceOf = (charge: Json) => BigInt(charge.input_tokens * 150 + charge.output_tokens * 600)

describe('Official clients used like by their users', () => {
  let cloud: VendorCloud
  let service: Service
  let programs: Awaited<ReturnType<typeof installPrograms>>
  let stopped = false
  const seen = new Map<string, Promise<Seen>>()
  const printed = new Map<string, Promise<string>>()

  beforeAll(async () => {
    cloud = await VendorCloud.start()
    script(cloud)
    const catalog = readFileSync(join(ROOT, 'catalog.yaml'), 'utf8')
    service = await startEmbedded({ catalog, env: { OPENAI_API_KEY: 'sk-mock', OPENAI_BASE_URL: `${cloud.url}/v1` } })
    programs = await installPrograms('modules' in runtimes.node ? runtimes.node.modules : null)
    runAll()
  })
  const passed = new Set<string>()
  afterAll(async () => {
    const cellOf = ({ program, kind }: OfficialClient, name: Case) =>
      passed.has(`${program} ${name}`) ? 'yes' : missing(kind) === null ? 'NO' : 'not run'
    console.log(`${renderTable(cellOf)}\n${renderLacks()}`)
    stopped = true
    await Promise.allSettled([...seen.values(), ...printed.values()])
    await programs?.remove()
    await service?.close()
    await cloud?.[Symbol.asyncDispose]()
  })

  /** Begins all programs and snippets, some at a time; the tests wait for those that they are about. */
  function runAll() {
    const later: (() => Promise<unknown>)[] = []
    const add = <Value>(into: Map<string, Promise<Value>>, name: string, run: () => Promise<Value>) => {
      const { promise, resolve, reject } = Promise.withResolvers<Value>()
      promise.catch(() => undefined)
      into.set(name, promise)
      later.push(async () => (stopped ? reject(new Error('the suite has ended')) : run().then(resolve, reject)))
    }
    for (const { program, kind } of CLIENTS) if (missing(kind) === null) add(seen, program, () => runClient(program, kind))
    const furnished = furnish()
    for (const { title, kind, code } of SNIPPETS)
      if (missing(kind) === null) add(printed, title, async () => runSnippet(title, kind, code, (await furnished).key))
    void inParallel(later, AT_ONCE, (run) => run())
  }

  const commandOf = (kind: keyof typeof runtimes) => {
    const runtime = runtimes[kind]
    if ('reason' in runtime) throw new Error(runtime.reason)
    return 'python' in runtime ? runtime.python : process.execPath
  }

  /** An organization with a collection and an agent, which MCP shows as tools. */
  async function furnish(): Promise<Caller> {
    const caller = await newOrganization(createCaller(service, service.key), service)
    const { id } = await newCollection(caller, 'e5-small-ar-en', 'ports')
    await addDocument(caller, id, 'ports.md', '# Harbours\n\nThe harbour of Sur was built in 1931.')
    const agent = { code: 'pilot', name: 'Pilot', model: 'gpt-4o-mini', collection_ids: [id] }
    const { status, body } = await caller.rest('POST', '/v1/agents', agent)
    if (status !== 201) throw new Error(JSON.stringify(body))
    return caller
  }

  async function runClient(program: string, kind: keyof typeof runtimes): Promise<Seen> {
    const caller = program === 'mcp.js' ? await furnish() : await newOrganization(createCaller(service, service.key), service)
    const env = { KIS_URL: service.rest, KIS_API_KEY: caller.key, KIS_CLIENT: program }
    return { caller, outcomes: readOutcomes(await runProgram(commandOf(kind), join(programs.folder, program), env)) }
  }

  async function runSnippet(title: string, kind: keyof typeof runtimes, code: string, key: string): Promise<string> {
    const script = await programs.add(
      `${title.replace(/\W+/g, '-')}.${kind === 'node' ? 'js' : 'py'}`,
      code.replaceAll('http://127.0.0.1:4000', service.rest),
    )
    return runProgram(commandOf(kind), script, { KIS_API_KEY: key })
  }

  /** The vendor's one request of a case, whose prompt names the case and the client. */
  function requestsOf(name: Case, program: string): readonly Received[] {
    const requests = cloud.received.filter(({ body }) => JSON.stringify(body).includes(`${name}, asked by ${program}`))
    // Over MCP the agent searches first, so that a busy machine may not have asked the vendor when the client leaves.
    if (program !== 'mcp.js' || requests.length > 1) expect(requests).toHaveLength(1)
    return requests
  }

  /** The charges for these requests of the vendor. */
  async function chargesOf(requests: readonly Received[], caller: Caller): Promise<readonly Json[]> {
    const ids = new Set(requests.map(({ headers }) => headers['x-client-request-id']))
    const { body } = await caller.rest('GET', '/v1/usage?limit=100')
    return body.data.filter((record: Json) => ids.has(record.request_id) && record.operation === 'chat_completion')
  }

  /** Waits until nothing is held any more, and returns the wallet, whose entries sum to its balance. */
  async function settled(caller: Caller): Promise<void> {
    await eventually(async () => nano((await caller.rest('GET', '/v1/wallet')).body.held_usd) === 0n)
    await balancedWallet(caller)
  }

  const checks: Readonly<Record<Case, (value: Json, client: OfficialClient, caller: Caller) => Promise<void> | void>> = {
    async chat({ text, input, output }, { program }, caller) {
      expect(text).toBe(TEXT)
      const charges = await chargesOf(requestsOf('chat', program), caller)
      expect(charges).toMatchObject([{ source: 'provider', input_tokens: expect.any(Number), output_tokens: expect.any(Number) }])
      // Over MCP a tool does not say what it used.
      if (program !== 'mcp.js') expect({ input, output }).toEqual({ input: charges[0].input_tokens, output: charges[0].output_tokens })
    },
    stream(value, { program }) {
      expect(value.text).toBe(TEXT)
      // Over MCP the pieces are steps of the agent's run.
      expect(value.pieces).toBeGreaterThan(program === 'mcp.js' ? 0 : 1)
    },
    tools(value, { program }) {
      if (program === 'mcp.js') expect(value.text).toContain('1931')
      else expect(value).toEqual({ text: 'Warm, at noon.', calls: [{ name: 'weather', arguments: { city: 'الرياض' } }] })
    },
    structured(value, { program }) {
      if (program === 'mcp.js') expect(value.results[0].text).toContain('1931')
      else expect(value).toEqual({ capital: 'الرياض' })
    },
    async embeddings(value, _client, caller) {
      const { body } = await caller.rest('POST', '/v1/embeddings', { model: 'e5-small-ar-en', input: TEXTS, encoding_format: 'float' })
      expect(value).toHaveLength(TEXTS.length)
      for (const [index, { embedding }] of body.data.entries()) {
        expect(value[index]).toHaveLength(embedding.length)
        for (const [dimension, component] of embedding.entries()) expect(value[index][dimension]).toBeCloseTo(component, 4)
      }
    },
    errors(value, { program, throws }) {
      expect(value.key.message).toContain('Incorrect API key provided')
      expect(value.model.message).toContain('no-such-model')
      expect(value.vendor.message).toContain('that parameter is wrong')
      const failures = [value.key, value.model, value.vendor]
      expect(failures.map(({ name }) => name ?? null)).toEqual(throws.slice(0, 3))
      const codes = failures.map(({ code }) => code)
      if (program === 'mcp.js') {
        expect(codes).toEqual([401, ErrorCode.InvalidParams, undefined])
        expect(value.vendor.message).toMatch(/^invalid_request: /)
      } else if (program === 'apollo.js' || program === 'urql.js')
        expect([...codes, value.subscription.code]).toEqual(['INVALID_API_KEY', 'MODEL_NOT_FOUND', 'INVALID_REQUEST', 'INVALID_REQUEST'])
      else {
        expect(failures.map(({ status }) => status)).toEqual([401, 404, 400])
        expect(codes).toEqual(['invalid_api_key', 'model_not_found', 'invalid_request'])
      }
    },
    async abort(value, { program }, caller) {
      expect(program === 'mcp.js' ? value.message : value.text).toMatch(/abort|^word /i)
      const requests = requestsOf('abort', program)
      await Promise.all(requests.map(({ closed }) => closed))
      await settled(caller)
      const charges = await chargesOf(requests, caller)
      // What was written until then, counted by the service.
      expect(charges).toMatchObject(requests.map(() => ({ source: 'counted' })))
      for (const charge of charges) {
        expect(charge.output_tokens).toBeGreaterThan(program === 'mcp.js' ? -1 : 0)
        expect(charge.output_tokens).toBeLessThan(LONG_WORDS / 2)
        expect(nano(charge.amount_usd)).toBe(priceOf(charge))
      }
    },
    async timeout(value, { program, throws }, caller) {
      expect(value.name).toBe(throws[3])
      expect(value.message).toMatch(/time(d )?out/i)
      const requests = requestsOf('timeout', program)
      await Promise.all(requests.map(({ closed }) => closed))
      await settled(caller)
      const charges = await chargesOf(requests, caller)
      expect(charges).toMatchObject(requests.map(() => ({ source: 'counted', output_tokens: 0 })))
      for (const charge of charges) expect(nano(charge.amount_usd)).toBe(priceOf(charge))
    },
    async lists(value, { program }, caller) {
      if (program === 'mcp.js') expect(value.tools).toEqual(['search_ports', 'run_agent_pilot'])
      else if (program === 'apollo.js' || program === 'urql.js') expect(value).toEqual({ created: 'Kept', collections: ['Kept'] })
      else {
        const { body } = await caller.rest('GET', '/v1/models')
        expect(value.models).toEqual(body.data.map(({ id }: Json) => id))
        expect(value.files?.toSorted()).toEqual(value.uploaded?.toSorted())
      }
    },
  }

  for (const client of CLIENTS) {
    const { name: title, program, kind, lacks } = client
    describe.skipIf(missing(kind) !== null)(title, () => {
      it.each(CASES.filter((name) => !(name in lacks)))(
        '%s',
        async (name) => {
          const { caller, outcomes } = await seen.get(program)!
          const outcome = outcomes.get(name)
          if (!outcome || 'error' in outcome) throw new Error(outcome?.error ?? 'the program has no such case')
          await checks[name](outcome.value, client, caller)
          passed.add(`${program} ${name}`)
        },
        WAIT_MS,
      )
    })
  }

  for (const { title, kind } of SNIPPETS)
    it.skipIf(missing(kind) !== null)(
      `runs the example of the guide: ${title}`,
      async () => expect(await printed.get(title)).toMatch(/Thirty days|search_ports/),
      WAIT_MS,
    )
})

for (const [kind, clients] of Map.groupBy(CLIENTS, (client) => client.kind)) {
  const reason = missing(kind)
  const names = clients.map(({ name }) => name).join('; ')
  if (reason !== null) describe.skip(`${names}: skipped because ${reason}`, () => it('run', () => undefined))
}

describe('Guide to clients', () => {
  it('has the table of what each client supports', () => expect(GUIDE).toContain(renderTable(() => 'yes')))

  it('has an example of each client', () => expect(SNIPPETS).toHaveLength(CLIENTS.length))
})

/** What the vendor's mock answers to the prompts, which begin with the name of their case. */
function script({ mock }: VendorCloud): void {
  mock.onMessage(/^refused/, { error: { message: 'that parameter is wrong', type: 'invalid_request_error' }, status: 400 })
  mock.onMessage(/^structured/, { content: '{"capital":"الرياض"}' })
  mock.on({ userMessage: /^tools/, hasToolResult: true }, { content: 'Warm, at noon.' })
  mock.on({ userMessage: /^tools/, hasToolResult: false }, { toolCalls: [{ name: 'weather', arguments: '{"city":"الرياض"}' }] })
  mock.onMessage(/^abort/, { content: LONG_TEXT }, { latency: 20, chunkSize: 5 })
  mock.onMessage(/^timeout/, () => new Promise(() => undefined))
  mock.onMessage(/./, { content: TEXT }, { latency: 20, chunkSize: 5 })
}
