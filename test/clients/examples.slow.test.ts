import { spawn } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { preview } from 'vite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BrowserPackages, startBrowser } from '../browser/packages.ts'
import { OPENAI_PIP, pythonWithOpenai } from '../conformance/openai-python.ts'
import { ENGLISH_FILE } from '../support/agents.ts'
import { testCatalog } from '../support/catalog.ts'
import { addDocument, type Caller, createCaller, newCollection, newOrganization } from '../support/client.ts'
import { type MockEngine, startMockEngine } from '../support/engines/mock-engine.ts'
import { TcpProxy } from '../support/engines/tcp-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { run } from '../support/installed.ts'
import { type Service, startEmbedded } from '../support/processes/service.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const QUESTION = 'How much are meals reimbursed a day?'
const CITED = /travel\.md: .*60 dollars/s

const python = await pythonWithOpenai()
const chromium = await startBrowser()
const mayRun = (runtime: object) => !('reason' in runtime) || process.env.KIS_REQUIRE_CLIENTS === '1'
const describeRuntime = (name: string, runtime: object) => ('reason' in runtime ? `${name}: ${runtime.reason}` : name)

let folder: string
let engine: MockEngine
let service: Service
let caller: Caller
let collectionId: string

beforeAll(async () => {
  // Inside of the checkout, where the examples find their packages.
  mkdirSync(join(ROOT, '.cache'), { recursive: true })
  folder = mkdtempSync(join(ROOT, '.cache/examples-'))
  cpSync(join(ROOT, 'examples'), folder, { recursive: true })
  engine = await startMockEngine()
  service = await startEmbedded({ catalog: testCatalog(engine.url) })
  caller = await newOrganization(createCaller(service, service.key), service)
  collectionId = (await newCollection(caller, 'mock-embed')).id
  await addDocument(caller, collectionId, 'travel.md', ENGLISH_FILE)
  const agent = { code: 'rules', name: 'Rules', model: 'extractive', collection_ids: [collectionId] }
  expect(await caller.rest('POST', '/v1/agents', agent)).toMatchObject({ status: 201 })
}, 120_000)
afterAll(async () => {
  if ('browser' in chromium) await chromium.browser.close()
  await service?.close()
  await engine?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

/** A key with no other scopes than those that the README of an example names. */
async function newKey(...scopes: readonly string[]): Promise<string> {
  const { status, body } = await caller.rest('POST', '/v1/keys', { name: 'example', scopes })
  expect(status).toBe(201)
  return body.key
}

it('pins the versions that the tests run', () => {
  const versions = globSync(`${ROOT}/examples/*/package.json`).flatMap((file) => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(file, 'utf8'))
    return Object.entries<string>({ ...dependencies, ...devDependencies })
  })
  const installedVersion = (name: string) => JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')).version
  expect(versions).toEqual(versions.map(([name]) => [name, installedVersion(name)]))
  expect(readFileSync(join(ROOT, 'examples/python-openai/requirements.txt'), 'utf8').trim()).toBe(OPENAI_PIP)
})

it.skipIf(!mayRun(python))(describeRuntime('python-openai streams a reply and prints its citations', python), async () => {
  const env = { KIS_URL: service.rest, KIS_API_KEY: await newKey('agents', 'inference') }
  expect('reason' in python && python.reason).toBe(false)
  const { stdout } = await run((python as { python: string }).python, [join(folder, 'python-openai/chat.py'), 'rules', QUESTION], { env })
  const [answer, ...citations] = stdout.trim().split('\n')
  expect(answer).toMatch(/60 dollars.*\[#1\]/)
  expect(citations.join('\n')).toMatch(CITED)
})

describe('partner-graphql-ws', () => {
  function follow(url: string, key: string) {
    const cwd = join(folder, 'partner-graphql-ws')
    const child = spawn(process.execPath, ['follow.ts'], { cwd, env: { KIS_URL: url, KIS_API_KEY: key } })
    const printed = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) child[name].on('data', (text) => (printed[name] += text))
    return { child, printed, exited: new Promise<number | null>((resolve) => child.on('close', resolve)) }
  }

  it('follows each charge once, across a disconnect and a restart', async () => {
    const partner = await newOrganization(createCaller(service, service.key), service)
    const key = (await partner.rest('POST', '/v1/keys', { name: 'partner', scopes: ['billing:read'] })).body.key
    const charge = () => partner.openai.chat.completions.create({ model: 'mock-chat', messages: [{ role: 'user', content: 'Hi' }] })
    await using proxy = await TcpProxy.start(service.rest)
    await charge()
    const first = follow(proxy.url, key)
    const linesOf = ({ printed }: typeof first) => printed.stdout.split('\n').slice(0, -1)
    try {
      await eventually(() => linesOf(first).length === 1)
      await proxy.stop()
      await charge()
      await proxy.resume()
      await eventually(() => linesOf(first).length === 2)
    } finally {
      first.child.kill('SIGKILL')
    }
    await first.exited
    await charge()
    const second = follow(proxy.url, key)
    try {
      await eventually(() => linesOf(second).length === 1)
    } finally {
      second.child.kill()
    }
    const followed = [first, second].flatMap(linesOf).map((line) => JSON.parse(line))
    const { body } = await partner.rest('GET', '/v1/usage')
    expect(followed.map(({ id }) => id)).toEqual(body.data.map(({ id }: { id: string }) => id).reverse())
    expect(followed[0]).toMatchObject({ operation: 'CHAT_COMPLETION', model: { id: 'mock-chat' } })
  })

  it('ends with the reason when its key is not valid', async () => {
    const { printed, exited } = follow(service.rest, 'kis_live_none')
    expect([await exited, printed.stderr]).toEqual([1, 'The key is not valid\n'])
  })
})

it.skipIf(!mayRun(chromium))(
  describeRuntime('react-apollo searches, asks, and follows documents across a disconnect', chromium),
  async () => {
    expect('reason' in chromium && chromium.reason).toBe(false)
    await using proxy = await TcpProxy.start(service.rest)
    const root = join(folder, 'react-apollo')
    const { PATH = '' } = process.env
    await run(process.execPath, [join(ROOT, 'node_modules/vite/bin/vite.js'), 'build'], {
      cwd: root,
      env: { PATH, VITE_KIS_URL: proxy.url },
    })
    expect(existsSync(join(root, 'dist/index.html'))).toBe(true)
    const site = await preview({ root, configFile: false, logLevel: 'silent', preview: { port: 0, host: '127.0.0.1' } })
    const page = await (chromium as BrowserPackages).browser.newPage()
    const errors: string[] = []
    page.on('pageerror', (error) => errors.push(error.message))
    try {
      await page.goto(site.resolvedUrls!.local[0]!)
      const send = async (label: string, text: string) => {
        await page.getByLabel(label, { exact: true }).fill(text)
        await page.getByLabel(label, { exact: true }).press('Enter')
      }
      await send('API key', await newKey('knowledge:read', 'agents'))
      await page.getByText('travel.md: READY').waitFor()
      await send('Search', 'meals')
      await page.getByLabel('Hits').getByText(CITED).waitFor()
      await send('Ask', QUESTION)
      await page.getByLabel('Answer').getByText(CITED).waitFor()
      await addDocument(caller, collectionId, 'live.md', 'Seen live.')
      await page.getByText('live.md: READY').waitFor()
      await proxy.stop()
      await addDocument(caller, collectionId, 'missed.md', 'Seen after the break.')
      await proxy.resume()
      await page.getByText('missed.md: READY').waitFor()
      expect(errors).toEqual([])
    } finally {
      await page.close()
      await site.close()
    }
  },
)
