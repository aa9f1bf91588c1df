import { expect, it } from 'vitest'
import { SealedTexts } from '../../../common/identity/sealed-text.ts'
import { readDefinition } from '../../domain/agents/definition.ts'
import { CATALOG, createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { resealAgents } from './agent-secrets.ts'
import { createAgent, updateAgent } from './agents.ts'
import { headersSealName } from './mcp-tools.ts'

const OWNER = { ...somebody, scopes: ['agents', 'inference'] } as const
const HEADERS = { authorization: 'Bearer of a secret' }
const URL = 'https://crm.test/mcp'
const input = { name: 'Guide', model: 'chat', mcpServers: [{ name: 'crm', url: URL, headers: HEADERS }] }

it('reseals the headers of agents and their versions, repeatedly without change; those that no key opens remain', async () => {
  const { deps, billing } = parts({ catalog: CATALOG })
  billing.principal = OWNER
  const { agents, agentVersions } = deps.collections
  const [before, after, lost] = [1, 2, 3].map((fill) => new SealedTexts(new Uint8Array(32).fill(fill))) as [
    SealedTexts,
    SealedTexts,
    SealedTexts,
  ]
  const agent = await createAgent({ ...deps, secrets: before }, createRequestContext(OWNER), { ...input, code: 'sealed' })
  await updateAgent({ ...deps, secrets: before }, createRequestContext(OWNER), { id: agent._id, name: 'Other' })
  const plain = await createAgent(deps, createRequestContext(OWNER), { ...input, code: 'plain', mcpServers: [{ name: 'crm', url: URL }] })
  const unopened = await createAgent({ ...deps, secrets: lost }, createRequestContext(OWNER), { ...input, code: 'lost' })
  // Version 0.2 labeled records with the fingerprint of their secret.
  await agents.findOneAndUpdate({ _id: agent._id }, { $set: { secretFingerprint: 'f1' } })

  for (let repeat = 0; repeat < 2; repeat++) {
    // The agent and its version.
    expect(await resealAgents(deps.collections, before, after)).toBe(2)
    const found = [
      await agents.findOne({ _id: agent._id }),
      await agentVersions.findOne({ _id: `${agent._id}_1` }),
      await agentVersions.findOne({ _id: `${agent._id}_2` }),
    ]
    for (const record of found) {
      const { sealedHeaders } = readDefinition(record!.definition).mcpServers[0]!
      expect(JSON.parse(after.open(sealedHeaders!, headersSealName(agent.organizationId, URL)))).toEqual(HEADERS)
      expect(record).not.toHaveProperty('secretFingerprint')
    }
    for (const { _id, definition } of [plain, unopened]) expect(await agents.findOne({ _id })).toMatchObject({ definition })
  }
})
