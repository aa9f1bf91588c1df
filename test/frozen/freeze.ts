import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { addDocument, createCaller, type Json, newCollection, newOrganization } from '../support/client.ts'
import { type Service, startEmbedded } from '../support/processes/service.ts'
import { AGENT_QUESTION, FILES, type FrozenList, SEARCH, WORKFLOW_INPUTS } from './contents.ts'

const CHATS = 30
const PACKAGE = new URL('../../package.json', import.meta.url)

/** Writes the data folder of a service that was filled and stopped, and the list of what is in it. */
async function freeze(version: string): Promise<void> {
  const archive = fileURLToPath(new URL(`data-${version}.tar.gz`, import.meta.url))
  const list = fileURLToPath(new URL(`data-${version}.json`, import.meta.url))
  for (const file of [archive, list]) {
    if (existsSync(file)) throw new Error(`${file} is there, and a frozen folder never changes. Give package.json the next version first.`)
  }
  const folder = mkdtempSync(join(tmpdir(), 'kis-freeze-'))
  try {
    const service = await startEmbedded({ folder })
    let contents: FrozenList
    try {
      contents = await fill(service)
    } finally {
      await service.close()
    }
    execFileSync('tar', ['-czf', archive, '-C', join(folder, 'data'), '.'])
    writeFileSync(list, `${JSON.stringify(contents, null, 1)}\n`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Through the public API. */
async function fill(service: Service): Promise<FrozenList> {
  const operator = createCaller(service, service.key)
  const post = async (path: string, body: unknown): Promise<Json> => {
    const response = await operator.rest('POST', path, body)
    if (response.status >= 300) throw new Error(`POST ${path} gave ${response.status}: ${JSON.stringify(response.body)}`)
    return response.body
  }
  const collection = await newCollection(operator, 'e5-small-ar-en', 'frozen')
  const documents: string[] = []
  for (const { name, text } of FILES) documents.push((await addDocument(operator, collection.id, name, text)).id)
  const partner = await post('/v1/keys', {
    ...{ name: 'partner', scopes: ['inference', 'agents', 'knowledge:read'], model_allowlist: ['extractive', 'e5-small-ar-en'] },
  })
  const agent = await post('/v1/agents', { code: 'rules', name: 'Rules', model: 'extractive', collection_ids: [collection.id] })
  const run = await post(`/v1/agents/${agent.id}/runs`, { input: AGENT_QUESTION, keep_thread: true })
  const chatNode = {
    ...{ id: 'ask', type: 'chat', model: 'extractive' },
    messages: [{ role: 'user', content: 'Parking is free. Lunch is at noon.\n\n{{ inputs.q }}' }],
  }
  const workflow = await post('/v1/workflows', {
    ...{ code: 'w', name: 'W' },
    definition: { inputs: { type: 'object' }, nodes: [chatNode], output: { answer: { $ref: 'nodes.ask.text' } } },
  })
  const workflowRun = await post(`/v1/workflows/${workflow.id}/runs`, { inputs: WORKFLOW_INPUTS, wait: true })
  for (let i = 0; i < CHATS; i++) {
    const content = `Room ${i} is on floor ${i % 5}. Lunch is at noon.\n\nWhere is room ${i}?`
    await post('/v1/chat/completions', { model: 'extractive', messages: [{ role: 'user', content }] })
  }
  const other = await newOrganization(operator, service, { name: 'other', creditUsd: '0' })
  const hits = await post(`/v1/collections/${collection.id}/search`, { query: SEARCH })
  return {
    ...{ key: operator.key, partner: partner.key, collection: collection.id, documents, agent: agent.id },
    ...{ run: run.id, output: run.output_text, workflow: workflow.id, wrun: workflowRun.id, other: other.organizationId },
    wallet: (await operator.rest('GET', '/v1/wallet')).body,
    usage: (await operator.rest('GET', '/v1/usage?limit=100')).body.data.length,
    top: hits.data[0].text,
  }
}

await freeze(JSON.parse(readFileSync(PACKAGE, 'utf8')).version)
