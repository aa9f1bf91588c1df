import { afterAll, beforeAll, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { type Caller, createCaller, type Json, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { WebhookReceiver } from '../../support/engines/webhook-receiver.ts'
import { eventually } from '../../support/eventually.ts'
import { MemberIssuer } from '../../support/processes/member-issuer.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { furnish, type Possessions } from '../../support/tenant.ts'

let mock: MockEngine
let receiver: WebhookReceiver
let memberIssuer: MemberIssuer
let service: Service
let operator: Caller
let owner: Caller & { readonly organizationId: string }
let has: Possessions
beforeAll(async () => {
  mock = await startMockEngine()
  receiver = await WebhookReceiver.start()
  memberIssuer = await MemberIssuer.start()
  service = await startEmbedded({ catalog: testCatalog(mock.url), env: { KIS_EGRESS_ALLOW: receiver.host, ...memberIssuer.env } })
  operator = createCaller(service, service.key)
  owner = await newOrganization(operator, service)
  has = await furnish(owner, 'n', receiver, memberIssuer)
}, 120_000)
afterAll(async () => {
  await service?.close()
  await mock?.[Symbol.asyncDispose]()
  await receiver?.[Symbol.asyncDispose]()
  await memberIssuer?.[Symbol.asyncDispose]()
})

async function executeQuery(query: string, caller: Caller = owner): Promise<Json> {
  const { data, errors } = await caller.graphql(query)
  if (errors) throw new Error(JSON.stringify(errors))
  return data
}

async function codesOf(query: string, caller: Caller = owner): Promise<readonly string[]> {
  return ((await caller.graphql(query)).errors ?? []).map(({ extensions }) => extensions.code)
}

async function withScopes(...scopes: string[]): Promise<Caller> {
  return createCaller(service, (await owner.rest('POST', '/v1/keys', { name: 'narrow', scopes })).body.key)
}

it('counts and lists the documents of all collections by status, of the own organization only', async () => {
  const { organization, documents } = await executeQuery(`{
    organization { documentCounts { queued processing ready failed } }
    documents(status: READY) { totalCount edges { node { id status collection { id } } } }
  }`)
  expect(organization.documentCounts).toEqual({ queued: 0, processing: 0, ready: 2, failed: 0 })
  expect(documents.totalCount).toBe(2)
  expect(documents.edges.map(({ node }: Json) => node.id)).toContain(has.document)
  expect(await executeQuery('{ documents(status: FAILED) { totalCount edges { cursor } } }')).toEqual({
    documents: { totalCount: 0, edges: [] },
  })

  const other = await newOrganization(operator, service)
  expect(await executeQuery('{ organization { documentCounts { ready } } documents(status: READY) { totalCount } }', other)).toEqual({
    organization: { documentCounts: { ready: 0 } },
    documents: { totalCount: 0 },
  })
  const named = `{ organization(id: "${owner.organizationId}") { documentCounts { ready } } }`
  expect(await executeQuery(named, operator)).toEqual({ organization: { documentCounts: { ready: 2 } } })
  const narrow = await withScopes('inference')
  expect(await codesOf('{ organization { documentCounts { ready } } }', narrow)).toEqual(['PERMISSION_DENIED'])
  expect(await codesOf('{ documents(status: READY) { totalCount } }', narrow)).toEqual(['PERMISSION_DENIED'])
})

it('retains the versions of an agent, so that two can be compared', async () => {
  const { body: agent } = await owner.rest('POST', '/v1/agents', {
    code: 'versions',
    name: 'One',
    model: 'mock-chat',
    instructions: 'First',
  })
  await owner.rest('PATCH', `/v1/agents/${agent.id}`, { instructions: 'Second', collection_ids: [has.collection] })
  await owner.rest('PATCH', `/v1/agents/${agent.id}`, { name: 'Three' })
  const facts = 'version name instructions model { id } collections { id } createdAt'
  const { agent: found } = await executeQuery(`{ agent(id: "${agent.id}") {
    version
    versions(first: 2) { totalCount pageInfo { hasNextPage endCursor } edges { node { ${facts} } } }
    last: versions(last: 2) { edges { node { version } } pageInfo { hasPreviousPage } }
    before: atVersion(version: 1) { ${facts} }
    none: atVersion(version: 4) { version }
    zero: atVersion(version: 0) { version }
  } }`)
  expect(found.versions.totalCount).toBe(3)
  expect(found.versions.edges.map(({ node }: Json) => [node.version, node.name, node.instructions])).toEqual([
    [3, 'Three', 'Second'],
    [2, 'One', 'Second'],
  ])
  expect(found.versions.pageInfo.hasNextPage).toBe(true)
  expect(found.last).toEqual({ edges: [{ node: { version: 2 } }, { node: { version: 1 } }], pageInfo: { hasPreviousPage: true } })
  expect(found.before).toMatchObject({ version: 1, name: 'One', instructions: 'First', model: { id: 'mock-chat' }, collections: [] })
  expect(found).toMatchObject({ none: null, zero: null })
  const next = `{ agent(id: "${agent.id}") { versions(first: 2, after: "${found.versions.pageInfo.endCursor}") { edges { node { version } } pageInfo { hasNextPage } } } }`
  expect(await executeQuery(next)).toEqual({ agent: { versions: { edges: [{ node: { version: 1 } }], pageInfo: { hasNextPage: false } } } })
  expect(
    await codesOf(`{ agent(id: "${agent.id}") { versions(after: "${Buffer.from('run_1').toString('base64url')}") { totalCount } } }`),
  ).toEqual(['INVALID_REQUEST'])
})

it('retains the versions of a workflow', async () => {
  const definition = (template: string) => ({ nodes: [{ id: 'say', type: 'template', template }], output: '{{ nodes.say.text }}' })
  const { body: workflow } = await owner.rest('POST', '/v1/workflows', { code: 'versions', name: 'One', definition: definition('First') })
  await owner.rest('PATCH', `/v1/workflows/${workflow.id}`, { definition: definition('Second') })
  const { workflow: found } = await executeQuery(`{ workflow(id: "${workflow.id}") {
    versions { totalCount edges { node { version definition } } } atVersion(version: 1) { version definition }
  } }`)
  expect(found.versions.edges.map(({ node }: Json) => node)).toEqual([
    { version: 2, definition: definition('Second') },
    { version: 1, definition: definition('First') },
  ])
  expect(found.atVersion).toEqual({ version: 1, definition: definition('First') })
})

it('lists the threads of an agent, by their first words, and shows one', async () => {
  const thread = 'id agentId agent { id } title messageCount messages updatedAt expiresAt'
  const { agent, thread: one } = await executeQuery(`{
    agent(id: "${has.agent}") { threads { totalCount edges { node { ${thread} } } } }
    thread(id: "${has.thread}") { ${thread} }
  }`)
  expect(agent.threads.totalCount).toBe(1)
  expect(agent.threads.edges[0].node).toEqual(one)
  expect(one).toMatchObject({ id: has.thread, agentId: has.agent, agent: { id: has.agent }, messageCount: 2 })
  expect(one.messages.map(({ role }: Json) => role)).toEqual(['user', 'assistant'])
  expect(one.title).toBe(one.messages[0].content)
  expect(await codesOf(`{ thread(id: "${has.thread}") { id } }`, await withScopes('knowledge:read'))).toEqual(['PERMISSION_DENIED'])
})

it('follows the ends of runs of agents and workflows after a cursor', async () => {
  const client = owner.socket()
  const query =
    'subscription ($after: Cursor) { runEnded(after: $after) { runId cursor agentRun { id status } workflowRun { id status } } }'
  const found: Json[] = []
  for await (const { data } of client.iterate<Json>({ query, variables: { after: '0' } })) {
    found.push(data.runEnded)
    if (found.length === 2) break
  }
  await client.dispose()
  expect(found).toEqual([
    { runId: has.agentRun, cursor: '1', agentRun: { id: has.agentRun, status: 'COMPLETED' }, workflowRun: null },
    { runId: has.workflowRun, cursor: '2', agentRun: null, workflowRun: { id: has.workflowRun, status: 'COMPLETED' } },
  ])
})

it('reports the spending of each key, and lists keys by name and by state', async () => {
  const { body: created } = await owner.rest('POST', '/v1/keys', { name: 'Spender of the month' })
  const spender = createCaller(service, created.key)
  await spender.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: 'Hello' }] })
  const spent = 'spent { today thisMonth total }'
  const { viewer, organization } = await executeQuery(`{
    viewer { ${spent} }
    organization { apiKeys(filter: { nameContains: "SPENDER", isActive: true }) { edges { node { id ${spent} } } } }
  }`)
  const [{ node }] = organization.apiKeys.edges
  expect(node.id).toBe(created.id)
  expect(Number(node.spent.today)).toBeGreaterThan(0)
  expect(node.spent).toEqual({ today: node.spent.total, thisMonth: node.spent.total, total: node.spent.total })
  // What a key spends counts in those that it descends from.
  expect(Number(viewer.spent.total)).toBeGreaterThan(Number(node.spent.total))

  await owner.rest('DELETE', `/v1/keys/${created.id}`)
  const listed = async (isActive: boolean) =>
    (await executeQuery(`{ organization { apiKeys(first: 100, filter: { isActive: ${isActive} }) { edges { node { id ${spent} } } } } }`))
      .organization.apiKeys.edges
  expect((await listed(true)).map(({ node }: Json) => node.id)).not.toContain(created.id)
  expect(await listed(false)).toEqual([{ node: { id: created.id, spent: null } }])
})

it('shows the open holds during a call, and none after it', async () => {
  const call = owner.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: 'Wait at the gate' }] })
  const read = async () =>
    (await executeQuery('{ organization { wallet { held holds { amount operation model { id } apiKey { id } requestId expiresAt } } } }'))
      .organization.wallet
  await eventually(async () => (await read()).holds.length === 1)
  const { held, holds } = await read()
  expect(holds).toMatchObject([{ amount: held, operation: 'CHAT_COMPLETION', model: { id: 'mock-chat' }, requestId: expect.any(String) }])
  mock.openGate()
  await call
  expect(await executeQuery('{ organization { wallet { held holds { id } } } }')).toEqual({
    organization: { wallet: { held: '0', holds: [] } },
  })
})

it('reports which models each policy forbids, of those that the key may call', async () => {
  const { local, all } = await executeQuery(`{
    local: residencyEffects(policy: LOCAL_ONLY) { policy residencies permittedModels { id residency } forbiddenModels { id residency } }
    all: residencyEffects(policy: UNRESTRICTED) { residencies permittedModels { id } forbiddenModels { id } }
  }`)
  expect(local).toMatchObject({ policy: 'LOCAL_ONLY', residencies: ['LOCAL'] })
  expect(local.permittedModels.every(({ residency }: Json) => residency === 'LOCAL')).toBe(true)
  expect(local.forbiddenModels.length).toBeGreaterThan(0)
  expect(local.forbiddenModels.every(({ residency }: Json) => residency !== 'LOCAL')).toBe(true)
  expect(all.residencies).toEqual(['LOCAL', 'REGIONAL', 'CLOUD'])
  expect(all.forbiddenModels).toEqual([])
  expect(all.permittedModels).toHaveLength(local.permittedModels.length + local.forbiddenModels.length)
  expect(await codesOf('{ residencyEffects(policy: REGIONAL) { policy } }', await withScopes('inference'))).toEqual(['PERMISSION_DENIED'])
})

it('explains the rank of a chunk', async () => {
  const search = (more: string) => `{ searchCollection(input: { collectionId: "${has.collection}", query: "harbour 1931"${more} }) {
    hits { score lexicalRank vectorRank explanation { closeness wordCoverage gramCoverage evidence tokenCloseness rankBeforeRerank } }
  } }`
  const [hybrid] = (await executeQuery(search(''))).searchCollection.hits
  expect(hybrid.explanation).toMatchObject({ tokenCloseness: 0, rankBeforeRerank: null })
  expect(hybrid.explanation.closeness).toBeGreaterThan(0)
  expect(hybrid.explanation.wordCoverage).toBeGreaterThan(0)
  expect(hybrid.explanation.evidence).toBeGreaterThan(0)
  const [lexical] = (await executeQuery(search(', mode: LEXICAL'))).searchCollection.hits
  expect(lexical.explanation.closeness).toBeNull()
  const [vector] = (await executeQuery(search(', mode: VECTOR'))).searchCollection.hits
  expect(vector.explanation).toMatchObject({ wordCoverage: null, gramCoverage: null })
  const [reranked] = (await executeQuery(search(', rerankModel: "mock-rerank"'))).searchCollection.hits
  expect(reranked.explanation.rankBeforeRerank).toBeGreaterThan(0)
})

it('reports the health of each part and the queue to the operator only', async () => {
  const health = '{ billingHealth { isReady problems } knowledgeHealth { isReady problems } inferenceHealth { isReady problems } }'
  const ready = { isReady: true, problems: [] }
  expect(await executeQuery(health, operator)).toEqual({ billingHealth: ready, knowledgeHealth: ready, inferenceHealth: ready })
  const queues = '{ ingestionQueues { next queues { organization { id name } due underWay dueSince } } }'
  expect((await executeQuery(queues, operator)).ingestionQueues).toEqual({ next: null, queues: [] })
  expect(await codesOf(health)).toEqual(['PERMISSION_DENIED'])
  expect(await codesOf(queues)).toEqual(['PERMISSION_DENIED'])
})

it('names the fallbacks of a model', async () => {
  const { models } = await executeQuery('{ models { id aliases fallbacks { id } } }')
  const offered = new Set(models.map(({ id }: Json) => id))
  for (const { fallbacks } of models) for (const { id } of fallbacks) expect(offered).toContain(id)
})
