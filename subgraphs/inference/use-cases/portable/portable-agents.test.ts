import { expect, it } from 'vitest'
import { SealedTexts } from '../../../common/identity/sealed-text.ts'
import { readDefinition } from '../../domain/agents/definition.ts'
import { CATALOG, createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { createAgent } from '../agents/agents.ts'
import { headersSealName } from '../agents/mcp-tools.ts'
import type { RunRecord } from '../tables.ts'
import { exportAgents } from './export-agents.ts'
import { agentTakers } from './import-agents.ts'
import { AGENT } from './kinds.ts'

const OWNER = { ...somebody, scopes: ['agents', 'inference'] } as const
const AT = new Date(0)
const RUN: RunRecord = {
  ...{ _id: `run_${'1'.repeat(32)}`, organizationId: OWNER.organizationId, apiKeyId: `key_${'2'.repeat(32)}` },
  ...{ scopes: ['admin', 'operator'], status: 'completed', cost: '0', error: null, isCancelled: false, outbox: [] },
  ...{ holdId: 'h', holdAmount: '0', maxCost: '0', startedAt: AT, deadline: AT, endedAt: AT, expiresAt: AT },
  ...{ agentId: `agt_${'3'.repeat(32)}`, agentVersion: 1, threadId: null, input: '[]', outcome: null, steps: '[]' },
}

function owned() {
  const world = parts({ catalog: CATALOG })
  world.billing.principal = OWNER
  return world
}

it('an import accepts what an export wrote, including runs of the operator, and reseals headers', async () => {
  const there = owned().deps
  const here = owned().deps
  const mcpServers = [{ name: 'crm', url: 'https://crm.test/mcp', headers: { authorization: 'Bearer of a secret' } }]
  const agent = await createAgent(there, createRequestContext(OWNER), { name: 'Guide', model: 'chat', mcpServers, code: 'sealed' })
  await there.collections.runs.insertOne(RUN)

  const { organizationId } = OWNER
  const travelling = { secrets: new SealedTexts(Buffer.alloc(32, 1)), organizationId }
  const own = { secrets: new SealedTexts(Buffer.alloc(32, 3)), organizationId }
  const onModel = () => undefined
  const { records } = agentTakers({
    ...{ collections: here.collections, organizationId, onModel },
    sealing: { archive: travelling, own },
  })
  const sealing = { own: { secrets: there.secrets, organizationId }, archive: travelling }
  await exportAgents(
    { collections: there.collections, organizationId, sealing },
    {
      async record(kind, record) {
        const read = [kind.parse(JSON.parse(kind.toLine(record))) as never]
        await records.find((each) => each.kind === kind)!.write(read)
      },
      file: async () => undefined,
      skip: () => undefined,
    },
  )
  expect(await here.collections.runs.findOne({ _id: RUN._id })).toMatchObject({ scopes: ['admin'], status: 'completed' })
  const { agents, agentVersions } = here.collections
  for (const found of [await agents.findOne({ _id: agent._id }), await agentVersions.findOne({ _id: `${agent._id}_1` })]) {
    const { sealedHeaders, url } = readDefinition(found!.definition).mcpServers[0]!
    expect(JSON.parse(own.secrets.open(sealedHeaders!, headersSealName(organizationId, url)))).toEqual(mcpServers[0]!.headers)
  }
})

it('an export leaves out headers that cannot be opened, and says so', async () => {
  const { deps } = owned()
  const mcpServers = [{ name: 'crm', url: 'https://crm.test/mcp', headers: { authorization: 'Bearer of a secret' } }]
  await createAgent(deps, createRequestContext(OWNER), { name: 'Guide', model: 'chat', mcpServers, code: 'sealed' })
  const { organizationId } = OWNER
  const lost = { secrets: new SealedTexts(Buffer.alloc(32, 2)), organizationId }
  const archive = { secrets: new SealedTexts(Buffer.alloc(32, 1)), organizationId }
  const [written, left]: [string[], string[]] = [[], []]
  await exportAgents(
    { collections: deps.collections, organizationId, sealing: { own: lost, archive } },
    {
      record: async (kind, record) => void written.push(kind.toLine(record)),
      file: async () => undefined,
      skip: (what) => void left.push(what),
    },
  )
  expect(written).toHaveLength(2)
  for (const line of written)
    expect(JSON.parse(JSON.parse(line).definition).mcpServers).toMatchObject([{ name: 'crm', sealedHeaders: null }])
  expect(left).toEqual(['headers of MCP servers', 'headers of MCP servers'])
})

it('an agent of an archive has a schema of at most the depth that the API allows', () => {
  const agent = (depth: number) => {
    const responseSchema = JSON.parse(`${'{"not":'.repeat(depth)}{}${'}'.repeat(depth)}`)
    const definition = {
      name: 'a',
      instructions: '',
      modelId: 'm',
      collectionIds: [],
      sampling: {},
      responseSchema,
      maxSteps: 1,
      maxCost: '1',
    }
    const at = AT.toISOString()
    return { _id: `agt_${'6'.repeat(32)}`, code: 'a', definition: JSON.stringify(definition), version: 1, createdAt: at, updatedAt: at }
  }
  expect(AGENT.parse(agent(60))).toMatchObject({ code: 'a' })
  expect(() => AGENT.parse(agent(1_000))).toThrow(/definition/)
})
