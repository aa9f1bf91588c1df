import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ARABIC_FILE, agentCatalog, says, script, searches } from '../../support/agents.ts'
import { addDocument, balancedWallet, createCaller, type Json, nano, newCollection, newOrganization } from '../../support/client.ts'
import { VendorCloud } from '../../support/engines/vendor-cloud.ts'
import { beginning, OPENAI_WIRE } from '../../support/engines/vendor-wires.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

/** A start on a busy machine, and what the run still has to do. */
const ENDED_MS = 60_000
/** Says two words, then nothing. */
const hanging = beginning(OPENAI_WIRE, { text: ['Two ', 'words', ' more'] }, 3, () => undefined)

describe('Agent run of a killed service', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-agent-kills-'))
  let cloud: VendorCloud
  let service: Service
  let operatorKey: string
  let key: string
  let agent: Json
  const start = async () => {
    service = await startEmbedded({ folder, catalog: agentCatalog(cloud) })
    operatorKey ??= service.key
  }
  const caller = () => createCaller(service, key)
  const kill = () => service.processes.get('all')!.end('SIGKILL')
  const listRuns = async (): Promise<Json[]> => (await caller().rest('GET', `/v1/agents/${agent.id}/runs?limit=100`)).body.data
  const getRun = async (id: string): Promise<Json> => (await caller().rest('GET', `/v1/runs/${id}`)).body
  const events = async (id: string): Promise<Json[]> => {
    const response = await fetch(`${service.rest}/v1/runs/${id}/events`, { headers: { authorization: `Bearer ${key}` } })
    const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: '))
    return lines.map((line) => JSON.parse(line.slice('data: '.length)))
  }
  const ended = async (id: string): Promise<Json> => {
    await eventually(async () => (await getRun(id)).status !== 'running', ENDED_MS)
    return getRun(id)
  }
  const charged = async (id: string): Promise<bigint> => {
    const { data } = (await caller().rest('GET', '/v1/usage?limit=100')).body
    return data.filter((line: Json) => line.request_id === id).reduce((sum: bigint, line: Json) => sum + nano(line.amount_usd), 0n)
  }

  beforeAll(async () => {
    cloud = await VendorCloud.start()
    await start()
    ;({ key } = await newOrganization(createCaller(service, operatorKey), service))
    const collection = await newCollection(caller())
    await addDocument(caller(), collection.id, 'دليل.md', ARABIC_FILE)
    const body = { code: 'guide', name: 'Guide', model: 'scripted', collection_ids: [collection.id] }
    agent = (await caller().rest('POST', '/v1/agents', body)).body
  }, 90_000)
  afterAll(async () => {
    await service?.close()
    await cloud?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  it('resumes in the next process with its earlier replies, and pays for each once', { timeout: 180_000 }, async () => {
    script(cloud, searches('leave'), hanging)
    caller()
      .rest('POST', `/v1/agents/${agent.id}/runs`, { input: 'How long?' })
      .catch(() => undefined)
    await eventually(async () => (await listRuns()).length === 1)
    const [{ id }] = (await listRuns()) as [Json]
    await eventually(async () => (await getRun(id)).status === 'running' && cloud.received.length === 2, ENDED_MS)
    await kill()

    // Killed again while the model is asked anew.
    script(cloud, hanging)
    await start()
    await eventually(() => cloud.received.length === 3, ENDED_MS)
    await kill()

    script(cloud, says('Thirty days.'))
    await start()
    const run = await ended(id)
    expect(run).toMatchObject({ status: 'completed', output_text: 'Thirty days.', error: null })
    expect(run.steps.map(({ kind }: Json) => kind)).toEqual(['model', 'search', 'model'])
    expect(cloud.received).toHaveLength(4)
    expect(nano(run.cost_usd)).toBe(await charged(id))
    const published = await events(id)
    expect(published.map(({ cursor }) => cursor)).toEqual(published.map((_, i) => String(i + 1)))
    const types = published.map(({ type }) => type)
    expect(types.filter((type) => !['step_started', 'text_delta'].includes(type))).toEqual([
      ...['run_started', 'usage', 'tool_call', 'search', 'usage', 'usage', 'done'],
    ])
    const last = published.slice(types.lastIndexOf('step_started'))
    expect(last.map(({ delta }) => delta ?? '').join('')).toBe('Thirty days.')
    await eventually(async () => (await caller().rest('GET', '/v1/wallet')).body.held_usd === '0', ENDED_MS)
    await balancedWallet(caller())
  })

  it('returns its response for a repeated idempotency key over the chat protocol, charged once', { timeout: 120_000 }, async () => {
    script(cloud, hanging)
    const headers = { 'idempotency-key': 'the-one-answer' }
    const startRun = () =>
      caller().openai.chat.completions.create(
        { model: 'agent/guide', messages: [{ role: 'user', content: 'And how many?' }] },
        { headers, maxRetries: 0, timeout: ENDED_MS },
      )
    const before = cloud.received.length
    startRun().catch(() => undefined)
    await eventually(() => cloud.received.length === before + 1, ENDED_MS)
    await kill()
    script(cloud, says('Thirty.'))
    await start()
    const { id, choices } = await startRun()
    expect(choices[0]!.message.content).toBe('Thirty.')
    expect(nano((await ended(id)).cost_usd)).toBe(await charged(id))
    expect((await startRun()).id).toBe(id)
    await balancedWallet(caller())
  })
})
