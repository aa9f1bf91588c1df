import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { apiKeyFrom } from '../subgraphs/billing/accounts/domain/api-key.ts'
import { openPepper } from '../subgraphs/billing/accounts/use-cases/key-pepper.ts'
import { newSecret } from '../subgraphs/billing/accounts/use-cases/new-api-key.ts'
import { openCollections } from '../subgraphs/billing/use-cases/tables.ts'
import { openSqliteDocumentStore } from '../subgraphs/common/adapters/sqlite/documents/document-store.ts'
import { parseSecret } from '../subgraphs/common/identity/secrets.ts'
import { silentLog } from '../subgraphs/common/process/log.ts'
import { mockCatalog } from '../test/support/catalog.ts'
import { startEmbedded, TEST_SECRET } from '../test/support/processes/service.ts'
import { soaking } from '../test/support/soak.ts'
import type { BenchRow } from './row.ts'
import { measureSearch } from './search.ts'
import { Child } from './support/child.ts'
import { type Case, compared } from './support/compared.ts'
import { type Growth, logLogSvg, steepest } from './support/log-log.ts'
import { seeded, wordSource } from './support/words.ts'

const AT_ONCE = [1, 8, 64, 256]
const PROMPT_BYTES = [1_000, 10_000, 100_000, 1_000_000, 5_000_000]
const ORGANIZATIONS = [1, 100, 10_000]
const COLLECTIONS = [1, 100, 1_000]
const SEARCHED_CHUNKS = 20_000
/** Sizes of the ledger. With `KIS_SOAK=1` up to a million entries, which takes some minutes to write. */
const ENTRIES = soaking ? [10, 10_000, 1_000_000] : [10, 10_000, 100_000]
/** Times of the rounds. A long prompt takes 0.1 s, and a process must be warm. */
const ROUNDS = { warmUpMs: 4_000, roundMs: 4_000, rounds: 2 }
/** The port's limit of documents in one insert. */
const PER_INSERT = 1_000
/** The steepest accepted growth: nothing may grow faster than its input. Figures of a busy machine scatter. */
const STEEPEST = 1.05
const PLOT = fileURLToPath(new URL('../docs/growth.svg', import.meta.url))
const SHORT = createBody(10)

/** Measures how the CPU of a call grows, with a chart for `docs/measurements.md`. */
export async function benchGrowth(): Promise<BenchRow[]> {
  const growths = await withService(async (service) => [
    {
      title: 'a chat, by chats at once',
      unit: 'chats at once',
      points: await service.measure(AT_ONCE, (atOnce) => ({ body: SHORT, atOnce })),
    },
    {
      title: 'a chat, by the length of its prompt',
      unit: 'bytes',
      points: await service.measure(PROMPT_BYTES, (bytes) => ({ body: createBody(bytes) })),
    },
    { title: 'a chat, by entries of the ledger', unit: 'entries', points: await service.grow(ENTRIES, fillLedger) },
    { title: 'a chat, by organizations', unit: 'organizations', points: await service.grow(ORGANIZATIONS, addOrganizations) },
  ])
  growths.push({ title: 'a search, by collections', unit: 'collections', points: await searches() })
  await writeFile(PLOT, logLogSvg(growths))
  return growths.map((growth) => ({
    what: `CPU of ${growth.title}`,
    figure: growth.points.map(({ size, cost }) => `${size.toLocaleString('en')}: ${cost.toFixed(2)} ms`).join(', '),
    target: `grows with at most the power 1`,
    beside: `steepest: the power ${steepest(growth).toFixed(2)}${steepest(growth) > STEEPEST ? ', **too steep**' : ''}`,
  }))
}

async function searches(): Promise<Growth['points']> {
  const points: { size: number; cost: number }[] = []
  for (const size of COLLECTIONS) {
    const { cpuMs, times } = await measureSearch(SEARCHED_CHUNKS, size)
    points.push({ size, cost: cpuMs / times.length })
  }
  return points
}

type Tables = ReturnType<typeof openCollections>
/** Fills the tables to a size. Returns the keys of the callers. Empty: the operator's. */
type Fill = (tables: Tables, size: number) => Promise<readonly string[]>

interface Measured {
  measure(sizes: readonly number[], to: (size: number) => Pick<Case, 'body' | 'atOnce'>): Promise<Growth['points']>
  /** Fills the stopped service's store to each size. */
  grow(sizes: readonly number[], fill: Fill): Promise<Growth['points']>
}

async function withService<R>(use: (service: Measured) => Promise<R>): Promise<R> {
  const folder = await mkdtemp(join(tmpdir(), 'kis-bench-growth-'))
  await using engine = new Child('./engine-process.ts')
  await using load = new Child('./load-process.ts')
  // The context window must fit a prompt of 5 MB.
  const catalog = mockCatalog(await engine.nextMessage<string>()).replace('context_window: 128000', 'context_window: 10000000')
  const own = apiKeyFrom(randomBytes(32))
  const start = () =>
    startEmbedded({ folder, catalog, env: { KIS_SECRET: TEST_SECRET, KIS_BOOTSTRAP_API_KEY: own, KIS_BOOTSTRAP_CREDIT_USD: '100000' } })
  let service = await start()
  const cost = async (request: Pick<Case, 'body' | 'atOnce'>, keys: readonly string[] = []) => {
    const callers = (keys.length > 0 ? keys : [own]).map((key) => ({ authorization: `Bearer ${key}` }))
    const subject = {
      name: 'ours',
      url: `${service.rest}/v1/chat/completions`,
      headers: callers[0]!,
      pid: service.processes.get('all')!.pid,
    }
    const [found] = await compared(load, [{ subject, callers, ...request }], ROUNDS)
    return found!.cpuMs
  }
  try {
    return await use({
      async measure(sizes, to) {
        const points: { size: number; cost: number }[] = []
        for (const size of sizes) points.push({ size, cost: await cost(to(size)) })
        return points
      },
      async grow(sizes, fill) {
        const points: { size: number; cost: number }[] = []
        for (const size of sizes) {
          await service.close()
          const keys = await filled(folder, (tables) => fill(tables, size))
          service = await start()
          points.push({ size, cost: await cost({ body: SHORT }, keys) })
        }
        return points
      },
    })
  } finally {
    await service.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function filled<R>(folder: string, fill: (tables: Tables) => Promise<R>): Promise<R> {
  await using store = await openSqliteDocumentStore({ file: join(folder, 'data', 'billing.sqlite'), log: silentLog })
  return await fill(openCollections(store))
}

/** Repeats the organization's latest entry. */
async function fillLedger({ entries, wallets, bootstrap }: Tables, size: number): Promise<readonly string[]> {
  const { organizationId } = (await bootstrap.findOne({ _id: 'operator' }))!
  const [last] = await entries.find({ organizationId }, { sort: { sequence: -1 }, limit: 1 })
  const wallet = (await wallets.findOne({ _id: organizationId }))!
  await inParts(size - wallet.sequence, (i) => ({ ...last!, _id: `entry_${size}_${i}`, sequence: wallet.sequence + 1 + i }), entries)
  await wallets.findOneAndUpdate({ _id: organizationId }, { $set: { sequence: Math.max(size, wallet.sequence) }, $inc: { revision: 1 } })
  return []
}

/** Repeats the operator's organization. Each copy has a key and a wallet of its own. */
async function addOrganizations(tables: Tables, size: number): Promise<readonly string[]> {
  const { organizations, wallets, apiKeys, bootstrap } = tables
  const first = (await bootstrap.findOne({ _id: 'operator' }))!
  const { organizationId, apiKeyId } = first
  const pepper = await openPepper({ collections: tables, secret: parseSecret(TEST_SECRET), secretFingerprint: null }, first)
  const organization = (await organizations.findOne({ _id: organizationId }))!
  const apiKey = (await apiKeys.findOne({ _id: apiKeyId }))!
  const newKeys = Array.from({ length: size }, (_, i) => ({ id: `org_${size}_${i}`, ...newSecret(pepper) }))
  await inParts(size, (i) => ({ ...organization, _id: newKeys[i]!.id }), organizations)
  await inParts(
    size,
    (i) => ({ _id: newKeys[i]!.id, revision: 0, available: 1e12, held: 0, sequence: 0, holds: {}, spending: {}, outbox: [] }),
    wallets,
  )
  await inParts(
    size,
    (i) => ({
      ...apiKey,
      _id: `key_${newKeys[i]!.id}`,
      organizationId: newKeys[i]!.id,
      digest: newKeys[i]!.digest,
      last4: newKeys[i]!.last4,
    }),
    apiKeys,
  )
  return newKeys.map(({ key }) => key)
}

async function inParts<T>(
  count: number,
  create: (i: number) => T,
  into: { insertMissing(documents: readonly T[]): Promise<number> },
): Promise<void> {
  for (let at = 0; at < count; at += PER_INSERT)
    await into.insertMissing(Array.from({ length: Math.min(PER_INSERT, count - at) }, (_, i) => create(at + i)))
}

function createBody(bytes: number): string {
  const word = wordSource(seeded(1), ['en'])
  const words: string[] = []
  for (let length = 0; length < bytes; length += words.at(-1)!.length + 1) words.push(word())
  return JSON.stringify({ model: 'mock-chat', messages: [{ role: 'user', content: words.join(' ') }] })
}
