import { expect, it } from 'vitest'
import { addDocument, type Caller, type Json, newCollection } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import type { Running } from './running.ts'

/** Subscriptions to documents, and webhooks. */
export function events(running: Running): void {
  it('reports an ingestion live', async () => {
    const caller = await running.newOrganization()
    const collection = await newCollection(caller)
    const client = caller.socket()
    const seen: Json[] = []
    const events = client.iterate<Json>({
      query:
        'subscription ($id: ID) { documentUpdated(collectionId: $id) { document { id status stage progress { done total } collection { embeddingModel { price { input } } } } } }',
      variables: { id: collection.id },
    })
    const reading = (async () => {
      for await (const { data, errors } of events) {
        expect(errors).toBeUndefined()
        seen.push(data.documentUpdated.document)
      }
    })()
    // Only its first event shows that a subscription is open. The document after that is seen from its start.
    for (let i = 0; seen.length === 0; i++) await addDocument(caller, collection.id, `${i}.txt`, `Text ${i} about lakes.`)
    const { id } = await addDocument(caller, collection.id, 'a.txt', 'A short text about rivers.')
    const stages = () => seen.filter((document) => document.id === id).map(({ stage, status }) => stage ?? status)
    await eventually(() => stages().includes('READY'))
    await client.dispose()
    await reading
    expect(stages()).toEqual(expect.arrayContaining(['QUEUED', 'PARSING', 'CHUNKING', 'EMBEDDING', 'INDEXING', 'READY']))
  })

  it('sends signed webhooks of documents, runs, calls and money, in order per subject, and none to other organizations', async () => {
    const caller = await running.newOrganization()
    const otherTenant = await running.newOrganization()
    const types = ['document.updated', 'document.deleted', 'agent_run.completed', 'usage.recorded', 'wallet.changed']
    const createEndpoint = async (owner: Caller) => {
      const endpoint = running.receiver.at(`/${Math.random()}`)
      const { status, body } = await owner.rest('POST', '/v1/webhooks', { url: endpoint.url, event_types: types })
      expect(status).toBe(201)
      endpoint.secret = body.secret
      return endpoint
    }
    const [endpoint, elsewhere] = [await createEndpoint(caller), await createEndpoint(otherTenant)]
    const collection = await newCollection(caller)
    const document = await addDocument(caller, collection.id, 'a.txt', 'A short text about rivers.')
    expect((await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${document.id}`)).status).toBe(200)
    const of = (type: string) => endpoint.accepted.filter((message) => message.type === type)
    await eventually(() => of('document.deleted').length === 1 && of('usage.recorded').length > 0, 30_000)
    // Queued, parsing, chunking, embedding twice, indexing, ready.
    const cursors = endpoint.accepted.filter(({ data }) => data.document_id === document.id).map(({ data }) => data.cursor)
    expect(cursors).toEqual(['1', '2', '3', '4', '5', '6', '7', '8'])
    expect(of('document.updated').at(-1)!.data).toMatchObject({ status: 'ready', stage: null, error_code: null, chunk_count: 1 })
    const { data: usage } = (await caller.rest('GET', '/v1/usage')).body
    await eventually(() => of('usage.recorded').length === usage.length, 30_000)
    expect(new Set(of('usage.recorded').map(({ data }) => data.usage_record_id))).toEqual(new Set(usage.map(({ id }: Json) => id)))

    const CREATE = 'mutation ($input: CreateAgentInput!) { createAgent(input: $input) { agent { id } } }'
    const { data, errors } = await caller.graphql(CREATE, { input: { code: 'told', name: 'Told', model: 'mock-chat' } })
    expect(errors).toBeUndefined()
    const run = await caller.graphql('mutation ($input: RunAgentInput!) { runAgent(input: $input) { id cost } }', {
      input: { agentId: data.createAgent.agent.id, input: 'hi' },
    })
    expect(run.errors).toBeUndefined()
    await eventually(() => of('agent_run.completed').length === 1, 30_000)
    expect(of('agent_run.completed')[0]!.data).toMatchObject({
      run_id: run.data.runAgent.id,
      agent_id: data.createAgent.agent.id,
      status: 'completed',
      cost_usd: run.data.runAgent.cost,
    })
    expect([endpoint.faults, elsewhere.faults]).toEqual([[], []])
    expect(elsewhere.received.filter(({ type }) => type !== 'wallet.changed')).toEqual([])
  }, 120_000)

  it('resumes the events of documents after a cursor, without loss or repeat', async () => {
    const caller = await running.newOrganization()
    const collection = await newCollection(caller)
    const EVENTS =
      'subscription ($after: Cursor) { documentUpdated(after: $after) { cursor documentId at document { id status stage progress { done } } } }'
    const readEvents = async (after: string | null, isLast: (event: Json) => boolean): Promise<Json[]> => {
      const client = caller.socket()
      const events: Json[] = []
      for await (const { data, errors } of client.iterate<Json>({ query: EVENTS, variables: { after } })) {
        expect(errors).toBeUndefined()
        events.push(data.documentUpdated)
        if (isLast(data.documentUpdated)) break
      }
      await client.dispose()
      return events
    }
    const document = await addDocument(caller, collection.id, 'a.txt', 'A short text about rivers.')
    expect((await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${document.id}`)).status).toBe(200)
    // Queued, parsing, chunking, embedding twice, indexing, ready, deleted.
    const all = await readEvents('0', (event) => event.document === null && event.cursor === '8')
    expect(all.map(({ cursor }) => Number(cursor))).toEqual(all.map((_, i) => i + 1))
    expect(all.every(({ documentId }) => documentId === document.id)).toBe(true)
    for (const seen of [1, 4, all.length - 1]) {
      const rest = await readEvents(String(seen), (event) => event.cursor === all.at(-1)!.cursor)
      expect(rest).toEqual(all.slice(seen))
    }
    const client = caller.socket()
    const { value } = await client.iterate<Json>({ query: EVENTS, variables: { after: 'x' } }).next()
    expect(value.errors[0].extensions).toMatchObject({ code: 'INVALID_REQUEST', param: 'after' })
    await client.dispose()
  })
}
