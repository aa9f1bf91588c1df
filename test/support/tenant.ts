import { addDocument, type Caller, type Json } from './client.ts'
import type { WebhookReceiver } from './engines/webhook-receiver.ts'
import { eventually } from './eventually.ts'
import type { MemberIssuer } from './processes/member-issuer.ts'

/** Returns a text that is in all texts of a tenant, so that tests find it where it must not be. */
export const createMark = (tenant: string) => `zq${tenant}mark`

export const INSTRUCTIONS = { messages: [{ role: 'user', content: 'Hello' }] }

/** The things of an organization, one of each kind, that requests can name. */
export interface Possessions {
  readonly organization: string
  readonly collection: string
  readonly collectionCode: string
  readonly file: string
  readonly document: string
  readonly webSource: string
  /** The address of a page. */
  readonly page: string
  readonly upload: string
  readonly chunk: string
  readonly goldQuestion: string
  readonly evaluation: string
  readonly reembedding: string
  readonly agent: string
  readonly agentCode: string
  readonly agentModel: string
  readonly agentRun: string
  readonly chatStream: string
  readonly thread: string
  readonly workflow: string
  readonly workflowCode: string
  readonly workflowRun: string
  readonly key: string
  readonly session: string
  readonly member: string
  readonly invitation: string
  readonly erasure: string
  readonly webhook: string
  readonly delivery: string
  readonly idempotencyKey: string
  readonly wallet: string
  readonly usageRecord: string
  readonly ledgerEntry: string
  readonly usageCursor: string
  readonly entryCursor: string
  readonly deliveryCursor: string
  readonly redeliveryCursor: string
  readonly reference: string
  readonly mcpSession: string
  readonly searchTool: string
  readonly searchToolById: string
  readonly agentTool: string
  readonly agentToolById: string
  readonly toolCursor: string
  readonly answerId: string
  /** A receiver's address that takes no messages. */
  readonly elsewhere: string
}
export type Kind = keyof Possessions

const CREATE_UPLOAD = 'mutation ($input: CreateUploadInput!) { createUpload(input: $input) { upload { id } } }'

const done = async <T extends Promise<{ status: number; body: Json }>>(request: T): Promise<Json> => {
  const { status, body } = await request
  if (status >= 300) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body
}

/** Creates one thing of each kind. All of them are at rest when the promise resolves. */
export async function furnish(
  caller: Caller & { readonly organizationId: string },
  tenant: string,
  receiver: WebhookReceiver,
  memberIssuer: MemberIssuer,
): Promise<Possessions> {
  const mark = createMark(tenant)
  const post = (path: string, body: unknown) => done(caller.rest('POST', path, body))
  const get = (path: string) => done(caller.rest('GET', path))
  const collectionCode = `${mark}-col-0a`
  const agentCode = `${mark}-agt-0a`
  const workflowCode = `${mark}-wfl-0a`

  const endpoint = receiver.at(`/${mark}`)
  const webhook = await post('/v1/webhooks', { url: endpoint.url, event_types: ['usage.recorded', 'document.updated'], description: mark })
  endpoint.secret = webhook.secret
  const collection = await post('/v1/collections', {
    ...{ collection_code: collectionCode, collection_name: `${mark} notes`, embedding_model: 'e5-small-ar-en', description: mark },
  })
  const document = await addDocument(caller, collection.id, `${mark}.md`, `# ${mark}\nThe harbour of ${mark} was built in 1931.`, {
    topic: mark,
  })
  const page = receiver.page(mark)
  await post(`/v1/collections/${collection.id}/documents`, { url: page })
  const [source] = (await get(`/v1/collections/${collection.id}/sources`)).data
  await eventually(async () => (await get(`/v1/collections/${collection.id}/documents/${source.document_id}`)).status === 'ready', 30_000)
  const input = { name: `${mark}.txt`, sizeBytes: 1, metadata: mark }
  const { upload } = (await caller.graphql(CREATE_UPLOAD, { input })).data.createUpload
  const [hit] = (await post(`/v1/collections/${collection.id}/search`, { query: 'harbour', mode: 'lexical' })).data
  const expected = [{ phrase: mark }]
  const [goldQuestion] = (await post(`/v1/collections/${collection.id}/gold-questions`, { questions: [{ query: `${mark}?`, expected }] }))
    .data
  const evaluation = await post(`/v1/collections/${collection.id}/evaluations`, { settings: [{ mode: 'lexical', label: mark }] })
  await eventually(async () => (await get(`/v1/evaluations/${evaluation.id}`)).status === 'completed', 30_000)
  const other = await post('/v1/collections', {
    ...{ collection_code: `${mark}-col-0b`, collection_name: `${mark} other notes`, embedding_model: 'e5-small-ar-en' },
  })
  const reembedding = await post(`/v1/collections/${other.id}/reembeddings`, { embedding_model: 'mock-embed' })
  await eventually(async () => (await get(`/v1/reembeddings/${reembedding.id}`)).status === 'completed', 30_000)
  const agent = await post('/v1/agents', {
    code: agentCode,
    name: mark,
    model: 'mock-chat',
    collection_ids: [collection.id],
    instructions: mark,
  })
  const agentRun = await post(`/v1/agents/${agent.id}/runs`, { input: `${mark}?`, keep_thread: true })
  const workflow = await post('/v1/workflows', {
    code: workflowCode,
    name: mark,
    definition: { nodes: [{ id: 'say', type: 'template', template: mark }], output: '{{ nodes.say.text }}' },
  })
  const workflowRun = await post(`/v1/workflows/${workflow.id}/runs`, { inputs: { mark }, wait: true })
  const key = await post('/v1/keys', { name: mark })
  // Of a key that nobody uses.
  const erasure = await post('/v1/erasures', { key_ids: [key.id] })
  const session = await caller.signIn()
  const { token } = await post('/v1/invitations', { email: `${mark}@example.org`, role: 'viewer' })
  const { path } = await memberIssuer.signIn(caller.service, mark, { invitation: token })
  if (path !== '/home') throw new Error(path)
  const [member] = (await get('/v1/members')).data
  const invitation = await post('/v1/invitations', { email: `${mark}-2@example.org`, role: 'viewer' })
  const completion = await post('/v1/chat/completions', { model: 'mock-chat', ...INSTRUCTIONS })
  const chatStream = await streamOnce(caller)
  const delivery = await post(`/v1/webhooks/${webhook.id}/ping`, undefined)
  const listDeliveries = () => get(`/v1/webhooks/${webhook.id}/deliveries?limit=100`)
  await eventually(async () => {
    const { data } = await listDeliveries()
    return data.length > 4 && data.every(({ status }: Json) => status === 'delivered')
  }, 30_000)
  const deliveries = await listDeliveries()
  const [usage, entries] = [await get('/v1/usage?limit=1'), await get('/v1/wallet/entries?limit=1')]
  return {
    organization: caller.organizationId,
    collection: collection.id,
    collectionCode,
    file: document.file_id,
    document: document.id,
    webSource: source.id,
    page,
    upload: upload.id,
    chunk: hit.chunk_id,
    goldQuestion: goldQuestion.id,
    evaluation: evaluation.id,
    reembedding: reembedding.id,
    agent: agent.id,
    agentCode,
    agentModel: `agent/${agentCode}`,
    agentRun: agentRun.id,
    chatStream,
    thread: agentRun.thread_id,
    workflow: workflow.id,
    workflowCode,
    workflowRun: workflowRun.id,
    key: key.id,
    session: session.id,
    member: member.id,
    invitation: invitation.id,
    erasure: erasure.id,
    webhook: webhook.id,
    delivery: delivery.id,
    idempotencyKey: `${mark}-0a`,
    wallet: caller.organizationId.replace('org_', 'wal_'),
    usageRecord: usage.data[0].id,
    ledgerEntry: entries.data[0].id,
    usageCursor: usage.last_id,
    entryCursor: entries.last_id,
    deliveryCursor: deliveries.last_id,
    redeliveryCursor: `${new Date(delivery.created_at * 1000).toISOString()}_${delivery.event.id}`,
    reference: `${mark}-reference-0a`,
    mcpSession: `mcp_${agent.id.slice('agt_'.length)}`,
    searchTool: `search_${collectionCode}`,
    searchToolById: `search_${collection.id}`,
    agentTool: `run_agent_${agentCode}`,
    agentToolById: `run_agent_${agent.id}`,
    toolCursor: `agents:${encodeCursor(agent.id)}`,
    answerId: completion.id,
    elsewhere: `${endpoint.url}-elsewhere`,
  }
}

/** Returns the id of a streamed chat that has ended. */
async function streamOnce(caller: Caller): Promise<string> {
  const query = 'subscription ($input: ChatCompletionInput!) { chatCompletion(input: $input) { id } }'
  const request = { model: 'mock-chat', ...INSTRUCTIONS }
  let id = ''
  for await (const { data, errors } of caller.socket().iterate<Json>({ query, variables: { input: { request } } })) {
    if (errors) throw new Error(JSON.stringify(errors))
    id = data.chatCompletion.id
  }
  return id
}

/** Returns the cursor of an item in a list that is sorted by id. */
export const encodeCursor = (id: string) => Buffer.from(id).toString('base64url')

/** Returns an id of the same form next to the given one. It has the same place in every list, and nothing has it. */
export function createUnknown(id: string): string {
  const decoded = Buffer.from(id, 'base64url').toString()
  if (/^\d{1,15}$/.test(decoded) && encodeCursor(decoded) === id) return id
  if (encodeCursor(decoded) === id && /^[\w:. -]+$/.test(decoded)) return encodeCursor(otherEnd(decoded))
  return otherEnd(id)
}

/** Returns the text with another last character, of the same kind and next to the given one. */
function otherEnd(text: string): string {
  const last = text.at(-1)!
  const neighbour = ({ f: 'e', z: 'y', Z: 'Y', 9: '8', '-': 'A', _: 'A' } as Record<string, string>)[last]
  return text.slice(0, -1) + (neighbour ?? String.fromCharCode(last.charCodeAt(0) + 1))
}
