import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { type Caller, createCaller, type Json, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

/** How soon the service must say that it lives, whatever its callers do. */
const HEALTH_MS = 500
const ENDED_MS = 60_000

const FENCE = '```'
const WAYS = {
  $ref: '#/$defs/level',
  $defs: {
    level: {
      anyOf: ['a', 'b'].map(() => ({ type: 'object', properties: { a: { $ref: '#/$defs/level' } }, required: ['a'] })),
    },
  },
}
const text = (template: string, response_schema: Json) => ({ id: 'n', type: 'template', template, response_schema })
const createNode = (inputs: Json) => ({ id: 'n', type: 'template', template: '{{ inputs.x | length }}', inputs })

/** What a caller writes, with the inputs that make it dear, and how it must end. */
const ATTACKS: readonly [string, Json, unknown, { readonly status: number; readonly code: string }][] = [
  [
    'a code fence of 60,000 line breaks',
    text(`${FENCE}{{ inputs.x }}`, {}),
    '\n'.repeat(60_000),
    { status: 200, code: 'output_schema_failed' },
  ],
  [
    'a pattern with exponential backtracking',
    text('{{ inputs.x | json }}', { pattern: '^(a+)+$' }),
    `${'a'.repeat(30_000)}!`,
    { status: 200, code: 'output_schema_failed' },
  ],
  [
    'two-way references, 40 deep',
    text('{{ inputs.x }}', WAYS),
    `${'{"a":'.repeat(40)}0${'}'.repeat(40)}`,
    { status: 200, code: 'output_schema_failed' },
  ],
  [
    '20,000 unique items',
    text('{{ inputs.x }}', { uniqueItems: true }),
    JSON.stringify(Array.from({ length: 20_000 }, (_, i) => [i])),
    { status: 200, code: 'output_schema_failed' },
  ],
  [
    'workflow inputs with unique items',
    createNode({ properties: { x: { uniqueItems: true } } }),
    Array.from({ length: 20_000 }, (_, i) => [i]),
    { status: 400, code: 'invalid_request' },
  ],
]

describe('Hostile schemas', () => {
  let mock: MockEngine
  let service: Service
  let attacker: Caller
  beforeAll(async () => {
    mock = await startMockEngine()
    service = await startEmbedded({ catalog: mockCatalog(mock.url) })
    const owner = await newOrganization(createCaller(service, service.key), service)
    const { body } = await owner.rest('POST', '/v1/keys', { name: 'agents alone', scopes: ['agents'] })
    attacker = createCaller(service, body.key)
  }, 60_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
  })

  /** The longest answer of `/healthz` while the work is done, in milliseconds. */
  async function longestHealth(work: Promise<unknown>): Promise<number> {
    let [isDone, longest] = [false, 0]
    const done = work.finally(() => {
      isDone = true
    })
    while (!isDone) {
      const begun = performance.now()
      expect((await fetch(`${service.rest}/healthz`, { signal: AbortSignal.timeout(20_000) })).status).toBe(200)
      longest = Math.max(longest, performance.now() - begun)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    await done
    return longest
  }

  it.each(ATTACKS)('of workflows by %s delay nobody, and get a clear error', async (_what, { inputs, ...node }, x, ends) => {
    const definition = { nodes: [node], output: null, ...(inputs && { inputs }) }
    const attack = async () => {
      const { body: workflow } = await attacker.rest('POST', '/v1/workflows', { code: `w${Math.random()}`, name: 'W', definition })
      const { status, body } = await attacker.rest('POST', `/v1/workflows/${workflow.id}/runs`, { inputs: { x } })
      if (body.error) return { status, code: body.error.code }
      const run = async () => (await attacker.rest('GET', `/v1/workflow-runs/${body.id}`)).body
      await eventually(async () => (await run()).status !== 'running', ENDED_MS)
      const ended = await run()
      expect(ended.nodes[0].state).toBe('failed')
      return { status, code: ended.error?.code }
    }
    const outcome = attack()
    expect(await longestHealth(outcome)).toBeLessThan(HEALTH_MS)
    expect(await outcome).toEqual(ends)
  })
})
