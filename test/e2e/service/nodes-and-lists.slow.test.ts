import { afterAll, beforeAll, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { addDocument, type Caller, createCaller, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { WebhookReceiver } from '../../support/engines/webhook-receiver.ts'
import { MemberIssuer } from '../../support/processes/member-issuer.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { createUnknown, furnish, type Possessions } from '../../support/tenant.ts'
import { NODE_KINDS } from '../../support/tenant-positions.ts'

const NODE = 'query Node($id: ID!) { node(id: $id) { __typename id } }'
const NODES = 'query Nodes($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }'

let mock: MockEngine
let receiver: WebhookReceiver
let memberIssuer: MemberIssuer
let service: Service
let owner: Caller & { readonly organizationId: string }
let has: Possessions
beforeAll(async () => {
  mock = await startMockEngine()
  receiver = await WebhookReceiver.start()
  memberIssuer = await MemberIssuer.start()
  service = await startEmbedded({ catalog: testCatalog(mock.url), env: { KIS_EGRESS_ALLOW: receiver.host, ...memberIssuer.env } })
  owner = await newOrganization(createCaller(service, service.key), service)
  has = await furnish(owner, 'n', receiver, memberIssuer)
}, 120_000)
afterAll(async () => {
  await service?.close()
  await mock?.[Symbol.asyncDispose]()
  await receiver?.[Symbol.asyncDispose]()
  await memberIssuer?.[Symbol.asyncDispose]()
})

const TYPES: Readonly<Record<(typeof NODE_KINDS)[number], string>> = {
  collection: 'Collection',
  file: 'File',
  document: 'Document',
  chunk: 'Chunk',
  goldQuestion: 'GoldQuestion',
  evaluation: 'Evaluation',
  reembedding: 'Reembedding',
  webSource: 'WebSource',
  upload: 'Upload',
  agent: 'Agent',
  agentRun: 'AgentRun',
  thread: 'Thread',
  workflow: 'Workflow',
  workflowRun: 'WorkflowRun',
  organization: 'Organization',
  wallet: 'Wallet',
  key: 'ApiKey',
  member: 'Member',
  invitation: 'Invitation',
  webhook: 'WebhookEndpoint',
  delivery: 'WebhookDelivery',
  usageRecord: 'UsageRecord',
  ledgerEntry: 'LedgerEntry',
}

it('finds an object of each kind by its ID, one by one and together', async () => {
  const ids = NODE_KINDS.map((kind) => has[kind])
  const expected = NODE_KINDS.map((kind) => ({ __typename: TYPES[kind], id: has[kind] }))
  for (const [i, id] of ids.entries()) expect(await owner.graphql(NODE, { id })).toEqual({ data: { node: expected[i] } })
  expect(await owner.graphql(NODES, { ids })).toEqual({ data: { nodes: expected } })
  expect(await owner.graphql(NODE, { id: 'mock-chat' })).toEqual({ data: { node: { __typename: 'Model', id: 'mock-chat' } } })
})

it('finds nothing for unknown IDs and for those of another organization', async () => {
  const other = await newOrganization(createCaller(service, service.key), service)
  const ids = NODE_KINDS.flatMap((kind) => [has[kind], createUnknown(has[kind])])
  const strange = ['', 'x', '__proto__', 'constructor_1', 'doc_', `doc_${'0'.repeat(500)}`, 'agent/none']
  expect(await other.graphql(NODES, { ids: [...ids, ...strange] })).toEqual({ data: { nodes: [...ids, ...strange].map(() => null) } })
})

it('returns the fields of an object from the subgraphs that have them', async () => {
  const { data, errors } = await owner.graphql(
    `query Fields($ids: [ID!]!) { nodes(ids: $ids) {
      ... on Document { name file { name } collection { code searchTool { description } } }
      ... on Agent { code model { id } }
      ... on Wallet { balance entries(first: 1) { edges { node { id } } } }
      ... on WorkflowRun { status workflow { code } nodes { id nodeId } }
      ... on Evaluation { questions { id goldQuestionId } }
      ... on WebhookDelivery { event { type } attempts { statusCode } } } }`,
    { ids: [has.document, has.agent, has.wallet, has.workflowRun, has.evaluation, has.delivery] },
  )
  expect(errors).toBeUndefined()
  expect(data.nodes).toMatchObject([
    {
      name: 'zqnmark.md',
      file: { name: 'zqnmark.md' },
      collection: { code: has.collectionCode, searchTool: { description: expect.any(String) } },
    },
    { code: has.agentCode, model: { id: 'mock-chat' } },
    { balance: expect.any(String), entries: { edges: [{ node: { id: expect.stringMatching(/^ent_/) } }] } },
    { status: 'COMPLETED', workflow: { code: has.workflowCode }, nodes: [{ id: `${has.workflowRun}/say`, nodeId: 'say' }] },
    { questions: [{ id: `${has.evaluation}/${has.goldQuestion}`, goldQuestionId: has.goldQuestion }] },
    { event: { type: 'ping' }, attempts: expect.any(Array) },
  ])
})

it('refuses an object with a field outside the rights of the key, and returns the others', async () => {
  const { body } = await owner.rest('POST', '/v1/keys', { name: 'reader', scopes: ['knowledge:read'] })
  const reader = createCaller(service, body.key)
  const ids = [has.document, has.agent, has.wallet, has.upload, has.webhook, has.key, has.organization]
  const { data, errors } = await reader.graphql(NODES, { ids })
  expect(data.nodes.map((node: { id: string } | null) => node?.id ?? null)).toEqual([
    has.document,
    null,
    null,
    null,
    null,
    null,
    has.organization,
  ])
  expect(errors?.map(({ path, extensions }) => [path, extensions.code]).toSorted()).toEqual(
    [1, 2, 3, 4].map((i) => [['nodes', i], 'PERMISSION_DENIED']),
  )
  const { data: own } = await reader.graphql('{ viewer { __typename id name scopes modelAllowlist organization { id name } lastUsedAt } }')
  expect(own.viewer).toEqual({
    ...{ __typename: 'ApiKey', id: body.id, name: 'reader', scopes: ['KNOWLEDGE_READ'], modelAllowlist: null },
    organization: { id: has.organization, name: 'Test' },
    lastUsedAt: expect.stringMatching(/^\d{4}-/),
  })
  expect(await reader.graphql(NODE, { id: body.id })).toEqual({ data: { node: { __typename: 'ApiKey', id: body.id } } })
})

it('lists documents by name, metadata and time, from either end, and counts them', async () => {
  const { body: collection } = await owner.rest('POST', '/v1/collections', {
    ...{ collection_code: 'lists', collection_name: 'Lists', embedding_model: 'e5-small-ar-en' },
  })
  for (const name of ['b', 'a', 'c']) await addDocument(owner, collection.id, `${name}.txt`, `Text ${name}`, { letter: name })
  const list = async (page: string, filter: object = {}) => {
    const { data, errors } = await owner.graphql(
      `query List($id: ID!, $filter: DocumentFilter) { collection(id: $id) { documents(${page}, filter: $filter) {
        totalCount pageInfo { hasNextPage hasPreviousPage startCursor } edges { node { name } } } } }`,
      { id: collection.id, filter },
    )
    expect(errors).toBeUndefined()
    const { totalCount, pageInfo, edges } = data.collection.documents
    return { totalCount, pageInfo, names: edges.map(({ node }: { node: { name: string } }) => node.name) }
  }
  expect(await list('first: 2, sortBy: NAME, order: ASC')).toMatchObject({
    totalCount: 3,
    names: ['a.txt', 'b.txt'],
    pageInfo: { hasNextPage: true },
  })
  const end = await list('last: 2')
  expect(end).toMatchObject({ totalCount: 3, names: ['a.txt', 'b.txt'], pageInfo: { hasNextPage: false, hasPreviousPage: true } })
  expect(await list(`last: 2, before: "${end.pageInfo.startCursor}"`)).toMatchObject({
    names: ['c.txt'],
    pageInfo: { hasPreviousPage: false },
  })
  expect(await list('first: 5', { metadata: { letter: 'c' } })).toMatchObject({ totalCount: null, names: ['c.txt'] })
  expect(await list('first: 5', { nameContains: 'A.TX' })).toMatchObject({ names: ['a.txt'] })
  expect(await list('first: 5, status: READY', { since: '2020-01-01T00:00:00.000Z' })).toMatchObject({ totalCount: 3 })
  expect(await list('first: 5', { until: '2020-01-01T00:00:00.000Z' })).toMatchObject({ totalCount: 0, names: [] })
})

it('counts every list, and lists the runs of all agents and the usage of one request', async () => {
  const { data, errors } = await owner.graphql(
    `query Lists($collection: ID!, $document: ID!, $file: ID!, $agent: ID!, $webhook: ID!) {
      collections(sortBy: NAME) { totalCount } files(filter: { nameContains: "zqn" }) { edges { node { name } } }
      agents { totalCount } workflows { totalCount } agentRuns(filter: { status: COMPLETED }) { totalCount edges { node { id } } }
      workflowRuns(last: 1) { totalCount edges { node { id } } }
      collection(id: $collection) { goldQuestions { totalCount } evaluations { totalCount } sources { totalCount } reembeddings { totalCount } }
      document(id: $document) { chunks(last: 1) { totalCount edges { node { id } } } } file(id: $file) { documents { id } }
      agent(id: $agent) { runs(filter: { status: COMPLETED }) { totalCount } failed: runs(filter: { status: FAILED }) { totalCount } } webhookEndpoints { totalCount } webhookDeliveries(endpointId: $webhook, last: 1) { totalCount }
      organization { apiKeys(last: 1) { totalCount } wallet { entries(last: 1) { totalCount edges { node { sequence } } } } }
      usage(last: 1) { totalCount edges { node { id requestId } } } }`,
    { collection: has.collection, document: has.document, file: has.file, agent: has.agent, webhook: has.webhook },
  )
  expect(errors).toBeUndefined()
  expect(data).toMatchObject({
    collections: { totalCount: expect.any(Number) },
    agents: { totalCount: 1 },
    workflows: { totalCount: 1 },
    agentRuns: { totalCount: 1, edges: [{ node: { id: has.agentRun } }] },
    workflowRuns: { totalCount: 1, edges: [{ node: { id: has.workflowRun } }] },
    collection: {
      goldQuestions: { totalCount: 1 },
      evaluations: { totalCount: 1 },
      sources: { totalCount: 1 },
      reembeddings: { totalCount: 0 },
    },
    document: { chunks: { totalCount: 1, edges: [{ node: { id: has.chunk } }] } },
    file: { documents: [{ id: has.document }] },
    agent: { runs: { totalCount: 1 }, failed: { totalCount: 0 } },
    organization: { wallet: { entries: { edges: [{ node: { sequence: 1 } }] } } },
  })
  const [{ node }] = data.usage.edges
  const ofRequest = await owner.graphql('query Of($id: String) { usage(filter: { requestId: $id }) { edges { node { id requestId } } } }', {
    id: node.requestId,
  })
  expect(ofRequest.data.usage.edges).toContainEqual({ node })
  expect(ofRequest.data.usage.edges.every((edge: { node: { requestId: string } }) => edge.node.requestId === node.requestId)).toBe(true)
  const { data: byName } = await owner.graphql('{ files(first: 100, sortBy: NAME, order: ASC) { edges { node { name } } } }')
  const names = byName.files.edges.map((edge: { node: { name: string } }) => edge.node.name)
  expect(names).toEqual(names.toSorted())
})

it('accepts at most 100 IDs', async () => {
  const { errors } = await owner.graphql(NODES, { ids: Array.from({ length: 101 }, () => has.document) })
  expect(errors).toMatchObject([{ extensions: { code: 'INVALID_REQUEST' } }])
})
