import { DEFINITIONS } from '../../../portal/web/src/pages/workflows/rules/templates.ts'
import type { Caller, Json } from '../../support/client.ts'
import { addDocument, newOrganization } from '../../support/client.ts'
import { WebhookReceiver } from '../../support/engines/webhook-receiver.ts'
import { eventually } from '../../support/eventually.ts'
import { MemberIssuer } from '../../support/processes/member-issuer.ts'
import { furnishedOrganization, type RunningPortal, startPortal } from './portal.ts'

/** A service with something on every page, tab and drawer. */
export interface Gallery extends AsyncDisposable {
  readonly portal: RunningPortal
  /** Keys by who holds them. `empty`: of an organization with nothing. `reader`: it may read collections alone. */
  readonly keys: Readonly<Record<'owner' | 'empty' | 'reader' | 'operator', string>>
  /** Ids by what the scenes call them. */
  readonly ids: Readonly<Record<string, string>>
}

const LONG = 'The lighthouse keeps its light for forty nautical miles. Ships that come from the south see it first.'
const ARABIC = 'تحفظ المنارة ضوءها أربعين ميلًا بحريًا، وتراها السفن القادمة من الجنوب أولًا.'
const QUESTIONS = ['How high is the lighthouse?', 'كم يبلغ ارتفاع المنارة؟']
const WAIT_MS = 60_000

export async function openGallery(): Promise<Gallery> {
  const [receiver, issuer] = await Promise.all([WebhookReceiver.start(), MemberIssuer.start()])
  const portal = await startPortal({ ...issuer.env, KIS_EGRESS_ALLOW: receiver.host })
  const { operator, service } = portal
  const owner = await furnishedOrganization(portal)
  const post = async (path: string, body?: unknown, caller: Caller = owner): Promise<Json> => {
    const response = await caller.rest('POST', path, body)
    if (response.status >= 300) throw new Error(`${path}: ${response.status} ${JSON.stringify(response.body)}`)
    return response.body
  }
  const first = async (path: string): Promise<Json> => (await owner.rest('GET', path)).body.data[0]

  const collection = (await first('/v1/collections')).id as string
  const base = `/v1/collections/${collection}`
  const paragraphs = Array.from({ length: 12 }, (_, index) => `## Part ${index + 1}\n\n${LONG} ${ARABIC}`).join('\n\n')
  const document = await addDocument(
    owner,
    collection,
    `${'A very long name of a report about the harbour '.repeat(3)}تقرير.md`,
    paragraphs,
    {
      author: 'Maryam مريم',
      year: 2024,
      is_public: true,
    },
  )
  const failed = (await first(`${base}/documents?status=failed`)).id as string
  await post('/v1/collections', { collection_code: 'letters', collection_name: 'رسائل', embedding_model: 'mock-embed' })

  const agent = await post('/v1/agents', {
    ...{ code: 'harbour-master', name: 'Harbour master رئيس الميناء', model: 'extractive', collection_ids: [collection] },
    instructions: 'Answer from the collection only.\nأجب من المجموعة فقط.',
  })
  await owner.rest('PATCH', `/v1/agents/${agent.id}`, { instructions: 'Answer from the collection only, in one sentence.' })
  const agentRun = await post(`/v1/agents/${agent.id}/runs`, { input: QUESTIONS[0], keep_thread: true })
  await post(`/v1/agents/${agent.id}/runs`, { input: QUESTIONS[1], thread_id: agentRun.thread_id })
  const failing = await post('/v1/agents', { code: 'failing', name: 'Failing', model: 'mock-chat', instructions: 'Fail.' })
  await owner.rest('POST', `/v1/agents/${failing.id}/runs`, { input: 'fail 500' })

  const workflow = await post('/v1/workflows', {
    code: 'sort-letters',
    name: 'Sort letters فرز الرسائل',
    definition: DEFINITIONS.sort.create({ model: 'extractive', collection }),
  })
  const run = await post(`/v1/workflows/${workflow.id}/runs`, { inputs: { message: 'The light is out. المنارة مطفأة.' }, wait: true })
  const broken = await post('/v1/workflows', {
    code: 'broken',
    name: 'Broken',
    definition: {
      nodes: [{ id: 'ask', type: 'chat', model: 'mock-chat', messages: [{ role: 'user', content: 'fail 500' }] }],
      output: '{{ nodes.ask.text }}',
    },
  })
  const brokenRun = await post(`/v1/workflows/${broken.id}/runs`, { inputs: {}, wait: true })

  await post(`${base}/gold-questions`, {
    questions: [
      { query: QUESTIONS[0], expected: [{ file_name: 'harbour.md' }] },
      { query: QUESTIONS[1], expected: [{ file_name: 'الميناء.md' }] },
    ],
  })
  for (const modes of [['hybrid', 'vector'], ['lexical']]) {
    const evaluation = await post(`${base}/evaluations`, { settings: modes.map((mode) => ({ mode })) })
    await eventually(async () => (await owner.rest('GET', `/v1/evaluations/${evaluation.id}`)).body.status !== 'running', WAIT_MS)
  }

  const receiverEndpoint = receiver.at('/events')
  const endpoint = await post('/v1/webhooks', { url: receiverEndpoint.url, event_types: ['usage.recorded', 'document.updated'] })
  receiverEndpoint.secret = endpoint.secret
  await post(`/v1/webhooks/${endpoint.id}/ping`)
  const refusing = receiver.at('/refusing')
  refusing.answering = () => 500
  const other = await post('/v1/webhooks', { url: refusing.url, event_types: ['usage.recorded'] })
  refusing.secret = other.secret
  await owner.rest('POST', `/v1/webhooks/${other.id}/ping`)

  for (const [login, name] of [
    ['maryam', 'Maryam Al-Harthy مريم الحارثية'],
    ['salim', 'Salim'],
  ] as const) {
    issuer.members.set(login, { sub: login, email: `${login}@example.org`, email_verified: true, name })
    const { token } = await post('/v1/invitations', { email: `${login}@example.org`, role: login === 'salim' ? 'viewer' : 'admin' })
    await issuer.signIn(service, login, { invitation: token })
  }
  const invited = await post('/v1/invitations', { email: 'fatima@example.org', role: 'editor' })

  const revoked = await post('/v1/keys', { name: 'Old website', scopes: ['inference'] })
  await owner.rest('DELETE', `/v1/keys/${revoked.id}`)
  const reader = await post('/v1/keys', { name: 'Reader', scopes: ['knowledge:read'] })
  const limited = (await owner.rest('GET', '/v1/keys')).body.data.find(({ name }: Json) => name === 'Reading desk')
  const empty = await newOrganization(operator, service, { name: 'Nothing yet', creditUsd: '0' })
  const usage = await first('/v1/usage')
  return {
    portal,
    keys: { owner: owner.key, empty: empty.key, reader: reader.key, operator: operator.key },
    ids: {
      collection,
      document: document.id,
      failed,
      agent: agent.id,
      thread: agentRun.thread_id,
      agentRun: agentRun.id,
      workflow: workflow.id,
      run: run.id,
      broken: broken.id,
      brokenRun: brokenRun.id,
      endpoint: endpoint.id,
      refusing: other.id,
      key: limited.id,
      organization: owner.organizationId,
      usage: usage.id,
      invitation: invited.token,
    },
    async [Symbol.asyncDispose]() {
      await portal[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
      await receiver[Symbol.asyncDispose]()
    },
  }
}
