import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult, Progress } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addDocument, balancedWallet, type Caller, createCaller, type Json, nano, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded, startFiveProcesses } from '../../support/processes/service.ts'

const createCatalog = (mock: string) => `
engines:
  embedded: { kind: embedded, badge: local }
  mock: { kind: openai, base_url: "${mock}", badge: local }
models:
  - { id: e5-small-ar-en, engine: embedded, kind: embedding, dimensions: 384, context_window: 512, mark_tokens: 2, query_prefix: "query: ", passage_prefix: "passage: ", cosine_spread: 0.03, price: { input: "0.01" } }
  - { id: extractive, engine: embedded, kind: chat, supports: [], context_window: 32000, max_output_tokens: 2048, price: { input: "0.01", output: "0.01" } }
  - { id: mock-chat, engine: mock, kind: chat, context_window: 100000, max_output_tokens: 1000, price: { input: "1", output: "10" } }
`

const ENGLISH = '# Harbours\n\nThe harbour of Sur was built in 1931 and repaired in 1958.\n\nThe lighthouse stands at the eastern quay.'
const ARABIC = '# الموانئ\n\nافتتح ميناء صلالة في عام 1998 وهو أكبر موانئ السلطنة.\n\nتقع المنارة على الرصيف الشرقي.'

interface FoundChunks {
  readonly results: readonly { readonly mark: number; readonly text: string; readonly file: { readonly file_name: string } }[]
}

async function connect(service: Pick<Service, 'rest'>, key: string) {
  const client = new Client({ name: 'test', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL(`${service.rest}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  })
  await client.connect(transport as Parameters<Client['connect']>[0])
  const call = (name: string, args: Record<string, unknown>, options?: Parameters<Client['callTool']>[2]) =>
    client.callTool({ name, arguments: args }, undefined, options) as Promise<CallToolResult>
  return { client, transport, call, [Symbol.asyncDispose]: () => client.close() }
}

const readText = ({ content }: CallToolResult) => content.map((part) => (part.type === 'text' ? part.text : '')).join('')

async function furnish(caller: Caller) {
  const created = await caller.rest('POST', '/v1/collections', {
    collection_code: 'ports',
    collection_name: 'Ports of Oman',
    embedding_model: 'e5-small-ar-en',
    description: 'What is known of harbours.',
  })
  await addDocument(caller, created.body.id, 'ports.md', ENGLISH)
  await addDocument(caller, created.body.id, 'موانئ.md', ARABIC)
  const { data, errors } = await caller.graphql('mutation ($input: CreateAgentInput!) { createAgent(input: $input) { agent { id } } }', {
    input: { code: 'pilot', name: 'Pilot', model: 'extractive', collectionIds: [created.body.id] },
  })
  if (errors) throw new Error(JSON.stringify(errors))
  return { collectionId: created.body.id as string, agentId: data.createAgent.agent.id as string }
}

async function keyWith(caller: Caller, scopes: readonly string[]): Promise<string> {
  return (await caller.rest('POST', '/v1/keys', { name: 'narrow', scopes })).body.key
}

describe('MCP endpoint with the official client', () => {
  let mock: MockEngine
  let service: Service
  let caller: Caller
  let ids: Awaited<ReturnType<typeof furnish>>

  beforeAll(async () => {
    mock = await startMockEngine()
    service = await startEmbedded({ catalog: createCatalog(mock.url), env: { KIS_MCP_HOSTS: 'app.example.test' } })
    caller = await newOrganization(createCaller(service, service.key), service)
    ids = await furnish(caller)
  })
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
  })

  const post = (body: unknown, headers: Record<string, string> = {}, key = caller.key) =>
    fetch(`${service.rest}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }

  it('describes itself, and lists collections and agents with their purpose', async () => {
    await using mcp = await connect(service, caller.key)
    expect(mcp.client.getServerVersion()).toMatchObject({ name: 'knowledge-and-inference-service' })
    expect(mcp.client.getServerCapabilities()).toEqual({ tools: { listChanged: false } })
    const { tools, nextCursor } = await mcp.client.listTools()
    expect(nextCursor).toBeUndefined()
    expect(tools.map(({ name }) => name)).toEqual(['search_ports', 'run_agent_pilot'])
    expect(tools[0]!.description).toContain('Ports of Oman')
    expect(tools[0]!.description).toContain('What is known of harbours.')
    const { data } = await caller.graphql('query ($id: ID!) { collection(id: $id) { searchTool { description parameters } } }', {
      id: ids.collectionId,
    })
    expect(data.collection.searchTool.description).toEqual(tools[0]!.description)
    expect(tools[0]!.inputSchema.properties).toMatchObject(data.collection.searchTool.parameters.properties)
    // It follows what the collection holds.
    for (const heading of ['Harbours', 'الموانئ']) expect(tools[0]!.description).toContain(heading)
    expect(Object.keys(tools[0]!.inputSchema.properties!)).toEqual(['query', 'limit', 'filter', 'expand', 'per_document', 'mode'])
    await mcp.client.ping()
  })

  for (const [language, query, fileName, fact] of [
    ['English', 'When was the harbour of Sur built?', 'ports.md', '1931'],
    ['Arabic', 'متى افتتح ميناء صلالة؟', 'موانئ.md', '1998'],
  ] as const) {
    it(`searches in ${language}, and returns chunks with citation marks and sources`, async () => {
      await using mcp = await connect(service, caller.key)
      const result = await mcp.call('search_ports', { query, limit: 2 })
      const { results } = result.structuredContent as unknown as FoundChunks
      expect(results[0]).toMatchObject({ mark: expect.any(Number), text: expect.stringContaining(fact), file: { file_name: fileName } })
      expect(readText(result)).toContain(`[#${results[0]!.mark}] ${fileName}`)
      expect(readText(result)).toContain(fact)
      expect(result.isError).toBeUndefined()
    })

    it(`asks an agent in ${language}, and returns its answer with citations`, async () => {
      await using mcp = await connect(service, caller.key)
      const result = await mcp.call('run_agent_pilot', { input: query })
      const { citations, output_text, run_id } = result.structuredContent as Json
      expect(output_text).toContain(fact)
      expect(citations[0]).toMatchObject({ file: { file_name: fileName }, text: expect.stringContaining(fact) })
      expect(readText(result)).toContain('Sources:')
      const { data } = await caller.graphql('query ($id: ID!) { agentRun(id: $id) { status } }', { id: run_id })
      expect(data.agentRun.status).toBe('COMPLETED')
    })
  }

  it('numbers each chunk of a session uniquely, including those that agents cite', async () => {
    await using mcp = await connect(service, caller.key)
    const marks: number[] = []
    for (const query of ['When was the harbour of Sur built?', 'متى افتتح ميناء صلالة؟', 'When was the harbour of Sur built?']) {
      const found = (await mcp.call('search_ports', { query, limit: 2 })).structuredContent as unknown as FoundChunks
      marks.push(...found.results.map(({ mark }) => mark))
      const result = await mcp.call('run_agent_pilot', { input: `${query} [#1000]` })
      const { citations, output_text } = result.structuredContent as Json
      expect(citations.length).toBeGreaterThan(0)
      for (const { mark } of citations) {
        expect(output_text).toContain(`[#${mark}]`)
        expect(readText(result)).toContain(`[#${mark}] `)
      }
      marks.push(...citations.map(({ mark }: Json) => mark))
    }
    expect(marks).toEqual([...new Set(marks)])
  })

  it('applies the given filter', async () => {
    await using mcp = await connect(service, caller.key)
    const result = await mcp.call('search_ports', { query: 'harbour', filter: { file_name: 'موانئ.md' } })
    const { results } = result.structuredContent as unknown as FoundChunks
    expect(new Set(results.map(({ file }) => file.file_name))).toEqual(new Set(['موانئ.md']))
  })

  it('returns neighbors of a chunk, few chunks of one document, and finds by words alone', async () => {
    await using mcp = await connect(service, caller.key)
    const search = async (more: Json) => {
      const result = await mcp.call('search_ports', { query: 'harbour of Sur', ...more })
      return { text: readText(result), results: (result.structuredContent as unknown as { results: Json[] }).results }
    }
    const plain = await search({ limit: 1 })
    const wide = await search({ limit: 1, expand: 3 })
    const beside: string[] = [...wide.results[0]!.before, ...wide.results[0]!.after]
    expect(plain.results[0]).toMatchObject({ before: [], after: [] })
    expect(wide.results[0]!.text).toBe(plain.results[0]!.text)
    for (const text of beside) expect(wide.text).toContain(text)
    const { results } = await search({ limit: 20, per_document: 1 })
    const documents = results.map(({ document_id }) => document_id)
    expect(documents).toEqual([...new Set(documents)])
    expect((await search({ mode: 'lexical' })).results.every(({ vector_rank }) => vector_rank === null)).toBe(true)
    for (const [name, value] of [
      ['expand', 4],
      ['per_document', 0],
      ['mode', 'HYBRID'],
    ] as const) {
      const result = await mcp.call('search_ports', { query: 'harbour', [name]: value })
      expect([result.isError, readText(result)]).toEqual([true, expect.stringContaining(`(${name})`)])
    }
  })

  it('sends requested progress of a run, in rising numbers, before the result', async () => {
    await using mcp = await connect(service, caller.key)
    const reported: Progress[] = []
    await mcp.call(
      'run_agent_pilot',
      { input: 'When was the harbour of Sur built?' },
      { onprogress: (progress) => reported.push(progress) },
    )
    expect(reported.map(({ progress }) => progress)).toEqual(reported.map((_, index) => index + 1))
    expect(reported.map(({ message }) => message).join('\n')).toMatch(/has begun[\s\S]*chunks found[\s\S]*calling the model/)
  })

  it('charges what its operations charge', async () => {
    await using mcp = await connect(service, caller.key)
    const before = nano((await balancedWallet(caller)).balance_usd)
    const { structuredContent } = await mcp.call('run_agent_pilot', { input: 'When was the harbour of Sur built?' })
    const after = nano((await balancedWallet(caller)).balance_usd)
    expect(before - after).toBe(nano((structuredContent as Json).cost_usd))
    expect(before).toBeGreaterThan(after)
  })

  describe('unfinished run', () => {
    beforeAll(async () => {
      const { errors } = await caller.graphql('mutation ($input: CreateAgentInput!) { createAgent(input: $input) { agent { id } } }', {
        input: { code: 'waits', name: 'Waits', model: 'mock-chat' },
      })
      expect(errors).toBeUndefined()
    })

    const statuses = async () => {
      const { data } = await caller.graphql('{ agent(id: "agent/waits") { runs(first: 100) { edges { node { status } } } } }')
      return data.agent.runs.edges.map(({ node }: Json) => node.status) as string[]
    }

    it('is cancelled with its call', async () => {
      await using mcp = await connect(service, caller.key)
      const before = (await statuses()).length
      const stop = new AbortController()
      const call = mcp.call('run_agent_waits', { input: 'please hang' }, { signal: stop.signal, onprogress: () => undefined })
      call.catch(() => undefined)
      await eventually(async () => (await statuses()).length > before && (await statuses())[0] === 'RUNNING')
      stop.abort('no more of it')
      await expect(call).rejects.toThrow('no more of it')
      await eventually(async () => (await statuses())[0] === 'CANCELLED')
      await balancedWallet(caller)
    })

    it('is cancelled when its caller disconnects', async () => {
      const before = (await statuses()).length
      {
        await using mcp = await connect(service, caller.key)
        mcp.call('run_agent_waits', { input: 'please hang' }).catch(() => undefined)
        await eventually(async () => (await statuses()).length > before && (await statuses())[0] === 'RUNNING')
      }
      await eventually(async () => (await statuses())[0] === 'CANCELLED')
    })

    it('is not cancelled by another session, nor by another key', async () => {
      await using mcp = await connect(service, caller.key)
      await using other = await connect(service, caller.key)
      const otherTenant = await newOrganization(createCaller(service, service.key), service)
      const before = (await statuses()).length
      mcp.call('run_agent_waits', { input: 'please hang' }).catch(() => undefined)
      await eventually(async () => (await statuses()).length > before && (await statuses())[0] === 'RUNNING')
      for (const requestId of [0, 1, 2, 3]) {
        await other.client.notification({ method: 'notifications/cancelled', params: { requestId } })
        await post(
          { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } },
          { 'mcp-session-id': mcp.transport.sessionId! },
          otherTenant.key,
        )
      }
      expect((await statuses())[0]).toBe('RUNNING')
    })
  })

  it('lists for a key what its scopes allow, and nothing else', async () => {
    for (const [scopes, names] of [
      [['knowledge:read'], ['search_ports']],
      [['agents'], ['run_agent_waits', 'run_agent_pilot']],
      [['inference'], []],
    ] as const) {
      await using mcp = await connect(service, await keyWith(caller, scopes))
      expect((await mcp.client.listTools()).tools.map(({ name }) => name)).toEqual(names)
      const forbidden = names[0] === 'search_ports' ? 'run_agent_pilot' : 'search_ports'
      await expect(mcp.call(forbidden, { query: 'x', input: 'x' })).rejects.toMatchObject({ code: -32602 })
    }
  })

  it('runs an agent for a key without other rights', async () => {
    await using mcp = await connect(service, await keyWith(caller, ['agents']))
    expect(readText(await mcp.call('run_agent_pilot', { input: 'When was the harbour of Sur built?' }))).toContain('1931')
  })

  it('applies the limits of the key, and says when to retry', async () => {
    const { body } = await caller.rest('POST', '/v1/keys', { name: 'slow', scopes: ['agents', 'inference'], requests_per_minute: 1 })
    await using mcp = await connect(service, body.key)
    expect((await mcp.call('run_agent_pilot', { input: 'Where is the lighthouse?' })).isError).toBeUndefined()
    const second = await mcp.call('run_agent_pilot', { input: 'Where is the lighthouse?' })
    expect(second.isError).toBe(true)
    expect(readText(second)).toMatch(/rate_limit_exceeded/)
  })

  it('has nothing of another organization, by name or by ID', async () => {
    const otherTenant = await newOrganization(createCaller(service, service.key), service)
    await using mcp = await connect(service, otherTenant.key)
    expect((await mcp.client.listTools()).tools).toEqual([])
    for (const name of ['search_ports', `search_${ids.collectionId}`, 'run_agent_pilot', `run_agent_${ids.agentId}`])
      await expect(mcp.call(name, { query: 'harbour', input: 'harbour' })).rejects.toMatchObject({ code: -32602 })
  })

  it('names a collection by its ID where its code is no tool name, and finds it by that', async () => {
    const created = await caller.rest('POST', '/v1/collections', {
      collection_code: 'laws.of.2024',
      collection_name: 'Laws',
      embedding_model: 'e5-small-ar-en',
    })
    await using mcp = await connect(service, caller.key)
    const { tools } = await mcp.client.listTools()
    expect(tools[0]).toMatchObject({ name: `search_${created.body.id}`, title: 'Laws' })
    expect(readText(await mcp.call(tools[0]!.name, { query: 'law' }))).toContain('Nothing was found')
    expect((await caller.rest('DELETE', `/v1/collections/${created.body.id}`)).status).toBe(200)
    await expect(mcp.call(tools[0]!.name, { query: 'law' })).rejects.toMatchObject({ code: -32602 })
  })

  it('lists tools page by page, once each', async () => {
    const rich = await newOrganization(createCaller(service, service.key), service)
    const codes = Array.from({ length: 52 }, (_, at) => `c${at}`)
    for (const code of codes)
      await rich.rest('POST', '/v1/collections', { collection_code: code, collection_name: code, embedding_model: 'e5-small-ar-en' })
    await rich.graphql('mutation ($input: CreateAgentInput!) { createAgent(input: $input) { agent { id } } }', {
      input: { code: 'last', name: 'Last', model: 'extractive' },
    })
    await using mcp = await connect(service, rich.key)
    const names: string[] = []
    const sizes: number[] = []
    for (let cursor: string | undefined; sizes.length < 10; ) {
      const page = await mcp.client.listTools({ cursor })
      names.push(...page.tools.map(({ name }) => name))
      sizes.push(page.tools.length)
      cursor = page.nextCursor
      if (!cursor) break
    }
    expect(sizes).toEqual([50, 3])
    expect(names).toEqual([...codes.map((code) => `search_${code}`).reverse(), 'run_agent_last'])
    await expect(mcp.client.listTools({ cursor: 'elsewhere' })).rejects.toMatchObject({ code: -32602 })
  })

  for (const [what, name, args, said] of [
    ['no query', 'search_ports', {}, 'missing_required_parameter (query)'],
    ['a query that is not text', 'search_ports', { query: 7 }, 'invalid_type (query)'],
    ['a limit that is too large', 'search_ports', { query: 'harbour', limit: 1000 }, 'integer_above_max_value (limit)'],
    ['an unknown argument', 'search_ports', { query: 'harbour', depth: 2 }, 'unknown_parameter (depth)'],
    ['a malformed filter', 'search_ports', { query: 'harbour', filter: { op: 'near' } }, 'filter'],
    ['a query that is too long', 'search_ports', { query: 'a'.repeat(10_000) }, 'query'],
    ['no input', 'run_agent_pilot', {}, 'missing_required_parameter (input)'],
  ] as const) {
    it(`reports to a model that it sent ${what}`, async () => {
      await using mcp = await connect(service, caller.key)
      const result = await mcp.call(name, args)
      expect(result.isError).toBe(true)
      expect(readText(result)).toContain(said)
    })
  }

  it('reports an empty wallet to the model', async () => {
    const poor = await newOrganization(createCaller(service, service.key), service, { creditUsd: '0' })
    await poor.graphql('mutation ($input: CreateAgentInput!) { createAgent(input: $input) { agent { id } } }', {
      input: { code: 'pilot', name: 'Pilot', model: 'extractive' },
    })
    await using mcp = await connect(service, poor.key)
    const result = await mcp.call('run_agent_pilot', { input: 'Hello' })
    expect(result.isError).toBe(true)
    expect(readText(result)).toContain('insufficient_quota')
  })

  it('refuses a wrong key for every method, and explains how to send one', async () => {
    for (const body of [ping, { jsonrpc: '2.0', method: 'notifications/initialized' }, { anything: 1 }, 'no json']) {
      const response = await post(body, {}, 'kis_live_wrong')
      expect(response.status).toBe(401)
      expect(response.headers.get('www-authenticate')).toBe('Bearer')
      expect(await response.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { data: { code: 'invalid_api_key' } } })
    }
    await expect(connect(service, 'kis_live_wrong')).rejects.toThrow()
  })

  for (const [what, body, headers, status] of [
    ['invalid JSON', '{"jsonrpc', {}, 400],
    ['invalid JSON-RPC', { hello: 1 }, {}, 400],
    ['a batch', [ping], {}, 400],
    ['an unknown version', ping, { 'mcp-protocol-version': '1999-01-01' }, 400],
    ['a page of another site', ping, { origin: 'https://evil.example.test' }, 403],
    ['a page without an origin', ping, { origin: 'null' }, 403],
  ] as const) {
    it(`refuses ${what} with ${status}`, async () => {
      const response = await post(body, headers)
      expect(response.status).toBe(status)
      expect(await response.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: expect.any(Number) } })
    })
  }

  it('accepts pages of the local machine and of the hosts that the operator has named', async () => {
    for (const origin of ['http://localhost:6274', 'http://127.0.0.1', 'https://app.example.test']) {
      const response = await post(ping, { origin })
      expect(await response.json()).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
    }
  })

  it('refuses a foreign host name that leads here', async () => {
    const { request } = await import('node:http')
    const { port } = new URL(service.rest)
    const status = await new Promise((resolve, reject) => {
      const headers = { host: 'rebound.example.test', authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' }
      request({ port, host: '127.0.0.1', path: '/mcp', method: 'POST', headers }, ({ statusCode }) => resolve(statusCode))
        .on('error', reject)
        .end(JSON.stringify(ping))
    })
    expect(status).toBe(403)
  })

  it('has no stream and no session to end', async () => {
    for (const method of ['GET', 'DELETE']) {
      const response = await fetch(`${service.rest}/mcp`, {
        method,
        headers: { authorization: `Bearer ${caller.key}`, accept: 'text/event-stream' },
      })
      expect(response.status).toBe(405)
      expect(response.headers.get('allow')).toBe('POST, OPTIONS')
    }
    await using mcp = await connect(service, caller.key)
    await mcp.transport.terminateSession()
    expect((await mcp.client.listTools()).tools).not.toEqual([])
  })

  it('responds in JSON to clients that accept no events', async () => {
    const call = {
      jsonrpc: '2.0',
      id: 'a',
      method: 'tools/call',
      params: { name: 'run_agent_pilot', arguments: { input: 'harbour of Sur' } },
    }
    const response = await post(call, { accept: 'application/json' })
    expect(response.headers.get('content-type')).toContain('application/json')
    expect(await response.json()).toMatchObject({ id: 'a', result: { structuredContent: { run_id: expect.any(String) } } })
  })

  it('reports an unknown method as a JSON-RPC error', async () => {
    const response = await post({ jsonrpc: '2.0', id: 5, method: 'resources/list' })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ id: 5, error: { code: -32601 } })
  })
})

describe('MCP endpoint in five processes', () => {
  let mock: MockEngine
  let service: Service
  beforeAll(async () => {
    mock = await startMockEngine()
    service = await startFiveProcesses({ catalog: createCatalog(mock.url) })
  }, 90_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
  })

  it('searches, asks agents and cancels through its REST adapter', async () => {
    const caller = await newOrganization(createCaller(service, service.key), service)
    await furnish(caller)
    await using mcp = await connect(service, caller.key)
    expect((await mcp.client.listTools()).tools.map(({ name }) => name)).toEqual(['search_ports', 'run_agent_pilot'])
    expect(readText(await mcp.call('search_ports', { query: 'متى افتتح ميناء صلالة؟' }))).toContain('1998')
    expect(readText(await mcp.call('run_agent_pilot', { input: 'When was the harbour of Sur built?' }))).toContain('1931')
    await caller.graphql('mutation ($input: CreateAgentInput!) { createAgent(input: $input) { agent { id } } }', {
      input: { code: 'waits', name: 'Waits', model: 'mock-chat' },
    })
    const stop = new AbortController()
    const call = mcp.call('run_agent_waits', { input: 'please hang' }, { signal: stop.signal, onprogress: () => stop.abort('enough') })
    await expect(call).rejects.toThrow('enough')
    const status = async () =>
      (await caller.graphql('{ agent(id: "agent/waits") { runs { edges { node { status } } } } }')).data.agent.runs.edges[0].node.status
    await eventually(async () => (await status()) === 'CANCELLED')
    await balancedWallet(caller)
  })
})
