import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { acceptedSecrets, deriveKeys, fingerprintsOf, listKeys, type Secrets } from '../../../common/identity/accepted-secrets.ts'
import { SealedTexts } from '../../../common/identity/sealed-text.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { silentLog } from '../../../common/process/log.ts'
import { SecretRotation } from '../../../common/rotation/secret-rotation.ts'
import { readDefinition } from '../../domain/agents/definition.ts'
import { asking, CATALOG, parts, somebody } from '../../test-support/parts.ts'
import { secretDependents } from './agent-secrets.ts'
import { createAgent, findVersion, updateAgent } from './agents.ts'
import { headersPlace } from './mcp-tools.ts'

const secret = (name: string) => createHash('sha256').update(name).digest()
const [a, b] = [secret('a'), secret('b')] as const
const OWNER = { ...somebody, scopes: ['agents', 'inference'] } as const
const HEADERS = { authorization: 'Bearer of a secret' }
const URL = 'https://crm.test/mcp'

/** Processes over one store. `mark`: the secret in its mark. */
function world() {
  const { deps, billing } = parts({ catalog: CATALOG })
  billing.principal = OWNER
  let mark = ''
  const start = (secrets: Secrets) => {
    const keys = deriveKeys(secrets, 'secrets of callers')
    const fingerprints = fingerprintsOf(keys)
    mark ||= fingerprints.current
    const own = { ...deps, secrets: new SealedTexts(...listKeys(keys)), fingerprints }
    const secretMark = {
      store: 'inference.sqlite',
      fingerprint: mark,
      async move() {
        mark = fingerprints.current
      },
    }
    const dependents = secretDependents(own)
    const rotation = new SecretRotation({ dependents, fingerprints, mark: secretMark, clock: systemClock, log: silentLog })
    return { ...own, rotation, step: () => rotation.step(AbortSignal.timeout(10_000)) }
  }
  const initial = start(acceptedSecrets(a, { next: null, previous: null }))
  return { start, initial, mark: () => mark }
}

const NEXT = acceptedSecrets(a, { next: b, previous: null })
const PREVIOUS = acceptedSecrets(b, { next: null, previous: a })
const ALONE = acceptedSecrets(b, { next: null, previous: null })
const server = { name: 'crm', url: URL, headers: HEADERS }
const input = { name: 'Guide', model: 'chat', mcpServers: [server] }

it('headers of MCP servers open in every process of the same time, and are sealed anew in agents and in their versions', async () => {
  const { start, initial, mark } = world()
  const agent = await createAgent(initial, asking(OWNER), { ...input, code: 'sealed' })
  await updateAgent(initial, asking(OWNER), { id: agent._id, name: 'Other' })
  const plain = await createAgent(initial, asking(OWNER), { ...input, code: 'plain', mcpServers: [{ name: 'crm', url: URL }] })
  // As version 0.2.0 has written them.
  const { agents, agentVersions } = initial.collections
  await agents.findOneAndUpdate({ _id: agent._id }, { $unset: { secretFingerprint: '' } })
  for (const version of [1, 2])
    await agentVersions.findOneAndUpdate({ _id: `${agent._id}_${version}` }, { $unset: { secretFingerprint: '' } })

  const [p1, p2, alone] = [start(NEXT), start(PREVIOUS), start(ALONE)]
  const read = async (by: typeof p1, version: number | null) => {
    const definition =
      version === null
        ? readDefinition((await agents.findOne({ _id: agent._id }))!.definition)
        : (await findVersion(by, agent.organizationId, agent._id, version))!
    return JSON.parse(by.secrets.open(definition.mcpServers[0]!.sealedHeaders!, headersPlace(agent.organizationId, URL)))
  }
  for (const by of [initial, p1, p2]) for (const version of [null, 1, 2]) expect(await read(by, version)).toEqual(HEADERS)
  const before = (await agents.findOne({ _id: plain._id }))!
  await p2.step()
  expect(await p2.rotation.progress()).toEqual({
    state: 'moved',
    parts: [
      { kind: 'agents', current: 1, left: 0 },
      { kind: 'agent_versions', current: 2, left: 0 },
    ],
  })
  for (const by of [p1, p2, alone]) for (const version of [null, 1, 2]) expect(await read(by, version)).toEqual(HEADERS)
  expect(mark()).toBe(p2.fingerprints.current)
  expect(await agents.findOne({ _id: plain._id })).toEqual(before)

  // A process of the step before seals with its own secret what it changes, and it is moved again.
  await updateAgent(p1, asking(OWNER), { id: agent._id, name: 'Third' })
  await expect(alone.rotation.requireAccepted()).rejects.toThrow('KIS_SECRET_PREVIOUS')
  await p2.step()
  await alone.rotation.requireAccepted()
  for (const by of [p2, alone]) for (const version of [null, 3]) expect(await read(by, version)).toEqual(HEADERS)
})

it('a change of an agent seals what it keeps anew; headers that nothing opens stay as they are and keep nothing up', async () => {
  const { start, initial } = world()
  const agent = await createAgent(initial, asking(OWNER), { ...input, code: 'changed' })
  const lost = await createAgent({ ...initial, secrets: new SealedTexts(new Uint8Array(32).fill(3)) }, asking(OWNER), {
    ...input,
    code: 'lost',
  })
  const p2 = start(PREVIOUS)
  const updated = await updateAgent(p2, asking(OWNER), { id: agent._id, name: 'Other' })
  expect(updated.secretFingerprint).toBe(p2.fingerprints.current)
  const { sealedHeaders } = readDefinition(updated.definition).mcpServers[0]!
  expect(JSON.parse(start(ALONE).secrets.open(sealedHeaders!, headersPlace(agent.organizationId, URL)))).toEqual(HEADERS)
  await p2.step()
  expect((await p2.rotation.progress()).state).toBe('moved')
  expect((await p2.collections.agents.findOne({ _id: lost._id }))!.definition).toBe(lost.definition)
  const bare = await updateAgent(p2, asking(OWNER), { id: agent._id, mcpServers: [] })
  expect(bare.secretFingerprint).toBeUndefined()
})
