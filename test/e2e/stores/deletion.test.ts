import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { words } from '../../../subgraphs/knowledge/domain/text/text-analysis.ts'
import { addDocument, type Caller, createCaller, type Json, newCollection } from '../../support/client.ts'
import { rawCopies } from '../../support/data/raw-files.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

/** As `docs/operate/deletion.md` says. */
const GONE_WITHIN_MS = 60_000
/** A worker may take a deletion from the call that began it, and ends it later. */
const SOON = { timeout: 30_000 }

const TEXT = 'Zorblaxianism'
const ARABIC_TEXT = 'زخرفنجالية'
const HEADING = 'Quixomatery'
const FILE_NAME = 'Vuntrilogue'
const METADATA = 'Wexaphonium'
const COLLECTION = 'Yarbotechny'
const INSTRUCTIONS = 'Frobnivoria'
const ARABIC_INSTRUCTIONS = 'غطمشيولوجيا'
const FORMER_INSTRUCTIONS = 'Glimmerophyte'
const WORKFLOW = 'Hexatromion'
const OF_DOCUMENT = [TEXT, ARABIC_TEXT, HEADING, FILE_NAME, METADATA]
const OF_AGENT = [INSTRUCTIONS, ARABIC_INSTRUCTIONS, FORMER_INSTRUCTIONS]
/** As they are, and as the index keeps them. */
const ALL = [...OF_DOCUMENT, ...OF_AGENT, COLLECTION, WORKFLOW].flatMap((word) => [...new Set([word, word.toLowerCase(), ...words(word)])])

const DOCUMENT = `# ${HEADING} of the harbour

The members of ${TEXT} meet on Tuesdays. They have met there since 1931.

تجتمع ${ARABIC_TEXT} يوم الثلاثاء من كل أسبوع في الميناء القديم.
`

/**
 * The kinds of records that hold one of the texts, in files of documents; what is packed is unpacked. A process of its
 * own reads, as `rawCopies` does.
 */
function kindsWith(folder: string, texts: readonly string[]): readonly string[] {
  const script = `
    const { DatabaseSync } = require('node:sqlite'), { gunzipSync } = require('node:zlib')
    const [folder, ...texts] = process.argv.slice(1)
    const holds = (bytes) => texts.some((text) => bytes.includes(text) || bytes.includes(text, 0, 'utf16le'))
    const isPacked = (outcome) => typeof outcome === 'string' && outcome.startsWith('H4sI')
    const bytesOf = (doc) => {
      const { outcome } = JSON.parse(doc)
      return Buffer.concat([Buffer.from(doc), isPacked(outcome) ? gunzipSync(Buffer.from(outcome, 'base64')) : Buffer.alloc(0)])
    }
    const kinds = []
    for (const file of ['billing', 'inference', 'knowledge']) {
      const db = new DatabaseSync(folder + '/' + file + '.sqlite', { readOnly: true })
      for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE name GLOB 'documents_*' AND type = 'table'").all()) {
        const rows = db.prepare('SELECT doc FROM "' + name + '"').all()
        if (rows.some(({ doc }) => holds(bytesOf(doc)))) kinds.push(name.slice('documents_'.length))
      }
      db.close()
    }
    console.log(JSON.stringify(kinds.sort()))`
  return JSON.parse(execFileSync(process.execPath, ['-e', script, folder, ...texts], { encoding: 'utf8' }))
}

describe('Hard delete from the bytes of all files', () => {
  let folder: string
  let data: string
  let service: Service
  let owner: Caller
  const start = async () => {
    service = await startEmbedded({ folder })
    owner = createCaller(service, owner?.key ?? service.key)
  }
  const rest = async (method: string, path: string, body?: unknown): Promise<Json> => {
    const response = await owner.rest(method, path, body)
    if (response.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(response.body)}`)
    return response.body
  }
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'kis-deletion-'))
    data = join(folder, 'data')
    await start()
  }, 90_000)
  afterAll(async () => {
    await service?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('removes documents, files, collections, agents, workflows, runs and threads: while running, stopped, and restarted', async () => {
    const collection = await newCollection(owner)
    const remaining = await newCollection(owner)
    await rest('PATCH', `/v1/collections/${collection.id}`, { collection_name: COLLECTION })
    const documents = [
      await addDocument(owner, collection.id, `${FILE_NAME}.md`, DOCUMENT, { topic: METADATA }),
      await addDocument(owner, remaining.id, `${FILE_NAME}-2.md`, `${DOCUMENT}\nOnce more.`, { topic: METADATA }),
    ]
    await addDocument(owner, remaining.id, 'stays.md', '# Harbour\n\nThe harbour of Sur was built in 1931.')
    expect(documents).toMatchObject([{ status: 'ready' }, { status: 'ready' }])

    const fields = { code: 'guide', name: 'Guide', model: 'extractive', collection_ids: [collection.id] }
    const agent = await rest('POST', '/v1/agents', { ...fields, instructions: `Speak of ${FORMER_INSTRUCTIONS}.` })
    await rest('PATCH', `/v1/agents/${agent.id}`, { instructions: `Speak of ${INSTRUCTIONS} و ${ARABIC_INSTRUCTIONS}.` })
    const question = `When do the members of ${TEXT} meet?`
    const run = await rest('POST', `/v1/agents/${agent.id}/runs`, { input: question, keep_thread: true })
    expect(run.output_text).toContain(TEXT)
    const nodes = [
      { id: 'find', type: 'search', collection_id: collection.id, query: question },
      { id: 'ask', type: 'agent', agent_id: agent.id, input: question },
      { id: 'say', type: 'template', template: `${WORKFLOW}: {{ nodes.ask.text }}` },
    ]
    const workflow = await rest('POST', '/v1/workflows', {
      code: 'flow',
      name: WORKFLOW,
      definition: { nodes, output: { $ref: 'nodes.say' } },
    })
    const flow = await rest('POST', `/v1/workflows/${workflow.id}/runs`, { wait: true })
    expect(flow.status).toBe('completed')
    const chat = { model: 'extractive', messages: [{ role: 'user', content: `${DOCUMENT}\n${question}` }] }
    await owner.openai.chat.completions.create(chat as never, { headers: { 'idempotency-key': 'once' } })

    await rest('DELETE', `/v1/collections/${collection.id}?detach=true`)
    await rest('DELETE', `/v1/collections/${remaining.id}/documents/${documents[1].id}`)
    for (const { file_id } of documents)
      await expect.poll(async () => (await owner.rest('DELETE', `/v1/files/${file_id}`)).status, SOON).toBe(200)
    await rest('DELETE', `/v1/agents/${agent.id}`)
    await rest('DELETE', `/v1/workflows/${workflow.id}`)
    // What quotes them is its owner's to delete, or has a time of its own.
    await expect.poll(() => kindsWith(data, ALL), SOON).toEqual(['keyed_calls', 'run_events', 'runs', 'threads', 'workflow_runs'])
    expect(kindsWith(data, OF_AGENT)).toEqual([])

    await rest('DELETE', `/v1/runs/${run.id}`)
    await rest('DELETE', `/v1/threads/${run.thread_id}`)
    await eventually(async () => (await owner.rest('DELETE', `/v1/workflow-runs/${flow.id}`)).status === 200)
    for (const path of [`/v1/runs/${run.id}`, `/v1/workflow-runs/${flow.id}`]) expect((await owner.rest('GET', path)).status).toBe(404)
    expect(kindsWith(data, ALL)).toEqual(['keyed_calls'])

    let found = {}
    for (const end = Date.now() + GONE_WITHIN_MS; Date.now() < end; await sleep(500)) {
      found = rawCopies(data, ALL)
      if (Object.keys(found).length === 0) break
    }
    expect(found).toEqual({})

    await service.close()
    expect(rawCopies(data, ALL)).toEqual({})
    expect(readdirSync(data).filter((name) => /-(wal|shm)$/.test(name))).toEqual([])

    await start()
    expect(rawCopies(data, ALL)).toEqual({})
    const { data: hits } = await rest('POST', `/v1/collections/${remaining.id}/search`, { query: 'When was the harbour built?' })
    expect(hits[0].text ?? JSON.stringify(hits[0])).toContain('1931')
  }, 360_000)
})
