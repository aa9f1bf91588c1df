import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { balancedWallet, createCaller, type Json, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, ServiceProcess, startEmbedded } from '../../support/processes/service.ts'

/** A start on a busy machine, and what runs do then. */
const SOON_MS = 120_000

describe('Poison run', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-poison-'))
  const file = join(folder, 'trimmed')
  const env = { NODE_OPTIONS: `--import=${new URL('../../support/processes/poison.mjs', import.meta.url)}`, KIS_TEST_POISON_FILE: file }
  const times = () => readFileSync(file, 'utf8').split('\n').length - 1
  let mock: MockEngine
  let service: Service
  beforeAll(async () => {
    writeFileSync(file, '')
    mock = await startMockEngine()
    service = await startEmbedded({ folder, env, catalog: mockCatalog(mock.url) })
  }, SOON_MS)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  it('is not restarted after its second crash, and runs beside it complete', { timeout: 3 * SOON_MS }, async () => {
    const { key } = await newOrganization(createCaller(service, service.key), service)
    const caller = () => createCaller(service, key)
    const createWorkflow = async (node: Json): Promise<string> => {
      const definition = { nodes: [node], output: null }
      return (await caller().rest('POST', '/v1/workflows', { code: node.id, name: 'W', definition })).body.id
    }
    const startRun = async (workflowId: string, inputs: Json) =>
      (await caller().rest('POST', `/v1/workflows/${workflowId}/runs`, { inputs })).body
    const getRun = async (id: string): Promise<Json> => (await caller().rest('GET', `/v1/workflow-runs/${id}`)).body

    const beside: string[] = []
    for (const id of ['a', 'b', 'c'])
      beside.push(
        (await startRun(await createWorkflow({ id, type: 'chat', model: 'mock-chat', messages: [{ role: 'user', content: 'gate' }] }), {}))
          .id,
      )
    await eventually(() => mock.chats === beside.length, SOON_MS)
    const workflowId = await createWorkflow({ id: 'p', type: 'template', template: '{{ inputs.x | trim }}' })
    const unanswered = startRun(workflowId, { x: 'poison' }).catch(() => null)
    await eventually(() => times() === 1, SOON_MS)
    await service.processes.get('all')!.end('SIGKILL')
    await unanswered

    const second = ServiceProcess.launch([], { ...env, KIS_DATA_DIR: join(folder, 'data'), KIS_CATALOG: join(folder, 'catalog.yaml') })
    await eventually(() => times() === 2, SOON_MS)
    await second.end('SIGKILL')

    service = await startEmbedded({ folder, env, catalog: mockCatalog(mock.url) })
    const [poison] = (await caller().rest('GET', `/v1/workflows/${workflowId}/runs`)).body.data
    await eventually(async () => (await getRun(poison.id)).status !== 'running', SOON_MS)
    const message = expect.stringMatching(/^The run ended its process twice/)
    expect(await getRun(poison.id)).toMatchObject({ status: 'failed', cost_usd: '0', error: { code: 'run_limit_exceeded', message } })
    mock.openGate()
    for (const id of beside) {
      await eventually(async () => (await getRun(id)).status !== 'running', SOON_MS)
      expect(await getRun(id)).toMatchObject({ status: 'completed', error: null })
    }
    expect(times()).toBe(2)
    expect(await balancedWallet(caller())).toMatchObject({ held_usd: '0' })
  })
})
