import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createClient } from 'graphql-ws'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { readApi } from '../../schema/breaks.ts'
import { mockCatalog } from '../support/catalog.ts'
import { type Caller, createCaller, type Json, newOrganization } from '../support/client.ts'
import { type MockEngine, startMockEngine } from '../support/engines/mock-engine.ts'
import { type Service, startEmbedded } from '../support/processes/service.ts'
import { generateClient } from './operations.ts'
import { PROGRAMS } from './programs.ts'
import { compileRelay, installRelay } from './relay.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The settings that a frontend's bundler wants. */
const COMPILER = {
  compilerOptions: {
    target: 'es2022',
    module: 'commonjs',
    moduleResolution: 'bundler',
    strict: true,
    skipLibCheck: true,
    types: ['node'],
    outDir: 'out',
  },
}

const run = promisify(execFile)
const relay = await installRelay()
const wants = process.env.KIS_REQUIRE_CLIENTS === '1' || 'modules' in relay
const schema = readApi(readFileSync(join(ROOT, 'schema/supergraph.graphql'), 'utf8'))

let folder: string
let engine: MockEngine
let service: Service
let caller: Caller
let collectionId: string
let codegenManifest: Readonly<Record<string, string>>
let relayManifest: Readonly<Record<string, string>>

beforeAll(async () => {
  // Inside of the checkout, where the programs find the libraries.
  mkdirSync(join(ROOT, '.cache'), { recursive: true })
  folder = mkdtempSync(join(ROOT, '.cache/clients-'))
  const files = await generateClient(schema)
  for (const name of ['apollo', 'urql'] as const)
    write(name, { ...Object.fromEntries(files), [`${name}.ts`]: PROGRAMS[name], 'tsconfig.json': JSON.stringify(COMPILER) })
  codegenManifest = JSON.parse(files.get('gql/persisted-documents.json')!)
  write('relay', { 'relay.ts': PROGRAMS.relay, 'tsconfig.json': JSON.stringify(COMPILER) })
  relayManifest = 'modules' in relay ? await compileRelay(join(folder, 'relay'), relay.modules, schema) : {}
  write('.', { 'package.json': '{}', 'trusted.json': JSON.stringify({ ...codegenManifest, ...relayManifest }) })
  engine = await startMockEngine()
  const env = { KIS_TRUSTED_DOCUMENTS: join(folder, 'trusted.json'), KIS_TRUSTED_DOCUMENTS_ONLY: 'on' }
  service = await startEmbedded({ catalog: mockCatalog(engine.url), env })
  caller = await newOrganization(createCaller(service, service.key), service, { name: 'Frontends' })
  const card = { collection_code: 'c', collection_name: 'Cards', embedding_model: 'mock-embed' }
  const { status, body } = await caller.rest('POST', '/v1/collections', card)
  expect(status).toBe(201)
  collectionId = body.id
}, 240_000)
afterAll(async () => {
  await service?.close()
  await engine?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

function write(directory: string, texts: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(texts)) {
    const file = join(folder, directory, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}

/** Compiles the program with the types of its operations, runs it, and gives what it prints. */
async function compileAndRun(name: keyof typeof PROGRAMS): Promise<Json> {
  const cwd = join(folder, name)
  const compiled = await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.'], { cwd }).catch((error) => error)
  expect(compiled.stdout).toBe('')
  const { stdout } = await run(process.execPath, [join(cwd, `out/${name}.js`), service.graphql, caller.key], { cwd })
  return JSON.parse(stdout)
}

/** The second field of the mutation names a file that does not exist. */
const SEEN = {
  organization: 'Frontends',
  collection: 'Cards, 0 chunks, mock-embed',
  key: expect.stringMatching(/^kis_live_/),
  file: null,
  errors: [{ path: ['deleteFile'], message: expect.stringContaining('file_none') }],
}

it('the types that graphql-codegen generates for Apollo Client compile, and its persisted operations run', {
  timeout: 120_000,
}, async () => {
  expect(await compileAndRun('apollo')).toMatchObject(SEEN)
})

it('the types that graphql-codegen generates for urql compile, and its persisted operations run', { timeout: 120_000 }, async () => {
  expect(await compileAndRun('urql')).toMatchObject(SEEN)
})

describe(wants ? 'Relay' : `Relay: skipped because ${(relay as { reason: string }).reason}`, () => {
  it.skipIf(!wants)(
    "the types that Relay's compiler generates compile, and its persisted operations run",
    { timeout: 120_000 },
    async () => {
      expect('reason' in relay && relay.reason).toBe(false)
      expect(await compileAndRun('relay')).toMatchObject(SEEN)
    },
  )

  it.skipIf(!wants)('its refetches find an object by its ID, with a page of its list', async () => {
    const [sha256Hash] = Object.entries(relayManifest).find(([, text]) => text.startsWith('query HomeDocumentsQuery'))!
    const response = await fetch(service.graphql, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${caller.key}` },
      body: JSON.stringify({ extensions: { persistedQuery: { version: 1, sha256Hash } }, variables: { id: collectionId } }),
    })
    expect(await response.json()).toMatchObject({
      data: { node: { __typename: 'Collection', id: collectionId, documents: { totalCount: 0, edges: [] } } },
    })
  })
})

it('a subscription runs over a socket by the ID from graphql-codegen', async () => {
  const [id] = Object.entries(codegenManifest).find(([, text]) => text.startsWith('subscription'))!
  const connectionParams = { authorization: `Bearer ${caller.key}` }
  const client = createClient({ url: service.graphql.replace(/^http/, 'ws'), webSocketImpl: WebSocket, connectionParams, retryAttempts: 0 })
  const variables = { input: { request: { model: 'mock-chat', messages: [{ role: 'user', content: 'Hi' }] } } }
  const texts: (string | null)[] = []
  const payload = { query: '', extensions: { persistedQuery: { version: 1, sha256Hash: id } }, variables }
  for await (const { data, errors } of client.iterate<Json>(payload)) {
    expect(errors).toBeUndefined()
    texts.push(data.chatCompletion.textDelta)
  }
  expect(texts.join('')).toBe('Hello from the mock مرحبا')
  await client.dispose()
  expect((await caller.graphql('{ organization { id } }')).errors).toMatchObject([{ extensions: { code: 'PERMISSION_DENIED' } }])
})
