import { execFileSync, spawn } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import {
  addDocument,
  type Caller,
  createCaller,
  type Json,
  newCollection,
  newOrganization,
  type RestResponse,
} from '../../support/client.ts'
import { CorruptionTable, type Shown } from '../../support/docs/corruption-table.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { kis, runKis } from '../../support/processes/cli.ts'
import { freePorts, ServiceProcess, startEmbedded } from '../../support/processes/service.ts'
import { startInTurn } from '../../support/processes/starts.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const TIMEOUT_MS = 300_000
// Those that `kis verify` keeps waiting for half a minute leave the machine to the others. Each has a copy of the data
// of its own.
vi.setConfig({ maxConcurrency: 8 })
const STORES = ['billing', 'knowledge', 'blobs', 'inference'] as const
const DERIVED = 'index'

const BACKUP = 'put the data folder back from a backup'
const table = new CorruptionTable()
/** The start ends with code 1: nothing can be asked of it. */
const ENDED = { readyz: null, call: null, verify: null }

/** What a service was killed with, the same after a start that was stopped in order, and the folder of another installation. */
let rootFolder: string
let mock: MockEngine
/** Of the first installation: the operator's, and what somebody has. */
let key: string
let caller: Caller
let collection: Json
let document: Json

const dataFolder = (name: string) => join(rootFolder, name, 'data')

/** A service on a copy of a folder, as it starts; `change` damages the copy. */
async function startOn(name: string, change: (data: string) => void) {
  const copy = mkdtempSync(join(rootFolder, 'copy-'))
  const data = join(copy, 'data')
  cpSync(dataFolder(name), data, { recursive: true })
  change(data)
  const [port] = await freePorts(1)
  const address = `http://127.0.0.1:${port}`
  const launched = ServiceProcess.launch([], {
    KIS_DATA_DIR: data,
    KIS_CATALOG: join(rootFolder, 'catalog.yaml'),
    KIS_RETRY_BACKOFF_MS: '20',
    PORT: String(port),
  })
  const readiness = async () => {
    const response = await fetch(`${address}/readyz`).catch(() => undefined)
    return response && { status: response.status, problems: ((await response.json()) as { problems: string[] }).problems }
  }
  /** Ended, ready, or waiting for something. */
  await eventually(
    async () => launched.hasEnded || launched.lines.some((line) => line.startsWith('ready ') || line.startsWith('waiting for ')),
    TIMEOUT_MS,
  )
  return {
    data,
    launched,
    address,
    readiness,
    graphql: `${address}/graphql`,
    [Symbol.asyncDispose]: async () => {
      await launched.end('SIGKILL')
      rmSync(copy, { recursive: true, force: true })
    },
  }
}

/** What a start says that ends by itself. */
async function refusal(name: string, change: (data: string) => void) {
  await using started = await startOn(name, change)
  const { launched } = started
  await eventually(() => launched.hasEnded, TIMEOUT_MS)
  return { code: await launched.end(), errors: launched.errors.trim().replaceAll(started.data, 'DATA') }
}

const startOnFolder = (data: string, { env = {}, mayWait = false }: { env?: Readonly<Record<string, string>>; mayWait?: boolean } = {}) =>
  startInTurn({ KIS_DATA_DIR: data, KIS_CATALOG: join(rootFolder, 'catalog.yaml'), ...env }, { mayWait })

/** As `refusal`, without a process of its own. */
async function refusalOf(name: string, change: (data: string) => unknown, options: Parameters<typeof startOnFolder>[1] = {}) {
  const copy = mkdtempSync(join(rootFolder, 'copy-'))
  const data = join(copy, 'data')
  cpSync(dataFolder(name), data, { recursive: true })
  await change(data)
  const errors = await startOnFolder(data, options)
  rmSync(copy, { recursive: true, force: true })
  return { code: errors === null ? 0 : 1, errors: errors?.trim().replaceAll(data, 'DATA') ?? '' }
}

function overwrite(file: string, from: number, bytes: Uint8Array): void {
  const descriptor = openSync(file, 'r+')
  writeSync(descriptor, bytes, 0, bytes.length, from)
  closeSync(descriptor)
}

/** What a call and `kis verify` say. */
function shownBy(refused: RestResponse, verified: Awaited<ReturnType<typeof kis>>): Pick<Shown, 'call' | 'verify'> {
  const said = [...verified.lines, verified.errors].join(' ')
  return { call: `${refused.status} ${refused.body.error?.message}`, verify: `code ${verified.code}: ${said}` }
}

/** `msg` of the first line of a log that matches. */
function findMessage(log: string, like: RegExp): string {
  const { msg, file } = JSON.parse(log.split('\n').find((line) => like.test(line))!) as Record<string, string>
  return file ? `${msg}: ${file}` : msg!
}

const readPageSize = (file: string) => readFileSync(file).readUInt16BE(16) || 65_536
/** All pages but the first: which of them a store reads at once differs. */
const scramble = (file: string) => {
  const page = readPageSize(file)
  overwrite(file, page, randomFillSync(new Uint8Array(statSync(file).size - page)))
}

beforeAll(async () => {
  rootFolder = mkdtempSync(join(tmpdir(), 'kis-damage-'))
  mock = await startMockEngine()
  writeFileSync(join(rootFolder, 'catalog.yaml'), mockCatalog(mock.url))
  // Another installation, in which nothing was done.
  const second = startOnFolder(dataFolder('second'))
  mkdirSync(join(rootFolder, 'killed'))
  const service = await startEmbedded({ catalog: mockCatalog(mock.url), folder: join(rootFolder, 'killed') })
  caller = await newOrganization(createCaller(service, service.key), service, { creditUsd: '10' })
  key = service.key
  collection = await newCollection(caller, 'mock-embed')
  document = await addDocument(caller, collection.id, 'a.txt', 'The sultan keeps his letters in a cedar chest.')
  await caller.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: 'Good morning' }] })
  await service.processes.get('all')!.end('SIGKILL')
  cpSync(dataFolder('killed'), dataFolder('first'), { recursive: true })
  expect([await startOnFolder(dataFolder('first')), await second]).toEqual([null, null])
}, TIMEOUT_MS)
afterAll(async () => {
  table.check()
  await mock?.[Symbol.asyncDispose]()
  rmSync(rootFolder, { recursive: true, force: true })
})

describe.concurrent('Corruption of index.sqlite, which can be rebuilt', { timeout: TIMEOUT_MS }, () => {
  const at = (data: string) => join(data, `${DERIVED}.sqlite`)
  for (const { what, folder = 'first', change } of [
    { what: 'header overwritten', change: (data: string) => overwrite(at(data), 0, Buffer.from('not a database at all')) },
    { what: 'pages overwritten', change: (data: string) => scramble(at(data)) },
    { what: 'cut short', change: (data: string) => truncateSync(at(data), 8192) },
    { what: 'deleted', change: (data: string) => rmSync(at(data)) },
    { what: 'of another installation', change: (data: string) => cpSync(join(dataFolder('second'), 'index.sqlite'), at(data)) },
    { what: 'log of changes deleted', folder: 'killed', change: (data: string) => rmSync(`${at(data)}-wal`) },
  ])
    it(`${what}: the service reports it, serves the rest, and is whole after kis reindex, without an embedding`, async () => {
      await using started = await startOn(folder, change)
      const { launched, address } = started
      // The other parts may still be opening when the first line is printed.
      await eventually(async () => (await started.readiness())?.problems.join() === 'chunk index: it is corrupted', TIMEOUT_MS)
      const waitingLines = () =>
        launched.lines.filter((line) => line.startsWith('waiting for ') && line.includes('chunk index: it is corrupted'))
      await eventually(() => waitingLines().length > 0, TIMEOUT_MS)
      const waiting = waitingLines().at(-1)
      expect(waiting).toMatch(/chunk index: it is corrupted: .*kis reindex/)
      expect(await started.readiness()).toEqual({ status: 503, problems: ['chunk index: it is corrupted'] })
      await eventually(() => launched.errors.includes('the chunk index cannot be read'))
      const again = { ...caller, ...createCaller({ rest: address, graphql: started.graphql }, caller.key) }
      const search = () => again.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'cedar chest' })
      const refused = await search()
      const verified = await kis(started, key, 'verify')
      // What else is still opening at that moment is not of the case.
      const [problem] = /chunk index: it is corrupted: [^;]*/.exec(waiting!)!
      const INDEX_CASE = { log: `waiting for ${problem}`, readyz: '503 chunk index: it is corrupted', repair: '`kis reindex`' }
      table.note('index.sqlite', what, { ...INDEX_CASE, ...shownBy(refused, verified) }, started.data)
      if (folder !== 'first') return
      expect(refused).toMatchObject({
        status: 503,
        body: { error: { code: 'service_unavailable', message: 'The chunk index is unavailable at the moment: it is corrupted.' } },
      })
      const operator = createCaller({ rest: address, graphql: started.graphql }, key)
      const balance = async () => (await operator.rest('GET', '/v1/wallet')).body.balance_usd
      const before = await balance()
      const said = await kis(started, key, 'reindex')
      expect([said.errors, said.code]).toEqual(['', 0])
      expect(said.lines).toEqual([
        'the index could not be read; an empty one has replaced it, and is now being filled',
        `missing ${collection.id}: not in the index, created`,
        `missing ${collection.id} ${document.id} g1: 0 of 1 chunks, restored`,
        expect.stringMatching(/ 1 chunks: 0 missing, 0 incomplete, 0 extra, 0 being repaired$/),
      ])
      await launched.ready()
      expect((await started.readiness())?.status).toBe(200)
      expect((await search()).body.data.map((hit: Json) => hit.document_id)).toEqual([document.id])
      expect(await balance()).toBe(before)
      if (what !== 'deleted')
        expect(readdirSync(started.data).filter((name) => /^index\.sqlite\.unreadable-[\dTZ-]+$/.test(name))).toHaveLength(1)
    })

  it('of a newer version ends the start: it is intact', async () => {
    const { code, errors } = await refusalOf('first', (data) => {
      using closing = new DisposableStack()
      const database = new DatabaseSync(at(data))
      closing.defer(() => database.close())
      database.exec('PRAGMA user_version=99')
    })
    expect([code, errors]).toEqual([1, expect.stringMatching(/^DATA\/index\.sqlite has schema version 99/)])
    table.note('index.sqlite', 'of a newer version', { ...ENDED, log: errors, repair: 'start the newer version' })
  })
})

describe.concurrent('Corruption at run time', { timeout: TIMEOUT_MS }, () => {
  it('found by a read is logged once, by the name of the file, and keeps /readyz at 503', async () => {
    // More than a start looks at: only the search meets it.
    await using started = await startOn('first', () => {})
    const { launched, address, data } = started
    // Whoever still opens the file would find the damage himself.
    await launched.ready()
    const again = createCaller({ rest: address, graphql: started.graphql }, caller.key)
    const index = join(data, 'index.sqlite')
    const page = readPageSize(index)
    // Changes of another program, under the eyes of the one that has the file open.
    overwrite(index, page, randomFillSync(new Uint8Array(statSync(index).size - page)))
    for (let i = 0; i < 3; i++) {
      const { status } = await again.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'cedar chest' })
      expect(status).toBe(503)
    }
    await eventually(async () => (await started.readiness())?.status === 503)
    expect(await started.readiness()).toEqual({ status: 503, problems: ['chunk index: it is corrupted'] })
    await eventually(() => launched.errors.includes('a SQLite file is corrupted'))
    expect(launched.errors.match(/a SQLite file is corrupted/g)).toHaveLength(1)
    expect(launched.errors).toContain(index)
    const refused = await again.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'cedar chest' })
    const shown = shownBy(refused, await kis(started, key, 'verify'))
    const log = findMessage(launched.errors, /a SQLite file is corrupted/)
    table.note(
      'index.sqlite',
      'pages overwritten while it runs',
      { log, readyz: '503 chunk index: it is corrupted', ...shown, repair: '`kis reindex`' },
      data,
    )
    expect((await kis(started, key, 'reindex')).code).toBe(0)
    expect((await started.readiness())?.status).toBe(200)
  })
})

it.concurrent(
  'a stopped service leaves no write-ahead log, and a killed one starts again with its own',
  async () => {
    expect(readdirSync(dataFolder('first')).filter((name) => name.endsWith('-wal'))).toEqual([])
    expect(readdirSync(dataFolder('killed')).filter((name) => name.endsWith('-wal'))).toHaveLength(5)
    expect(await refusalOf('killed', () => undefined)).toEqual({ code: 0, errors: '' })
  },
  TIMEOUT_MS,
)

for (const store of STORES)
  describe.concurrent(`Corruption of ${store}.sqlite ends the start`, { timeout: TIMEOUT_MS }, () => {
    const name = `${store}.sqlite`
    const at = (data: string) => join(data, name)
    const RESTORE = 'Stop the service, and restore the data folder from a backup.'

    it('with a corrupted header', async () => {
      const { code, errors } = await refusalOf('first', (data) => overwrite(at(data), 0, Buffer.from('not a database at all')))
      expect([code, errors]).toEqual([1, `DATA/${name} is corrupted (file is not a database). ${RESTORE}`])
      table.note(name, 'header overwritten', { ...ENDED, log: errors, repair: BACKUP })
    })

    it('with overwritten pages', async () => {
      const { code, errors } = await refusalOf('first', (data) => scramble(at(data)))
      expect(code).toBe(1)
      expect(errors).toMatch(new RegExp(`DATA/${name} is corrupted \\([^]+\\)\\. ${RESTORE}$`))
      table.note(name, 'pages overwritten', { ...ENDED, log: errors, repair: BACKUP })
    })

    it('truncated', async () => {
      const { code, errors } = await refusalOf('first', (data) => truncateSync(at(data), readPageSize(at(data)) * 2))
      expect(code).toBe(1)
      expect(errors).toMatch(new RegExp(`DATA/${name} is corrupted \\([^]+\\)\\. ${RESTORE}$`))
      table.note(name, 'cut short', { ...ENDED, log: errors, repair: BACKUP })
    })

    it('emptied, or missing', async () => {
      for (const lose of [(data: string) => truncateSync(at(data)), (data: string) => rmSync(at(data))]) {
        const { code, errors } = await refusalOf('first', lose)
        expect(code).toBe(1)
        expect(errors).toMatch(new RegExp(`^DATA/${name} is missing, though .* of the same installation are there\\. Restore it`))
        table.note(name, 'deleted, or empty', { ...ENDED, log: errors, repair: BACKUP })
      }
    })

    it('of another installation', async () => {
      const { code, errors } = await refusalOf('first', (data) => cpSync(join(dataFolder('second'), name), at(data)))
      expect(code).toBe(1)
      expect(errors).toMatch(/belongs to the installation inst_/)
      table.note(name, 'of another installation', { ...ENDED, log: errors, repair: 'put the right file back' })
    })

    it('of a newer version', async () => {
      const { code, errors } = await refusalOf('first', (data) => {
        using closing = new DisposableStack()
        const database = new DatabaseSync(at(data))
        closing.defer(() => database.close())
        database.exec('PRAGMA user_version=99')
      })
      expect(code).toBe(1)
      expect(errors).toMatch(new RegExp(`^DATA/${name} has schema version 99; this program knows \\d+\\. Start a newer version`))
      table.note(name, 'of a newer version', { ...ENDED, log: errors, repair: 'start the newer version' })
    })

    it('without the log that a killed process left, until the operator accepts the loss', async () => {
      const { code, errors } = await refusalOf('killed', (data) => rmSync(join(data, `${name}-wal`)))
      expect(code).toBe(1)
      expect(errors).toMatch(new RegExp(`^DATA/${name}-wal is missing\\. [^]+ run \`kis accept-loss ${name}-wal\``))
      table.note(name, 'log of changes deleted', { ...ENDED, log: errors, repair: `\`kis accept-loss ${name}-wal\`` })
      const accept = async (data: string) => {
        rmSync(join(data, `${name}-wal`))
        const said = await runKis({ KIS_DATA_DIR: data }, 'accept-loss', `${name}-wal`)
        expect(said).toMatchObject({ code: 0, lines: [expect.stringContaining('will be used without')] })
      }
      const accepted = await refusalOf('killed', accept, { mayWait: true })
      // What the file alone holds may be nothing, and then it is no store of a service that ran.
      expect(accepted.errors).not.toContain('-wal is missing')
    })
  })

describe.concurrent('Secret', { timeout: TIMEOUT_MS }, () => {
  it('that is missing or different ends the start', async () => {
    // In a process, as operators see it.
    const gone = await refusal('first', (data) => rmSync(join(data, 'secret')))
    expect([gone.code, gone.errors]).toEqual([1, expect.stringMatching(/^DATA\/secret is missing, .* or set KIS_SECRET to the secret/)])
    table.note('secret', 'deleted', { ...ENDED, log: gone.errors, repair: 'put the file back, or set `KIS_SECRET` to it' })
    for (const { code, errors } of [
      await refusalOf('first', (data) => writeFileSync(join(data, 'secret'), 'x'.repeat(64))),
      await refusalOf('first', () => undefined, { env: { KIS_SECRET: 'another secret, which is long enough to be one' } }),
    ]) {
      expect(code).toBe(1)
      expect(errors).toMatch(/^The data was created with another secret: .*KIS_SECRET/)
      expect(errors.split('\n')).toHaveLength(1)
      table.note('secret', 'another one', { ...ENDED, log: errors, repair: 'put the file back, or set `KIS_SECRET` to it' })
    }
  })
})

/** The command ends well. */
function works(command: string, args: readonly string[], options: { readonly uid?: number } = {}): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore', ...options })
    return true
  } catch {
    return false
  }
}

const NOBODY = 65_534
const mayBeNobody =
  process.getuid?.() === 0 &&
  works(process.execPath, ['-e', `fs.readFileSync(${JSON.stringify(join(ROOT, 'cli/kis.js'))})`], { uid: NOBODY })
describe.skipIf(!mayBeNobody)(
  'Unwritable file (needs root, and a checkout that others may read)',
  { concurrent: true, timeout: TIMEOUT_MS },
  () => {
    const readOnly = (file: string) => chmodSync(file, 0o400)
    const makeForeign = (file: string) => chownSync(file, 0, 0)
    // Primary files, and the derived one.
    it.each([
      { what: 'read-only', stores: ['billing', 'blobs', DERIVED], close: readOnly },
      { what: 'of another user', stores: ['knowledge', 'inference', DERIVED], close: makeForeign },
    ])('$stores, $what, are waited for, and named, and used once repaired', async ({ what, stores, close }) => {
      const copy = mkdtempSync(join(rootFolder, 'nobody-'))
      const data = join(copy, 'data')
      const file = (store: string) => join(data, `${store}.sqlite`)
      cpSync(dataFolder('first'), data, { recursive: true })
      for (const folder of [rootFolder, copy]) chmodSync(folder, 0o755)
      execFileSync('chown', ['-R', String(NOBODY), data])
      for (const store of stores) close(file(store))
      cpSync(join(rootFolder, 'catalog.yaml'), join(copy, 'catalog.yaml'))
      chmodSync(join(copy, 'catalog.yaml'), 0o644)
      const [port] = await freePorts(1)
      const child = spawn(process.execPath, [join(ROOT, 'cli/kis.js'), 'start'], {
        cwd: ROOT,
        uid: NOBODY,
        env: {
          PATH: process.env.PATH ?? '',
          KIS_DATA_DIR: data,
          KIS_PORTAL: 'off',
          KIS_CATALOG: join(copy, 'catalog.yaml'),
          PORT: String(port),
          HOST: '127.0.0.1',
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const ended = once(child, 'close')
      let said = ''
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text))
      const says = (what: RegExp) => eventually(() => child.exitCode !== null || what.test(said), TIMEOUT_MS)
      const address = `http://127.0.0.1:${port}`
      const again = createCaller({ rest: address, graphql: `${address}/graphql` }, caller.key)
      const mended: string[] = []
      while (mended.length < stores.length) {
        // The first line may come before the file was tried. The others are named once the first is mended.
        const named = new RegExp(
          `^waiting for .*${data}/((?!${['-', ...mended].join('\\b|')})\\w+)\\.sqlite cannot be opened: [^;\\n]*`,
          'm',
        )
        await says(named)
        const store = named.exec(said)![1]!
        const ready = await fetch(`${address}/readyz`)
        const readyz = `${ready.status} ${((await ready.json()) as { problems: string[] }).problems.join('; ')}`
        const refused = await again.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'cedar chest' })
        const [problem] = new RegExp(`${data}/${store}\\.sqlite cannot be opened: [^;\\n]*`).exec(said)!
        const log = `waiting for document store: ${problem}`
        const call = `${refused.status} ${refused.body.error?.code}`
        table.note(`${store}.sqlite`, what, { log, readyz, call, repair: 'give the file back; no restart' }, data)
        chownSync(file(store), NOBODY, NOBODY)
        chmodSync(file(store), 0o600)
        mended.push(store)
      }
      expect(mended.toSorted()).toEqual(stores.toSorted())
      await says(/^ready /m)
      child.kill('SIGKILL')
      await ended
      expect(said).toMatch(/^ready /m)
    })
  },
)

const mayMount = works('unshare', ['-Urm', 'mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', tmpdir()])
describe.skipIf(!mayMount)('Full disk (needs unshare, to mount a small one)', { timeout: TIMEOUT_MS }, () => {
  it('is reported in the log, in /readyz and in the error, while it is full, and the service recovers', async () => {
    const folder = mkdtempSync(join(rootFolder, 'full-'))
    const disk = join(folder, 'data')
    const under = ['unshare', '-Urm', 'sh', '-c', `mkdir -p ${disk} && mount -t tmpfs -o size=24m none ${disk} && exec "$@"`, 'sh']
    const service = await startEmbedded({ catalog: mockCatalog(mock.url), folder, under: () => under })
    try {
      const process = service.processes.get('all')!
      const operator = createCaller(service, service.key)
      const seen = `/proc/${process.pid}/root${disk}`
      expect(existsSync(join(seen, 'billing.sqlite'))).toBe(true)
      const owner = await newOrganization(operator, service, { creditUsd: '10' })
      const created = await newCollection(owner, 'mock-embed')
      execFileSync('sh', ['-c', `dd if=/dev/zero of=${seen}/ballast bs=64k 2>/dev/null || true`])
      const upload = () => owner.rest('POST', `/v1/collections/${created.id}/search`, { query: 'anything' })
      const chat = () =>
        owner.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: 'Good morning' }] })
      let response = await chat()
      await eventually(async () => {
        response = await chat()
        return response.status === 503
      }, TIMEOUT_MS)
      expect(response.body.error).toMatchObject({ code: 'service_unavailable', message: expect.stringContaining('the disk is full') })
      const ready = await fetch(`${service.rest}/readyz`)
      const said: string[] = ((await ready.json()) as Json).problems
      expect([ready.status, said]).toEqual([503, expect.arrayContaining(['document store: the disk is full'])])
      await eventually(() => /"msg":"[^"]*the disk is full[^\n]*\n/.test(process.errors))
      const log = findMessage(process.errors, /"msg":"[^"]*the disk is full/)
      table.note(
        'each file',
        'full disk',
        {
          log: log.replace(/\w+\.sqlite/, '….sqlite'),
          readyz: '503 document store: the disk is full',
          call: `${response.status} ${response.body.error.message.replace(/^The [a-z ]+ store/, 'The … store')}`,
          repair: 'make room; no restart',
        },
        disk,
      )
      rmSync(join(seen, 'ballast'))
      await eventually(async () => (await fetch(`${service.rest}/readyz`)).status === 200, TIMEOUT_MS)
      expect((await chat()).status).toBe(200)
      expect((await upload()).status).toBe(200)
    } finally {
      await service.close()
    }
  })
})
