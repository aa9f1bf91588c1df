import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkCatalog } from '../../../cli/settings/catalog-check.ts'
import { drawPdf, ltr } from '../../../subgraphs/knowledge/adapters/parser/test-support/draw-pdf.ts'
import { addDocument, createCaller, newCollection } from '../../support/client.ts'
import { wav } from '../../support/data/audio.ts'
import { type MockEngine, startMockEngine, TRANSCRIPT_DELTAS } from '../../support/engines/mock-engine.ts'
import { RerankVendor } from '../../support/engines/rerank-vendor.ts'
import { WebhookReceiver } from '../../support/engines/webhook-receiver.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Inside the project, so that `import 'openai'` finds the package. */
const SCRIPTS = join(ROOT, 'node_modules/.cache/documentation')
/** Its examples need clients that `test/conformance/official-clients.test.ts` installs and runs. */
const CLIENTS = 'clients.md'
const EXECUTABLE = ['sh', 'js', 'ts', 'graphql', 'json']

/** Every other example of the README and the guide: its page, its language, and a text that only this block has. */
const EXAMPLES = {
  start: ['README.md', 'sh', 'npm start'],
  tests: ['README.md', 'sh', 'npm test'],
  chat: ['README.md', 'sh', '/chat/completions'],
  openai: ['README.md', 'js', 'import OpenAI'],
  search: ['docs/guide/search.md', 'sh', 'COLLECTION='],
  agent: ['docs/guide/agents.md', 'js', "'/agents'"],
  workflow: ['docs/guide/workflows.md', 'js', "'/workflows'"],
  messages: ['docs/guide/compatible-apis.md', 'js', 'import Anthropic'],
  responses: ['docs/guide/compatible-apis.md', 'js', 'responses.create'],
  idempotency: ['docs/guide/billing.md', 'js', 'order-4711'],
  quote: ['docs/guide/billing.md', 'sh', '/quote'],
  speech: ['docs/guide/multimodal.md', 'js', 'transcriptions.create'],
  webhooks: ['docs/guide/events.md', 'sh', '/webhooks'],
  verifying: ['docs/guide/events.md', 'js', 'standardwebhooks'],
  mcp: ['docs/guide/mcp.md', 'json', 'mcpServers'],
  query: ['docs/guide/graphql.md', 'graphql', 'collection(id'],
  searching: ['docs/guide/graphql.md', 'graphql', 'searchCollection(input'],
  key: ['docs/guide/keys.md', 'sh', '/v1/keys'],
  viewer: ['docs/guide/graphql.md', 'graphql', 'viewer'],
  events: ['docs/guide/graphql.md', 'js', 'graphql-sse'],
  download: ['docs/guide/graphql.md', 'sh', 'fileDownload'],
  partial: ['docs/guide/graphql.md', 'graphql', 'made:'],
  // Held by subgraph-away.test.ts, and by test/clients.
  partialAnswer: ['docs/guide/graphql.md', 'json', 'PART_UNAVAILABLE'],
  codegen: ['docs/guide/graphql.md', 'ts', 'CodegenConfig'],
  questions: ['docs/guide/evaluation.md', 'sh', '/gold-questions'],
  evaluation: ['docs/guide/evaluation.md', 'sh', '/evaluations'],
  suggestions: ['docs/guide/evaluation.md', 'sh', '/suggestions'],
  watch: ['docs/guide/evaluation.md', 'sh', '/evaluation-watch'],
  reembedding: ['docs/guide/embedding-models.md', 'sh', '/reembeddings'],
  upload: ['docs/guide/upload.md', 'sh', '/files'],
  tus: ['docs/guide/upload.md', 'js', 'tus-js-client'],
  web: ['docs/guide/upload.md', 'sh', '"url"'],
  text: ['docs/guide/documents.md', 'sh', '/text?'],
  boxes: ['docs/guide/documents.md', 'json', '"boxes"'],
  version: ['docs/guide/documents.md', 'sh', 'on_conflict'],
  sound: ['docs/guide/formats.md', 'sh', 'transcription_model'],
  filter: ['docs/guide/search-reference.md', 'json', '"contains"'],
  followUp: ['docs/guide/search-reference.md', 'json', '"history"'],
  // These are run by test/e2e/models/streams.test.ts.
  resuming: ['docs/guide/streams.md', 'js', 'createResumingClient(url, key) {'],
  apollo: ['docs/guide/streams.md', 'js', 'GraphQLWsLink'],
  following: ['docs/guide/streams.md', 'sh', 'Last-Event-ID'],
  rerank: ['docs/guide/multimodal.md', 'sh', '/rerank'],
  cohere: ['docs/guide/multimodal.md', 'js', 'cohere-ai'],
  sessions: ['docs/guide/portal.md', 'sh', '/sessions'],
  invitation: ['docs/guide/people.md', 'sh', '/invitations'],
} as const satisfies Readonly<Record<string, readonly [page: string, language: string, holding: string]>>

function findCodeBlocks(page: string): readonly { readonly language: string; readonly code: string }[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].map(([, language, code]) => ({ language: language!, code: code! }))
}

function example(name: keyof typeof EXAMPLES): string {
  const [page, language, holding] = EXAMPLES[name]
  const found = findCodeBlocks(page).find((block) => block.language === language && block.code.includes(holding))
  if (!found) throw new Error(`${page} has no ${language} block with ${holding}`)
  return found.code
}

describe('Examples of the documentation', () => {
  let service: Service
  let vendor: MockEngine
  let receiver: WebhookReceiver
  let reranker: RerankVendor
  let site: Server
  const folder = mkdtempSync(join(tmpdir(), 'kis-documentation-'))
  const host = () => `127.0.0.1:${(site.address() as AddressInfo).port}`
  beforeAll(async () => {
    vendor = await startMockEngine()
    receiver = await WebhookReceiver.start()
    reranker = await RerankVendor.start()
    site = createServer((_request, response) => response.setHeader('content-type', 'text/plain').end('The report is short.'))
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
    service = await startEmbedded({
      catalog: readFileSync(join(ROOT, 'catalog.yaml'), 'utf8').replace('https://api.cohere.com/v2', `${reranker.url}/cohere`),
      env: {
        OPENAI_API_KEY: 'sk-mock',
        OPENAI_BASE_URL: vendor.url,
        COHERE_API_KEY: 'mock',
        KIS_EGRESS_ALLOW: `${receiver.host},${host()}`,
      },
    })
  }, 60_000)
  afterAll(async () => {
    await service?.close()
    await receiver?.[Symbol.asyncDispose]()
    await vendor?.[Symbol.asyncDispose]()
    await reranker?.[Symbol.asyncDispose]()
    site?.close()
    for (const path of [SCRIPTS, folder]) rmSync(path, { recursive: true, force: true })
  })

  const here = (text: string) => text.replace(/kis_live_… +# .*/, service.key).replaceAll('http://127.0.0.1:4000', service.rest)

  /** No rc file of the machine is read: what it has in it is no part of the example. */
  const shell = async (script: string, variables: Readonly<Record<string, string>> = {}) => {
    const { BASH_ENV: _, ...env } = process.env
    const own = { KIS: `${service.rest}/v1`, KIS_API_KEY: service.key, ...variables }
    return run('bash', ['--norc', '--noprofile', '-euc', here(script)], { env: { ...env, ...own }, cwd: folder, timeout: 60_000 })
  }

  const node = async (name: keyof typeof EXAMPLES, script = example(name)) => {
    mkdirSync(SCRIPTS, { recursive: true })
    const file = join(SCRIPTS, `${name}.mjs`)
    writeFileSync(file, here(script))
    const { stdout } = await run(process.execPath, [file], { env: { ...process.env, KIS_API_KEY: service.key }, timeout: 60_000 })
    return stdout
  }

  it('are all named here', () => {
    const pages = readdirSync(join(ROOT, 'docs/guide')).filter((file) => file !== CLIENTS)
    const guide = pages.map((file) => `docs/guide/${file}`)
    const blocks = ['README.md', ...guide].flatMap((page) => findCodeBlocks(page).map((block) => ({ page, ...block })))
    const unnamed = blocks.filter(
      ({ page, language, code }) =>
        EXECUTABLE.includes(language) &&
        !Object.values(EXAMPLES).some(([where, kind, holding]) => where === page && kind === language && code.includes(holding)),
    )
    expect(unnamed).toEqual([])
  })

  it('answer a first question by curl', async () => {
    const { stdout } = await shell(example('chat'))
    expect(JSON.parse(stdout).choices[0].message.content).toContain('Lunch is at noon.')
  })

  it('answer a first question by the official SDK', async () => {
    const stdout = await node('openai')
    expect(stdout).toContain("'e5-small-ar-en'")
    expect(stdout).toContain('[ 384, 384 ]')
    expect(stdout).toContain('Receipts are due in May.')
  }, 90_000)

  it('walk through documents and search when pasted into a shell', async () => {
    const { stdout, stderr } = await shell(example('search'))
    expect(stderr).toBe('')
    expect(stdout).toContain('leave.md: ready')
    expect(stdout).toContain('travel.md: ready')
    expect(stdout).toContain('ثلاثون يوماً')
    expect(stdout).toMatch(/“Meals are reimbursed up to 60 dollars a day.” — \[\d\] travel\.md/)
    expect(stdout).toMatch(/chat_completion extractive 0\.\d+/)
    expect(stdout.trim().split('\n').at(-1)).toMatch(/^99\.9\d+$/)
    expect((await shell(example('search'))).stdout).not.toContain('undefined')
  }, 90_000)

  it('have an agent over two languages that cites its sources', async () => {
    const stdout = await node('agent')
    expect(stdout).toMatch(/ثلاثون يوماً .*\[#\d\]/)
    expect(stdout).toContain("file_name: 'إجازات.md'")
    expect(stdout).toMatch(/\[ 'search 0\.\d+', 'model 0\.\d+' \] 0\.\d+/)
    expect(stdout).toMatch(/60 dollars .*\[#\d\] \[ 'travel\.md' \]/)
  }, 90_000)

  it('have a workflow over the same collection with a branch', async () => {
    const stdout = await node('workflow')
    expect(stdout).toMatch(/^completed \{/)
    expect(stdout).toMatch(/For the finance team: .*60 dollars/)
    expect(stdout).toContain('passages: [ 2, 2 ]')
    expect(stdout).toMatch(/'find done 0\.\d+',\s+'ask done 0\.\d+',\s+'about done 0',\s+'finance done 0'\s+\] 0\.\d+/)
  }, 90_000)

  it('work with the Anthropic SDK', async () => {
    expect(await node('messages')).toMatch(/Lunch is at noon\..* \d+ end_turn\n/)
  }, 90_000)

  it('work with the Responses API', async () => {
    expect(await node('responses')).toMatch(/Lunch is at noon\..* \d+\n/)
  }, 90_000)

  it('repeat a call with the same idempotency key without a second reply', async () => {
    expect(await node('idempotency')).toMatch(/^true\n.*Lunch is at noon\./)
  }, 90_000)

  it('quote a call', async () => {
    const { stdout } = await shell(example('quote'))
    expect(JSON.parse(stdout)).toMatchObject({ is_covered: true })
  })

  it('stream a transcription', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kis-documentation-'))
    try {
      const file = join(folder, 'meeting.wav')
      writeFileSync(file, wav(2.5))
      expect(await node('speech', example('speech').replace('meeting.wav', file))).toBe(TRANSCRIPT_DELTAS.join(''))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('register a webhook, send it a test event and show what was sent', async () => {
    const script = example('webhooks').replace('https://partner.example/hooks', receiver.at('/hooks').url)
    for (let i = 0; i < 2; i++) expect((await shell(script)).stdout).toBe('webhook_delivery\nlist\n')
  })

  it('verify the message of a webhook', async () => {
    const secret = `whsec_${Buffer.from('a secret for this test alone').toString('base64')}`
    const body = JSON.stringify({ type: 'ping', timestamp: new Date().toISOString(), data: {} })
    const sentAt = new Date()
    const headers = {
      'webhook-id': 'evt_1',
      'webhook-timestamp': `${Math.floor(sentAt.getTime() / 1_000)}`,
      'webhook-signature': new Webhook(secret).sign('evt_1', sentAt, body),
    }
    const use = `\nconsole.log(verify(...${JSON.stringify([secret, body, headers])}).type)`
    expect(await node('verifying', example('verifying') + use)).toBe('ping\n')
  })

  it('connect an MCP client', async () => {
    const { url, headers } = JSON.parse(here(example('mcp')).replace('<API_KEY>', service.key)).mcpServers.knowledge
    const client = new Client({ name: 'test', version: '1' })
    try {
      await client.connect(
        new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }) as Parameters<Client['connect']>[0],
      )
      expect((await client.listTools()).tools).toBeInstanceOf(Array)
    } finally {
      await client.close()
    }
  })

  it('evaluate a search by gold questions', async () => {
    const caller = createCaller(service, service.key)
    const { id: COLLECTION } = await newCollection(caller)
    const { stdout: questions } = await shell(example('questions'), { COLLECTION })
    expect(JSON.parse(questions).data).toHaveLength(2)
    const { stdout: started } = await shell(example('evaluation'), { COLLECTION })
    const { id } = JSON.parse(started)
    await eventually(async () => (await caller.rest('GET', `/v1/evaluations/${id}`)).body.status === 'completed', 30_000)
    await addDocument(caller, COLLECTION, 'harbour.txt', 'The harbour of Sur was built in 1931 for the ships of the salt trade.')
    const { stdout: suggestions } = await shell(example('suggestions'), { COLLECTION })
    expect(JSON.parse(suggestions)).toMatchObject({ object: 'gold_question.suggestions', error: null, data: [{}, {}] })
    const { stdout: watch } = await shell(example('watch'), { COLLECTION })
    expect(JSON.parse(watch)).toMatchObject({ object: 'evaluation_watch', max_fall: 0.1 })
  })

  it('re-embed a collection with another model', async () => {
    const caller = createCaller(service, service.key)
    const { id: COLLECTION } = await newCollection(caller)
    const { stdout } = await shell(example('reembedding'), { COLLECTION })
    const [quote, started] = stdout.split(/(?<=\})(?=\{"id)/).map((text) => JSON.parse(text))
    expect(quote).toMatchObject({ embedding_model: 'text-embedding-3-small', residency: 'cloud', is_covered: true })
    await eventually(async () => (await caller.rest('GET', `/v1/reembeddings/${started.id}`)).body.status === 'completed', 30_000)
  })

  it('upload a file, at once and by tus', async () => {
    writeFileSync(join(folder, 'report.pdf'), 'A plain text with the name of a PDF.\n'.repeat(50))
    const { stdout } = await shell(example('upload'))
    const [json, form] = stdout.split(/(?<=\})(?=\{)/).map((text) => JSON.parse(text))
    expect([json.message.file_name, form.filename]).toEqual(['report.pdf', 'report.pdf'])
    const prelude = `globalThis.file = Object.assign(Buffer.from('The report is short.'), { name: 'report.txt' })\nglobalThis.attach = console.log\n`
    expect(await node('tus', prelude + example('tus'))).toMatch(/^file_[0-9a-f]{32}\n$/)
  })

  it('create a document from a URL', async () => {
    const { id: COLLECTION } = await newCollection(createCaller(service, service.key))
    const { stdout } = await shell(example('web').replace('https://example.org', `http://${host()}`), { COLLECTION })
    expect(JSON.parse(stdout)).toMatchObject({ object: 'document', file_name: expect.stringContaining('report') })
  })

  it('read the text of a document, and replace its file', async () => {
    const caller = createCaller(service, service.key)
    const { id: COLLECTION } = await newCollection(caller)
    const { id: DOCUMENT, file_id: FILE } = await addDocument(caller, COLLECTION, 'leave.txt', 'Leave is thirty days.')
    const [byOffset, byPage] = example('text').trim().split('\n')
    expect(JSON.parse((await shell(byOffset!, { COLLECTION, DOCUMENT })).stdout)).toMatchObject({ text: 'Leave is thirty days.' })
    expect(JSON.parse((await shell(byPage!, { COLLECTION, DOCUMENT })).stdout)).toMatchObject({ error: { param: 'page_start' } })
    const plain = byPage!.replace('page_start=3&page_end=4', 'offset=0&length=100')
    expect((await shell(plain, { COLLECTION, DOCUMENT })).stdout).toBe('Leave is thirty days.')
    const { id: other } = await newCollection(caller)
    const { stdout } = await shell(example('version'), { COLLECTION: other, FILE })
    expect(JSON.parse(stdout)).toMatchObject({ external_id: 'contract-7', outcome: 'created' })
  })

  it('show a chunk on its page', async () => {
    const caller = createCaller(service, service.key)
    const { id: collection } = await newCollection(caller)
    const { id } = await addDocument(caller, collection, 'dues.pdf', drawPdf([[ltr(50, 100, 'The dues of Sur are paid in silver.')]]))
    const { body } = await caller.rest('GET', `/v1/collections/${collection}/documents/${id}/chunks?page_boxes=true`)
    const [shown] = body.data[0].page_boxes
    const written = JSON.parse(example('boxes'))
    expect(Object.keys(shown)).toEqual(Object.keys(written))
    expect(Object.keys(shown.boxes[0])).toEqual(Object.keys(written.boxes[0]))
  })

  it('enable audio for a collection', async () => {
    const { id: COLLECTION } = await newCollection(createCaller(service, service.key))
    const { stdout } = await shell(example('sound'), { COLLECTION })
    expect(JSON.parse(stdout)).toMatchObject({ id: COLLECTION, transcription_model: 'whisper-1' })
  })

  it('filter a search, and ask a follow-up question', async () => {
    const caller = createCaller(service, service.key)
    const { id } = await newCollection(caller)
    const filter = JSON.parse(example('filter'))
    expect(await caller.rest('POST', `/v1/collections/${id}/search`, { query: 'leave', filter })).toMatchObject({ status: 200 })
    const followUp = await caller.rest('POST', `/v1/collections/${id}/search`, JSON.parse(example('followUp')))
    expect(followUp).toMatchObject({ status: 200, body: { rewrite: { applied: true } } })
  })

  it('rerank documents, by curl and by the Cohere client', async () => {
    const { stdout } = await shell(example('rerank'))
    expect(JSON.parse(stdout).results).toHaveLength(1)
    const prelude = `globalThis.query = 'leave'\nglobalThis.documents = ['meals', 'leave']\n`
    const snippet = example('cohere').replace('await client', 'const answer = await client')
    expect(await node('cohere', `${prelude}${snippet}\nconsole.log(answer.results[0].index)`)).toBe('1\n')
  }, 90_000)

  it('query documents, models and money at once', async () => {
    const caller = createCaller(service, service.key)
    const { id } = await newCollection(caller)
    const { data, errors } = await caller.graphql(example('query'), { id })
    expect(errors).toBeUndefined()
    expect(data.collection).toMatchObject({ chunkCount: 0, embeddingModel: { id: 'e5-small-ar-en' } })
  })

  it('search by GraphQL', async () => {
    const caller = createCaller(service, service.key)
    const { id: collection } = await newCollection(caller)
    await addDocument(caller, collection, 'leave.txt', 'There are thirty days of leave.')
    const { data, errors } = await caller.graphql(example('searching'), { collection })
    expect(errors).toBeUndefined()
    expect(data.searchCollection.hits[0].chunk).toMatchObject({
      text: 'There are thirty days of leave.',
      document: { file: { name: 'leave.txt' } },
    })
  })

  it('create a key with limits, whose scopes have their own default', async () => {
    const { stdout } = await shell(example('key'))
    expect(JSON.parse(stdout)).toMatchObject({ key: expect.stringMatching(/^kis_live_/), scopes: ['inference', 'knowledge:read'] })
    const { body } = await createCaller(service, service.key).rest('POST', '/v1/keys', { name: 'default' })
    expect(body.scopes).toEqual(['inference', 'knowledge:read', 'knowledge:write'])
  })

  it('show a key, and create two objects in one request', async () => {
    const caller = createCaller(service, service.key)
    const { data, errors } = await caller.graphql(example('viewer'))
    expect(errors).toBeUndefined()
    expect(data.viewer.organization.wallet.id).toMatch(/^wal_/)
    const { data: both } = await caller.graphql(example('partial'))
    expect([both.made.key, both.lost.collection.id]).toEqual([expect.stringMatching(/^kis_live_/), expect.stringMatching(/^col_/)])
  })

  it('list the sessions of the portal, and end one', async () => {
    const session = await createCaller(service, service.key).signIn()
    const { stdout } = await shell(example('sessions').replace('ses_…', session.id))
    expect(stdout).toContain(session.id)
    const { body } = await createCaller(service, service.key).rest('GET', '/v1/sessions')
    expect(body.data).toEqual([])
  })

  it('invite a person', async () => {
    const { stdout } = await shell(example('invitation'))
    expect(JSON.parse(stdout)).toMatchObject({ email: 'ann@example.com', role: 'editor', token: expect.any(String) })
  })

  it('download a file', async () => {
    const { body } = await createCaller(service, service.key).rest('POST', '/v1/files', {
      file_name: 'report.pdf',
      content_base64: Buffer.from('A plain text with the name of a PDF.\n').toString('base64'),
    })
    const { id } = body.message
    expect(id).toMatch(/^file_/)
    await shell(example('download'), { FILE: id })
    expect(readFileSync(join(folder, 'report.pdf'), 'utf8')).toBe('A plain text with the name of a PDF.\n')
  })

  it('follow an ingestion by server-sent events', async () => {
    const caller = createCaller(service, service.key)
    const { id } = await newCollection(caller)
    let isOver = false
    const script = example('events').replace('console.log(data)', '{ console.log(JSON.stringify(data)); break }')
    const printed = node('events', script).finally(() => {
      isOver = true
    })
    for (let i = 0; !isOver; i++) {
      await addDocument(caller, id, `${i}.txt`, `Text ${i} of the document.`)
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    expect(JSON.parse(await printed).documentUpdated.document.status).toMatch(/^(QUEUED|PROCESSING|READY)$/)
  })
})

describe('Catalog examples of the documentation', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-documentation-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each([
    ['docs/guide/multimodal.md', 'kind: transcription'],
    ['docs/operate/compose.md', 'engines:'],
    ['docs/guide/billing.md', 'price:'],
  ])('are valid: %s, %s', (page, holding) => {
    const blocks = findCodeBlocks(page).filter(({ language, code }) => language === 'yaml' && code.includes(holding))
    expect(blocks).toHaveLength(1)
    const { code } = blocks[0]!
    const priced = `engines: { own: { kind: openai, base_url: "http://own:8000/v1", badge: local } }
models:
  - id: own
    engine: own
    kind: chat
    context_window: 1000000
    max_output_tokens: 10
    ${code}`
    const file = join(folder, page.replaceAll('/', '-'))
    writeFileSync(file, code.startsWith('engines:') ? code : priced)
    const { code: exit, lines } = checkCatalog(file, {})
    expect(lines.join('\n')).not.toMatch(/ off/)
    expect(exit).toBe(0)
  })
})
