import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { AGENT_QUESTION, FILES, type FrozenList, SEARCH, WORKFLOW_INPUTS, WORKFLOW_OUTPUT } from '../../frozen/contents.ts'
import { addDocument, balancedWallet, type Caller, createCaller, type Json } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { kis, runKis } from '../../support/processes/cli.ts'
import { clockWrongBy, type Service, ServiceProcess, startEmbedded } from '../../support/processes/service.ts'
import { soaking } from '../../support/soak.ts'

const FROZEN = fileURLToPath(new URL('../../frozen', import.meta.url))
const ENDING = '.tar.gz'
/** Kills of the first start of the oldest folder, which brings it up to date. A start takes about so long. */
const KILLS = soaking ? 20 : 1
const KILLED_WITHIN_MS = 4_000
const names = readdirSync(FROZEN)
  .filter((name) => name.endsWith(ENDING))
  .map((name) => name.slice(0, -ENDING.length))
  .sort()

it('has a frozen data directory', () => expect(names).toContain('data-0.1.0'))

describe.concurrent('Frozen data directory of an earlier version', () => {
  it.each(names)(
    '%s is upgraded, serves all its content, and is restored from a backup',
    async (name) => {
      const list: FrozenList = JSON.parse(readFileSync(join(FROZEN, `${name}.json`), 'utf8'))
      const folder = mkdtempSync(join(tmpdir(), 'kis-frozen-'))
      const data = join(folder, 'data')
      const archive = join(folder, 'archive.kis')
      const command = (...args: string[]) => runKis({ KIS_DATA_DIR: data, KIS_BACKUP_PASSPHRASE: 'frozen for a long time' }, ...args)
      mkdirSync(data)
      execFileSync('tar', ['-xzf', join(FROZEN, `${name}${ENDING}`), '-C', data])
      for (let kill = 0; kill < (name === names[0] ? KILLS : 0); kill++) {
        const killed = ServiceProcess.launch([], { ...clockSettings(list), KIS_DATA_DIR: data })
        await new Promise((resolve) => setTimeout(resolve, Math.random() * KILLED_WITHIN_MS))
        await killed.end('SIGKILL')
      }
      const migrated = ['billing', 'inference', 'knowledge'].map((part) => `${part}: the documents have the version of this program`)
      expect(await command('migrate')).toEqual({ code: 0, lines: migrated, errors: '' })
      const whileRunning = async (env: Record<string, string>, inspect: (service: Service) => Promise<void>) => {
        const service = await startEmbedded({ folder, env })
        try {
          // None that is new: the operator is known.
          expect(service.key).toBe('')
          await inspect(service)
        } finally {
          await service.close()
        }
      }
      try {
        await whileRunning(clockSettings(list), async (service) => {
          const operator = createCaller(service, list.key)
          await acceptsBothKeys(service, list)
          await hasTheMoney(operator, list)
          await hasTheDocuments(operator, list)
          await hasTheAgent(operator, list)
          await hasTheWorkflow(operator, list)
          const { data: found } = await operator.graphql('{ organizations(first: 100) { edges { node { id name } } } }')
          expect(found.organizations.edges).toContainEqual({ node: { id: list.other, name: 'other' } })
          await findsANewDocument(operator, list)
          await balancedWallet(operator)
          const verified = async () => {
            const { code, lines, errors } = await kis(service, list.key, 'verify', '--json')
            return { code, errors, findings: lines.map((line) => JSON.parse(line)).filter(({ kind }) => kind) }
          }
          let judged = await verified()
          expect(judged.findings.filter(({ kind }) => kind !== 'old_terms')).toEqual([])
          if (judged.findings.length > 0) {
            expect(await kis(service, list.key, 'reindex', '--json')).toMatchObject({ code: 0, errors: '' })
            judged = await verified()
          }
          expect(judged).toEqual({ code: 0, errors: '', findings: [] })
          expect(await command('export', archive, '--with-secret', '--check')).toMatchObject({ code: 0, errors: '' })
        })
        rmSync(data, { recursive: true })
        const imported = await command('import', archive)
        expect(imported).toMatchObject({ code: 0, errors: '' })
        const marks = readdirSync(data)
          .filter((file) => file.endsWith('.sqlite'))
          .map((file) => listIds(join(data, file)))
        expect(marks.length).toBeGreaterThan(0)
        expect(marks).toEqual(marks.map(() => [expect.any(String)]))
        expect(new Set(marks.flat()).size).toBe(1)

        // By the machine's own clock, which may be years later.
        await whileRunning({}, async (service) => {
          await acceptsBothKeys(service, list)
          if (imported.lines.at(-1)!.includes('kis verify --repair')) {
            await kis(service, list.key, 'verify', '--repair')
            await eventually(async () => (await kis(service, list.key, 'verify')).code === 0, 60_000)
          }
          expect(await kis(service, list.key, 'verify')).toMatchObject({ code: 0, errors: '' })
        })
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
    300_000,
  )
})

/** The service lives in the hour of the freezing: runs and threads are kept for 30 days only. */
const clockSettings = ({ wallet }: FrozenList) => clockWrongBy((wallet.created_at + 3_600) * 1_000 - Date.now())

const got = (caller: Caller, path: string) => fetchBody(caller, 'GET', path)
const posted = (caller: Caller, path: string, body: unknown) => fetchBody(caller, 'POST', path, body)

async function fetchBody(caller: Caller, method: string, path: string, body?: unknown): Promise<Json> {
  const response = await caller.rest(method, path, body)
  if (response.status >= 300) throw new Error(`${method} ${path} gave ${response.status}: ${JSON.stringify(response.body)}`)
  return response.body
}

async function acceptsBothKeys(service: Service, { key, partner, collection }: FrozenList): Promise<void> {
  for (const caller of [createCaller(service, key), createCaller(service, partner)]) {
    expect(await got(caller, `/v1/collections/${collection}`)).toMatchObject({ id: collection })
    const messages = [{ role: 'user' as const, content: 'Parking is free. Lunch is at noon.\n\nWhen is lunch?' }]
    // Each door asks billing for the key by itself.
    const { data, errors } = await caller.graphql('query ($id: ID!) { collection(id: $id) { code } }', { id: collection })
    expect([data, errors]).toEqual([{ collection: { code: 'frozen' } }, undefined])
    // Nothing is spent: the money is compared later.
    expect(await posted(caller, '/v1/chat/completions/quote', { model: 'extractive', messages })).toMatchObject({ is_covered: true })
  }
  expect((await createCaller(service, partner).rest('GET', '/v1/wallet')).status).toBe(403)
}

async function hasTheMoney(operator: Caller, { wallet, usage }: FrozenList): Promise<void> {
  expect(await got(operator, '/v1/wallet')).toEqual(wallet)
  const records: Json[] = []
  for (let after = ''; ; ) {
    const page = await got(operator, `/v1/usage?limit=10${after && `&after=${after}`}`)
    records.push(...page.data)
    if (!page.has_more) break
    after = page.last_id
  }
  expect(new Set(records.map(({ id }) => id)).size).toBe(usage)
  expect(records.length).toBe(usage)
  const { data } = await operator.graphql('{ usage(first: 100) { edges { node { id } } } }')
  expect(data.usage.edges.map(({ node }: Json) => node.id)).toEqual(records.map(({ id }) => id))
  await balancedWallet(operator)
}

async function hasTheDocuments(operator: Caller, { collection, documents, top }: FrozenList): Promise<void> {
  for (const [i, id] of documents.entries()) {
    const document = await got(operator, `/v1/collections/${collection}/documents/${id}`)
    expect(document).toMatchObject({ id, status: 'ready', file_name: FILES[i]!.name })
    expect(await got(operator, `/v1/files/${document.file_id}/content`)).toBe(FILES[i]!.text)
  }
  for (const mode of ['hybrid', 'vector', 'lexical']) {
    const { data } = await posted(operator, `/v1/collections/${collection}/search`, { query: SEARCH, mode })
    expect([mode, data[0]?.text]).toEqual([mode, top])
  }
}

async function hasTheAgent(operator: Caller, { agent, run, output }: FrozenList): Promise<void> {
  expect(await got(operator, `/v1/agents/${agent}`)).toMatchObject({ id: agent, model: 'extractive' })
  const old = await got(operator, `/v1/runs/${run}`)
  expect(old).toMatchObject({ status: 'completed', output_text: output, thread_id: expect.stringMatching(/^thr_/) })
  const { data } = await operator.graphql('query ($id: ID!) { agentRun(id: $id) { id outputText threadId } }', { id: run })
  expect(data.agentRun).toEqual({ id: run, outputText: output, threadId: old.thread_id })
  const next = await posted(operator, `/v1/agents/${agent}/runs`, { input: AGENT_QUESTION, thread_id: old.thread_id })
  // The same quote, of the document and not of the earlier response. A thread numbers its citations onwards.
  const [quote] = output.split(' — ')
  expect(next).toMatchObject({ status: 'completed', thread_id: old.thread_id, output_text: `${quote} [#2]` })
  // What was said before stands before the question.
  const inputTokens = (of: Json) => of.steps.find(({ kind }: Json) => kind === 'model').usage.input_tokens
  expect(inputTokens(next)).toBeGreaterThan(inputTokens(old))
}

async function hasTheWorkflow(operator: Caller, { workflow, wrun }: FrozenList): Promise<void> {
  expect(await got(operator, `/v1/workflows/${workflow}`)).toMatchObject({ id: workflow, version: 1 })
  const old = await got(operator, `/v1/workflow-runs/${wrun}`)
  expect(old).toMatchObject({ status: 'completed', inputs: WORKFLOW_INPUTS, output: WORKFLOW_OUTPUT })
  const { data } = await operator.graphql('query ($id: ID!) { workflowRun(id: $id) { id output } }', { id: wrun })
  expect(data.workflowRun).toEqual({ id: wrun, output: WORKFLOW_OUTPUT })
  const next = await posted(operator, `/v1/workflows/${workflow}/runs`, { inputs: WORKFLOW_INPUTS, wait: true })
  expect(next).toMatchObject({ status: 'completed', output: WORKFLOW_OUTPUT })
}

async function findsANewDocument(operator: Caller, { collection }: FrozenList): Promise<void> {
  const document = await addDocument(operator, collection, 'harbour.md', '# Harbour\nThe harbour of Sur was built in 1931.')
  expect(document).toMatchObject({ status: 'ready' })
  const { data } = await posted(operator, `/v1/collections/${collection}/search`, { query: 'When was the harbour of Sur built?' })
  expect(data[0]).toMatchObject({ document_id: document.id })
}

/** Of the installation that a file is marked with. */
function listIds(file: string): unknown[] {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return database
      .prepare('SELECT id FROM installation')
      .all()
      .map(({ id }) => id)
  } finally {
    database.close()
  }
}
