import { once } from 'node:events'
import OpenAI, { toFile } from 'openai'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import {
  addDocument,
  balancedWallet,
  base64,
  type Caller,
  callerOf,
  type Json,
  nano,
  newCollection,
  newOrganization,
  settled,
} from '../../support/client.ts'
import { wav } from '../../support/data/sound.ts'
import { MOCK_USAGE, type MockEngine, startMockEngine, TRANSCRIPT_DELTAS } from '../../support/engines/mock-engine.ts'
import { WebhookReceiver } from '../../support/engines/webhook-receiver.ts'
import { eventually } from '../../support/eventually.ts'
import type { Service, ServiceOptions } from '../../support/processes/service.ts'
import { responseOf } from '../../support/response-events.ts'

const ARABIC = `# دليل الموظف

## الإجازات
يحق لكل موظف ثلاثون يوماً من الإجازة السنوية مدفوعة الأجر. تُقدَّم طلبات الإجازة قبل أسبوعين على الأقل.

## العمل عن بعد
يسمح بالعمل من المنزل يومين في الأسبوع بعد موافقة المدير المباشر.
`
const ENGLISH = `# Travel policy

## Flights
Employees book economy class for flights under six hours. Longer flights may be booked in business class.

## Expenses
Meals are reimbursed up to 60 dollars a day. Receipts must be handed in within thirty days.
`

/** Fills 25 MiB all but a few kilobytes. */
const LONGEST_SOUND_SECONDS = 1_638

/** The running product, as its users meet it. The same in one process and in five. */
export function endToEnd(name: string, start: (options: ServiceOptions) => Promise<Service>): void {
  describe(`end to end, ${name}`, () => {
    let service: Service
    let mock: MockEngine
    let receiver: WebhookReceiver
    let operator: Caller
    beforeAll(async () => {
      mock = await startMockEngine()
      receiver = await WebhookReceiver.start()
      service = await start({ catalog: testCatalog(mock.url), env: { KIS_EGRESS_ALLOW: receiver.host } })
      operator = callerOf(service, service.key)
    }, 90_000)
    afterAll(async () => {
      await service?.close()
      await mock?.[Symbol.asyncDispose]()
      await receiver?.[Symbol.asyncDispose]()
    })

    const chat = (content: string, more: Record<string, unknown> = {}) => ({
      model: 'mock-chat',
      messages: [{ role: 'user' as const, content }],
      ...more,
    })

    describe('the main job', () => {
      let caller: Caller
      let collection: Json
      beforeAll(async () => {
        caller = await newOrganization(operator, service)
        collection = await newCollection(caller)
        const documents = await Promise.all([
          addDocument(caller, collection.id, 'دليل.md', ARABIC, { department: 'hr' }),
          addDocument(caller, collection.id, 'travel.md', ENGLISH, { department: 'finance' }),
        ])
        for (const document of documents)
          expect(document).toMatchObject({ status: 'ready', stage: null, progress: null, error: null, attempts: 1 })
      }, 90_000)

      const search = async (query: string, more: Record<string, unknown> = {}) => {
        const { status, body } = await caller.rest('POST', `/v1/collections/${collection.id}/search`, { query, ...more })
        expect([status, body.object]).toEqual([200, 'list'])
        return body.data as Json[]
      }

      it.each([
        ['Arabic in Arabic', 'كم يوماً الإجازة السنوية؟', 'ثلاثون يوماً'],
        ['English in English', 'Which class may I book for a long flight?', 'business class'],
        ['English by an Arabic question', 'كم دولاراً يُعوَّض عن الوجبات في اليوم؟', '60 dollars'],
        ['Arabic by an English question', 'How many days a week may I work from home?', 'يومين في الأسبوع'],
      ])('finds %s', async (_, query, expected) => {
        const [first] = await search(query)
        expect(first.text).toContain(expected)
        expect(first).toMatchObject({ object: 'search_result', vector_rank: expect.any(Number), page_start: null, page_end: null })
      })

      it('names the source of each chunk: file, heading path, offsets and both ranks', async () => {
        const [first] = await search('economy class flights', { limit: 1 })
        expect(first).toMatchObject({
          file: { file_name: 'travel.md', id: expect.stringMatching(/^file_/) },
          heading_path: ['Travel policy'],
          lexical_rank: 1,
          document_id: expect.stringMatching(/^doc_/),
        })
        expect(first.char_end - first.char_start).toBe(first.text.length)
      })

      it('obeys mode, limit and filter', async () => {
        expect(await search('dollars', { limit: 1 })).toHaveLength(1)
        expect((await search('dollars', { mode: 'lexical' })).map((hit) => hit.vector_rank)).toEqual([null])
        expect((await search('dollars', { mode: 'vector' })).every((hit) => hit.lexical_rank === null)).toBe(true)
        const files = (await search('work policy', { filter: { 'metadata.department': 'hr' } })).map((hit) => hit.file.file_name)
        expect(new Set(files)).toEqual(new Set(['دليل.md']))
      })

      it('answers from the passages by the official SDK, without any vendor', async () => {
        const hits = await search('كم دولاراً يُعوَّض عن الوجبات في اليوم؟', { limit: 3 })
        const context = hits.map((hit, i) => `[${i + 1}] ${hit.file.file_name}: ${hit.text}`).join('\n\n')
        const answer = await caller.openai.chat.completions.create({
          model: 'extractive',
          messages: [{ role: 'user', content: `${context}\n\nكم دولاراً يُعوَّض عن الوجبات في اليوم؟` }],
        })
        expect(answer.choices[0]!.message.content).toContain('60 dollars')
        const pieces: string[] = []
        const stream = await caller.openai.chat.completions.create({
          model: 'extractive',
          stream: true,
          messages: [{ role: 'user', content: `${context}\n\nHow soon must receipts be handed in?` }],
        })
        for await (const chunk of stream) pieces.push(chunk.choices[0]?.delta.content ?? '')
        expect(pieces.length).toBeGreaterThan(2)
        expect(pieces.join('')).toContain('thirty days')
      })

      it('says beforehand what a call would hold, and counts the tokens of a message, for nothing', async () => {
        const before = await balancedWallet(caller)
        const request = chat('How much would this be?', { max_completion_tokens: 10 })
        const quote = await caller.rest('POST', '/v1/chat/completions/quote', request)
        expect([quote.status, quote.body.is_covered]).toEqual([200, true])
        const [{ held_input_tokens: held }] = quote.body.models
        // At 1 and 2 USD per million tokens.
        expect(nano(quote.body.amount_usd)).toBe(BigInt(held) * 1_000n + 20_000n)
        const { model, messages } = request
        const counted = await caller.rest('POST', '/v1/messages/count_tokens', { model, messages })
        expect(counted.body).toEqual({ input_tokens: quote.body.input_tokens })
        expect(await balancedWallet(caller)).toEqual(before)
      })

      it('has every step in the usage and the wallet', async () => {
        const { body } = await caller.rest('GET', '/v1/usage?limit=100')
        const byModel = new Set(body.data.map((record: Json) => `${record.operation} ${record.model}`))
        expect(byModel).toEqual(new Set(['embedding e5-small-ar-en', 'chat_completion extractive']))
        const spent = body.data.reduce((sum: bigint, record: Json) => sum + nano(record.amount_usd), 0n)
        const wallet = await balancedWallet(caller)
        expect(nano(wallet.balance_usd)).toBe(nano('10') - spent)
        expect(spent).toBeGreaterThan(0n)
      })

      it('one GraphQL query goes through all three subgraphs', async () => {
        const { data, errors } = await caller.graphql(
          `query ($id: ID!) { collection(id: $id) { code documentCount chunkCount
             embeddingModel { id residency price { input } } organization { wallet { available held } quota { vectors { used limit } } }
             documents(first: 10) { edges { node { status file { name checksum } } } } } }`,
          { id: collection.id },
        )
        expect(errors).toBeUndefined()
        expect(data.collection).toMatchObject({
          documentCount: 2,
          chunkCount: expect.any(Number),
          embeddingModel: { id: 'e5-small-ar-en', residency: 'LOCAL', price: { input: '0.01' } },
          organization: { wallet: { held: '0' }, quota: { vectors: { used: data.collection.chunkCount, limit: 1_000_000 } } },
        })
        expect(data.collection.documents.edges.map((edge: Json) => edge.node.status)).toEqual(['READY', 'READY'])
        const usage = await caller.graphql(
          '{ usage(first: 1) { edges { node { amount model { id kind price { input } } apiKey { name last4 } } } } }',
        )
        expect(usage.data.usage.edges[0].node).toMatchObject({
          model: { price: { input: '0.01' } },
          apiKey: { last4: caller.key.slice(-4) },
        })
      })

      it('an agent answers from the passages in one call, as a chat model and followed live, for what its receipt says', async () => {
        const body = { code: 'guide', name: 'Guide', model: 'extractive', collection_ids: [collection.id] }
        const agent = (await caller.rest('POST', '/v1/agents', body)).body
        const run = (await caller.rest('POST', `/v1/agents/${agent.id}/runs`, { input: 'كم يوماً مدة الإجازة السنوية؟' })).body
        expect(run).toMatchObject({ status: 'completed', citations: [{ mark: 1, file: { file_name: 'دليل.md' } }] })
        expect(run.output_text).toMatch(/ثلاثون يوماً.*\[#1\]/)
        const records = (await caller.rest('GET', '/v1/usage?limit=100')).body.data.filter(({ request_id }: Json) => request_id === run.id)
        expect(records.map(({ operation }: Json) => operation).toSorted()).toEqual(['chat_completion', 'embedding'])
        expect(records.reduce((sum: bigint, { amount_usd }: Json) => sum + nano(amount_usd), 0n)).toBe(nano(run.cost_usd))
        const question = 'How much are meals reimbursed a day?'
        const chat = await caller.openai.chat.completions.create({ model: 'agent/guide', messages: [{ role: 'user', content: question }] })
        expect(chat.choices[0]!.message.content).toMatch(/60 dollars.*\[#\d\]/)
        const client = caller.socket()
        const query = `subscription ($input: RunAgentInput!) { agentRun(input: $input) { type search { collection { name } } run { outputText agent { collections { name } } } } }`
        const events: Json[] = []
        for await (const { data, errors } of client.iterate<Json>({
          query,
          variables: { input: { agentId: agent.id, input: question } },
        })) {
          expect(errors).toBeUndefined()
          events.push(data.agentRun)
        }
        await client.dispose()
        const { name } = (await caller.graphql('query ($id: ID!) { collection(id: $id) { name } }', { id: collection.id })).data.collection
        expect(events.find(({ type }) => type === 'SEARCH')).toMatchObject({ search: { collection: { name } } })
        const last = { outputText: chat.choices[0]!.message.content, agent: { collections: [{ name }] } }
        expect(events.at(-1)).toMatchObject({ type: 'DONE', run: last })
        const contents =
          'query ($id: ID!) { collection(id: $id) { contents { documentCount languages { language } titles { title fileName } headings } } }'
        expect((await caller.graphql(contents, { id: collection.id })).data.collection.contents).toMatchObject({
          documentCount: 2,
          headings: expect.arrayContaining(['الإجازات', 'Expenses']),
          titles: expect.arrayContaining([{ title: 'Travel policy', fileName: 'travel.md' }]),
        })
        await balancedWallet(caller)
      })

      it('a workflow goes through its nodes, is followed from any event, and costs what its receipt says', async () => {
        const nodes = [
          { id: 'find', type: 'search', collection_id: collection.id, query: '{{ inputs.question }}', limit: 2 },
          {
            id: 'ask',
            type: 'chat',
            model: 'extractive',
            messages: [{ role: 'user', content: '{{ nodes.find.text }}\n\n{{ inputs.question }}' }],
          },
          { id: 'end', type: 'template', template: '{{ nodes.ask.text | upper }}' },
        ]
        const definition = { nodes, output: { $ref: 'nodes.end.text' } }
        const workflow = (await caller.rest('POST', '/v1/workflows', { code: 'shout', name: 'Shout', definition })).body
        const client = caller.socket()
        const follow = async (query: string, variables: Record<string, unknown>) => {
          const events: Json[] = []
          for await (const { data, errors } of client.iterate<Json>({ query, variables })) {
            expect(errors).toBeUndefined()
            events.push(Object.values(data!)[0])
          }
          return events
        }
        const inputs = { question: 'How much are meals reimbursed a day?' }
        const FIELDS = '{ type cursor nodeId state run { id status output cost nodes { id cost } workflow { code } } }'
        const started = await follow(`subscription ($input: RunWorkflowInput!) { workflowRun(input: $input) ${FIELDS} }`, {
          input: { workflowId: 'workflow/shout', inputs },
        })
        expect(started.map(({ type, nodeId }) => [type, nodeId])).toEqual([
          ['RUN_STARTED', null],
          ...['find', 'ask', 'end'].flatMap((id) => [
            ['NODE_STARTED', id],
            ['NODE_ENDED', id],
          ]),
          ['DONE', null],
        ])
        const { run } = started.at(-1)!
        expect(run).toMatchObject({ status: 'COMPLETED', output: expect.stringContaining('60 DOLLARS'), workflow: { code: 'shout' } })
        const again = await follow(`subscription ($id: ID!) { workflowRunEvents(runId: $id, after: "3") ${FIELDS} }`, { id: run.id })
        expect(again).toEqual(started.slice(3))
        await client.dispose()
        const records = (await caller.rest('GET', '/v1/usage?limit=100')).body.data.filter(({ request_id }: Json) => request_id === run.id)
        expect(records.map(({ operation }: Json) => operation).toSorted()).toEqual(['chat_completion', 'embedding'])
        expect(records.reduce((sum: bigint, { amount_usd }: Json) => sum + nano(amount_usd), 0n)).toBe(nano(run.cost))
        expect(run.nodes.reduce((sum: bigint, { cost }: Json) => sum + nano(cost), 0n)).toBe(nano(run.cost))
        const { body: second } = await caller.rest('POST', `/v1/workflows/${workflow.id}/runs`, { inputs, wait: true })
        expect(second).toMatchObject({ status: 'completed', output: run.output, cost_usd: run.cost })
        await balancedWallet(caller)
      })

      it('gives the bytes of a file back', async () => {
        const { body } = await caller.rest('GET', '/v1/files?limit=1')
        const content = await fetch(`${service.rest}/v1/files/${body.data[0].id}/content`, {
          headers: { authorization: `Bearer ${caller.key}` },
        })
        expect([ARABIC, ENGLISH]).toContain(await content.text())
      })
    })

    describe('the chat protocol', () => {
      it('lists models, and embeds in base64 and floats alike', async () => {
        const caller = await newOrganization(operator, service)
        const ids = (await caller.openai.models.list()).data.map((model) => model.id)
        expect(ids).toEqual(expect.arrayContaining(['e5-small-ar-en', 'extractive', 'mock-chat']))
        const input = ['السلام عليكم', 'peace be upon you']
        const asked = { model: 'e5-small-ar-en', input }
        const packed = await caller.openai.embeddings.create(asked)
        const floats = await caller.openai.embeddings.create({ ...asked, encoding_format: 'float' })
        expect(packed.data.map((item) => item.embedding.length)).toEqual([384, 384])
        for (const [i, item] of floats.data.entries())
          for (const [j, value] of item.embedding.entries()) expect(packed.data[i]!.embedding[j]).toBeCloseTo(value, 6)
        const short = await caller.openai.embeddings.create({ ...asked, dimensions: 64 })
        expect(Math.hypot(...short.data[0]!.embedding)).toBeCloseTo(1, 5)
        expect(short.data[0]!.embedding).toHaveLength(64)
      })

      it('passes a chat through whole, and charges what the vendor reports', async () => {
        const caller = await newOrganization(operator, service)
        const answer = await caller.openai.chat.completions.create(chat('hi', { unknown_field: { kept: [1] } }) as never)
        expect(answer).toMatchObject({ object: 'chat.completion', model: 'mock-chat', usage: MOCK_USAGE, vendor_extra: { kept: true } })
        expect(mock.requests.at(-1)).toMatchObject({ unknown_field: { kept: [1] } })
        const { body } = await caller.rest('GET', '/v1/usage')
        expect(body.data[0]).toMatchObject({
          input_tokens: 16,
          cached_input_tokens: 4,
          output_tokens: 5,
          amount_usd: '0.000028',
          source: 'provider',
        })
        expect((await balancedWallet(caller)).balance_usd).toBe('9.999972')
      })

      it('streams, with usage for who asks for it only', async () => {
        const caller = await newOrganization(operator, service)
        for (const include of [false, true]) {
          const stream = await caller.openai.chat.completions.create({
            ...chat('hi'),
            stream: true,
            ...(include && { stream_options: { include_usage: true } }),
          })
          const chunks = []
          for await (const chunk of stream) chunks.push(chunk)
          expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('Hello from the mock مرحبا')
          expect(chunks.filter((chunk) => chunk.usage)).toHaveLength(include ? 1 : 0)
        }
        expect((await balancedWallet(caller)).balance_usd).toBe('9.999944')
      })

      it('ends the vendor when its client leaves, and charges what was produced', async () => {
        const caller = await newOrganization(operator, service)
        const { abandoned } = mock
        const stream = await caller.openai.chat.completions.create({ ...chat('please hang'), stream: true })
        for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break
        await eventually(() => mock.abandoned === abandoned + 1)
        await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0')
        const { body } = await caller.rest('GET', '/v1/usage')
        expect(body.data[0]).toMatchObject({ source: 'counted', output_tokens: expect.any(Number) })
        await balancedWallet(caller)
      })

      it('speaks the Responses API too, at the same price', async () => {
        const caller = await newOrganization(operator, service)
        const request = { model: 'mock-chat', input: 'hi' }
        const whole = await caller.openai.responses.create(request)
        const events: ResponseStreamEvent[] = []
        for await (const event of await caller.openai.responses.create({ ...request, stream: true })) events.push(event)
        for (const { output_text, output, usage } of [whole, responseOf(events)]) {
          expect(output_text ?? JSON.stringify(output)).toContain('Hello from the mock مرحبا')
          expect(usage).toMatchObject({ input_tokens: 20, output_tokens: 5, total_tokens: 25 })
        }
        expect((await balancedWallet(caller)).balance_usd).toBe('9.999944')
      })

      it('streams what is said in the largest file there may be', async () => {
        const caller = await newOrganization(operator, service)
        const file = await toFile(wav(LONGEST_SOUND_SECONDS), 'a day.wav')
        const deltas = []
        for await (const event of await caller.openai.audio.transcriptions.create({ model: 'mock-speech', file, stream: true }))
          if (event.type === 'transcript.text.delta') deltas.push(event.delta)
        expect(deltas).toEqual(TRANSCRIPT_DELTAS)
        const { data } = (await caller.rest('GET', '/v1/usage?limit=1')).body
        expect(data).toMatchObject([{ operation: 'transcription', audio_seconds: LONGEST_SOUND_SECONDS }])
        await balancedWallet(caller)
      })

      it('tells of a cut stream in the stream, without [DONE]', async () => {
        const caller = await newOrganization(operator, service)
        const response = await fetch(`${service.rest}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' },
          body: JSON.stringify(chat('please cut', { stream: true })),
        })
        const text = await response.text()
        expect([response.status, response.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/event-stream')])
        expect(text).toContain('Hello')
        expect(text).toContain('"code":"engine_error"')
        expect(text).not.toContain('[DONE]')
        await balancedWallet(caller)
      })

      it('carries typed fields beside the protocol object in GraphQL, answered and streamed', async () => {
        const caller = await newOrganization(operator, service)
        const request = chat('hi')
        const { data, errors } = await caller.graphql(
          `mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) {
             id text finishReason cost response usage { promptTokens cachedPromptTokens completionTokens } model { id price { output } } } }`,
          { input: { request } },
        )
        expect(errors).toBeUndefined()
        expect(data.createChatCompletion).toMatchObject({
          text: 'Hello from the mock مرحبا',
          finishReason: 'STOP',
          cost: '0.000028',
          response: { vendor_extra: { kept: true } },
          usage: { promptTokens: 20, cachedPromptTokens: 4, completionTokens: 5 },
          model: { id: 'mock-chat', price: { output: '2' } },
        })
        const client = caller.socket()
        const events: Json[] = []
        for await (const event of client.iterate<Json>({
          query:
            'subscription ($input: ChatCompletionInput!) { chatCompletion(input: $input) { textDelta finishReason usage { totalTokens } cost } }',
          variables: { input: { request } },
        })) {
          expect(event.errors).toBeUndefined()
          events.push(event.data.chatCompletion)
        }
        await client.dispose()
        expect(events.map((event) => event.textDelta).join('')).toBe('Hello from the mock مرحبا')
        expect(events.at(-1)).toMatchObject({ usage: { totalTokens: 25 }, cost: '0.000028' })
        await balancedWallet(caller)
      })
    })

    it('shows an ingestion as it happens', async () => {
      const caller = await newOrganization(operator, service)
      const collection = await newCollection(caller)
      const client = caller.socket()
      const seen: string[] = []
      const events = client.iterate<Json>({
        query:
          'subscription ($id: ID) { documentUpdated(collectionId: $id) { document { id status stage progress { done total } collection { embeddingModel { price { input } } } } } }',
        variables: { id: collection.id },
      })
      const reading = (async () => {
        for await (const { data, errors } of events) {
          expect(errors).toBeUndefined()
          const { status, stage } = data.documentUpdated.document
          seen.push(stage ?? status)
          if (status === 'READY') break
        }
      })()
      // The subscription is open once the socket has been acknowledged and the operation sent; a document after that is seen from its start.
      await new Promise((resolve) => setTimeout(resolve, 300))
      await addDocument(caller, collection.id, 'a.txt', 'A short text about rivers.')
      await reading
      await client.dispose()
      expect(seen).toEqual(expect.arrayContaining(['QUEUED', 'PARSING', 'CHUNKING', 'EMBEDDING', 'INDEXING', 'READY']))
    })

    it('sends signed webhooks of documents, runs, calls and money, those of a subject in order, and none to strangers', async () => {
      const caller = await newOrganization(operator, service)
      const stranger = await newOrganization(operator, service)
      const types = ['document.updated', 'document.deleted', 'agent_run.completed', 'usage.recorded', 'wallet.changed']
      const endpointOf = async (owner: Caller) => {
        const place = receiver.at(`/${Math.random()}`)
        const { status, body } = await owner.rest('POST', '/v1/webhooks', { url: place.url, event_types: types })
        expect(status).toBe(201)
        place.secret = body.secret
        return place
      }
      const [place, elsewhere] = [await endpointOf(caller), await endpointOf(stranger)]
      const collection = await newCollection(caller)
      const document = await addDocument(caller, collection.id, 'a.txt', 'A short text about rivers.')
      expect((await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${document.id}`)).status).toBe(200)
      const of = (type: string) => place.taken.filter((message) => message.type === type)
      await eventually(() => of('document.deleted').length === 1 && of('usage.recorded').length > 0)
      // Queued, parsing, chunking, embedding twice, indexing, ready.
      const cursors = place.taken.filter(({ data }) => data.document_id === document.id).map(({ data }) => data.cursor)
      expect(cursors).toEqual(['1', '2', '3', '4', '5', '6', '7', '8'])
      expect(of('document.updated').at(-1)!.data).toMatchObject({ status: 'ready', stage: null, error_code: null, chunk_count: 1 })
      const { data: usage } = (await caller.rest('GET', '/v1/usage')).body
      await eventually(() => of('usage.recorded').length === usage.length)
      expect(new Set(of('usage.recorded').map(({ data }) => data.usage_record_id))).toEqual(new Set(usage.map(({ id }: Json) => id)))

      const CREATE = 'mutation ($input: CreateAgentInput!) { createAgent(input: $input) { agent { id } } }'
      const { data, errors } = await caller.graphql(CREATE, { input: { code: 'told', name: 'Told', model: 'mock-chat' } })
      expect(errors).toBeUndefined()
      const run = await caller.graphql('mutation ($input: RunAgentInput!) { runAgent(input: $input) { id cost } }', {
        input: { agentId: data.createAgent.agent.id, input: 'hi' },
      })
      expect(run.errors).toBeUndefined()
      await eventually(() => of('agent_run.completed').length === 1)
      expect(of('agent_run.completed')[0]!.data).toMatchObject({
        run_id: run.data.runAgent.id,
        agent_id: data.createAgent.agent.id,
        status: 'completed',
        cost_usd: run.data.runAgent.cost,
      })
      expect([place.faults, elsewhere.faults]).toEqual([[], []])
      expect(elsewhere.received.filter(({ type }) => type !== 'wallet.changed')).toEqual([])
    })

    it('goes on with the events of documents after a cursor, without loss or repeat', async () => {
      const caller = await newOrganization(operator, service)
      const collection = await newCollection(caller)
      const EVENTS =
        'subscription ($after: Cursor) { documentUpdated(after: $after) { cursor documentId at document { id status stage progress { done } } } }'
      const take = async (after: string | null, isLast: (event: Json) => boolean): Promise<Json[]> => {
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
      const all = await take('0', (event) => event.document === null && event.cursor === '8')
      expect(all.map(({ cursor }) => Number(cursor))).toEqual(all.map((_, i) => i + 1))
      expect(all.every(({ documentId }) => documentId === document.id)).toBe(true)
      for (const seen of [1, 4, all.length - 1]) {
        const rest = await take(String(seen), (event) => event.cursor === all.at(-1)!.cursor)
        expect(rest).toEqual(all.slice(seen))
      }
      const client = caller.socket()
      const { value } = await client.iterate<Json>({ query: EVENTS, variables: { after: 'x' } }).next()
      expect(value.errors[0].extensions).toMatchObject({ code: 'INVALID_REQUEST', param: 'after' })
      await client.dispose()
    })

    describe('keys', () => {
      it('a limited key sees and calls its models only', async () => {
        const admin = await newOrganization(operator, service)
        const { status, body } = await admin.rest('POST', '/v1/keys', {
          name: 'limited',
          scopes: ['inference'],
          model_allowlist: ['extractive'],
        })
        expect(status).toBe(201)
        const limited = callerOf(service, body.key)
        expect((await limited.openai.models.list()).data.map((model) => model.id)).toEqual(['extractive'])
        const refused = await limited.rest('POST', '/v1/chat/completions', chat('hi'))
        const unknown = await limited.rest('POST', '/v1/chat/completions', chat('hi', { model: 'no-such-model' }))
        expect([refused.status, refused.body.error.code, refused.body.error.param]).toEqual([404, 'model_not_found', 'model'])
        expect(unknown.body.error.message.replace('no-such-model', 'mock-chat')).toBe(refused.body.error.message)
        expect(
          (await limited.rest('POST', '/v1/collections', { collection_code: 'a', collection_name: 'a', embedding_model: 'e5-small-ar-en' }))
            .body.error.code,
        ).toBe('permission_denied')
      })

      it('a rotated or revoked key is dead within 5 s, on open sockets too', async () => {
        const admin = await newOrganization(operator, service)
        const { body } = await admin.rest('POST', '/v1/keys', { name: 'short-lived' })
        const victim = callerOf(service, body.key)
        const socket = new WebSocket(service.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws')
        await once(socket, 'open')
        socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${body.key}` } }))
        const closed = once(socket, 'close') as Promise<[{ code: number }]>
        expect((await victim.rest('GET', '/v1/models')).status).toBe(200)
        expect((await admin.rest('DELETE', `/v1/keys/${body.id}`)).body).toMatchObject({ id: body.id, deleted: true })
        await eventually(async () => (await victim.rest('GET', '/v1/models')).status === 401, 6_000)
        expect((await closed)[0].code).toBe(4403)
      })

      it('no key, a malformed one and an unknown one get one and the same 401', async () => {
        const texts = await Promise.all(
          ['', 'nonsense', `kis_live_${'a'.repeat(36)}`].map(async (key) => {
            const { status, body } = await callerOf(service, key).rest('GET', '/v1/models')
            expect(status).toBe(401)
            return JSON.stringify(body)
          }),
        )
        expect(new Set(texts).size).toBe(1)
      })
    })

    it('a residency policy keeps every byte away from the cloud', async () => {
      const caller = await newOrganization(operator, service)
      expect((await caller.rest('PATCH', '/v1/organization', { residency_policy: 'local_only' })).status).toBe(200)
      await eventually(async () => !(await caller.openai.models.list()).data.some((model) => model.id === 'mock-chat'), 6_000)
      const { chats, embeddings } = mock
      const refusals = [
        await caller.rest('POST', '/v1/chat/completions', chat('hi')),
        await caller.rest('POST', '/v1/chat/completions', chat('hi', { stream: true })),
        await caller.rest('POST', '/v1/responses', { model: 'mock-chat', input: 'hi' }),
        await caller.rest('POST', '/v1/responses', { model: 'mock-chat', input: 'hi', stream: true }),
        await caller.rest('POST', '/v1/embeddings', { model: 'mock-embed', input: 'hi' }),
        await caller.rest('POST', '/v1/collections', { collection_code: 'c', collection_name: 'c', embedding_model: 'mock-embed' }),
      ]
      expect(refusals.map(({ status, body }) => [status, body.error.code])).toEqual(Array(6).fill([403, 'residency_policy_violation']))
      expect([mock.chats, mock.embeddings]).toEqual([chats, embeddings])
      await balancedWallet(caller)
    })

    describe('money', () => {
      it('200 parallel chats on funds for 7: exactly 7 are answered, and the vendor hears of no other', async () => {
        // What one such call holds is seen while the vendor keeps it waiting.
        const request = chat('please wait at the gate', { max_completion_tokens: 100 })
        const probe = await newOrganization(operator, service)
        const probing = probe.rest('POST', '/v1/chat/completions', request)
        const held = async () => nano((await probe.rest('GET', '/v1/wallet')).body.held_usd)
        await eventually(async () => (await held()) > 0n)
        const funds = 7n * (await held())
        const creditUsd = `${funds / 1_000_000_000n}.${(funds % 1_000_000_000n).toString().padStart(9, '0')}`
        const caller = await newOrganization(operator, service, { creditUsd })
        const { chats } = mock
        let ended = 0
        const calls = Array.from({ length: 200 }, () => caller.rest('POST', '/v1/chat/completions', request).finally(() => ended++))
        await eventually(() => ended >= 193, 30_000)
        mock.openGate()
        const answers = await Promise.all(calls)
        await probing
        const refused = answers.filter(({ status }) => status === 429)
        expect([answers.filter(({ status }) => status === 200).length, refused.length]).toEqual([7, 193])
        expect(
          refused.every(({ body, headers }) => body.error.code === 'insufficient_quota' && headers.get('x-should-retry') === 'false'),
        ).toBe(true)
        expect(mock.chats - chats).toBe(7)
        const wallet = await balancedWallet(caller)
        expect(nano(wallet.balance_usd)).toBe(funds - 7n * 28_000n)
      }, 60_000)

      it('a wallet at zero is refused, and answers again after a top-up', async () => {
        const caller = await newOrganization(operator, service, { creditUsd: '0' })
        const refused = await caller.rest('POST', '/v1/chat/completions', chat('hi'))
        expect([refused.status, refused.body.error]).toEqual([
          429,
          expect.objectContaining({ code: 'insufficient_quota', type: 'insufficient_quota' }),
        ])
        await expect(caller.openai.chat.completions.create(chat('hi'))).rejects.toBeInstanceOf(OpenAI.RateLimitError)
        const topUp = { amount_usd: '1', reference: 'invoice 7' }
        const first = await operator.rest('POST', `/v1/organizations/${caller.organizationId}/top-ups`, topUp)
        const again = await operator.rest('POST', `/v1/organizations/${caller.organizationId}/top-ups`, topUp)
        expect(again.body.id).toBe(first.body.id)
        expect((await caller.rest('POST', '/v1/chat/completions', chat('hi'))).status).toBe(200)
        expect((await balancedWallet(caller)).balance_usd).toBe('0.999972')
      })

      it.each([500, 429, 401, 400])('a vendor that answers %i costs nothing', async (status) => {
        const caller = await newOrganization(operator, service)
        mock.failWith(status)
        const plain = await caller.rest('POST', '/v1/chat/completions', chat('hi'))
        const streamed = await caller.rest('POST', '/v1/chat/completions', chat('hi', { stream: true }))
        mock.failWith(null)
        const expected = {
          500: [502, 'engine_error'],
          429: [429, 'rate_limit_exceeded'],
          401: [503, 'engine_unavailable'],
          400: [400, 'invalid_request'],
        }[status]!
        for (const { status: got, body } of [plain, streamed]) expect([got, body.error.code]).toEqual(expected)
        expect((await balancedWallet(caller)).balance_usd).toBe('10')
        expect((await caller.rest('POST', '/v1/chat/completions', chat('hi'))).status).toBe(200)
      })
    })

    describe('bad input', () => {
      let caller: Caller
      let collection: Json
      beforeAll(async () => {
        caller = await newOrganization(operator, service)
        collection = await newCollection(caller)
      })

      it.each<[string, string, string, unknown, number, string, string | null]>([
        ['malformed JSON', 'POST', '/v1/chat/completions', '{"model":', 400, 'invalid_request', null],
        ['no model', 'POST', '/v1/chat/completions', { messages: [] }, 400, 'missing_required_parameter', 'model'],
        [
          'messages of the wrong type',
          'POST',
          '/v1/chat/completions',
          { model: 'mock-chat', messages: 'hi' },
          400,
          'invalid_type',
          'messages',
        ],
        ['no messages', 'POST', '/v1/chat/completions', { model: 'mock-chat', messages: [] }, 400, 'invalid_request', 'messages'],
        [
          'n too large',
          'POST',
          '/v1/chat/completions',
          { model: 'mock-chat', messages: [{ role: 'user', content: 'a' }], n: 500 },
          400,
          'integer_above_max_value',
          'n',
        ],
        ['an unknown model', 'POST', '/v1/embeddings', { model: 'nope', input: 'a' }, 404, 'model_not_found', 'model'],
        ['an empty input', 'POST', '/v1/embeddings', { model: 'e5-small-ar-en', input: '' }, 400, 'invalid_request', 'input'],
        ['a chat model that should embed', 'POST', '/v1/embeddings', { model: 'mock-chat', input: 'a' }, 404, 'model_not_found', 'model'],
        [
          'no collection code',
          'POST',
          '/v1/collections',
          { collection_name: 'a', embedding_model: 'e5-small-ar-en' },
          400,
          'missing_required_parameter',
          'collection_code',
        ],
        [
          'an unknown embedding model',
          'POST',
          '/v1/collections',
          { collection_code: 'x', collection_name: 'a', embedding_model: 'nope' },
          404,
          'model_not_found',
          'embedding_model',
        ],
        [
          'a name of the wrong type',
          'POST',
          '/v1/collections',
          { collection_code: 'x', collection_name: 5, embedding_model: 'e5-small-ar-en' },
          400,
          'invalid_type',
          'collection_name',
        ],
        [
          'base64 that is not',
          'POST',
          '/v1/files',
          { file_name: 'a.txt', content_base64: '$$$$' },
          400,
          'invalid_request',
          'content_base64',
        ],
        [
          'a file name with a path',
          'POST',
          '/v1/files',
          { file_name: '../a.txt', content_base64: 'YQ==' },
          400,
          'invalid_request',
          'file_name',
        ],
        ['an unknown file', 'POST', '/v1/collections/:id/documents', { file_id: 'file_none' }, 404, 'not_found', 'file_id'],
        ['an unknown collection', 'POST', '/v1/collections/col_none/search', { query: 'a' }, 404, 'not_found', null],
        ['an empty query', 'POST', '/v1/collections/:id/search', { query: ' ' }, 400, 'invalid_request', 'query'],
        ['a limit too large', 'POST', '/v1/collections/:id/search', { query: 'a', limit: 51 }, 400, 'integer_above_max_value', 'limit'],
        [
          'a filter that is none',
          'POST',
          '/v1/collections/:id/search',
          { query: 'a', filter: { op: 'like', field: 'page', value: 1 } },
          400,
          'unsupported_value',
          'filter.op',
        ],
        ['an unknown route', 'GET', '/v1/nothing', undefined, 404, 'unknown_url', null],
        ['a wrong verb', 'PUT', '/v1/models', {}, 405, 'method_not_allowed', null],
        ['image generation', 'POST', '/v1/images/generations', {}, 404, 'not_offered', null],
      ])('%s', async (_, method, path, body, status, code, param) => {
        const answer = await caller.rest(method, path.replace(':id', collection.id), body)
        expect([answer.status, answer.body.error?.code, answer.body.error?.param]).toEqual([status, code, param])
        expect(Object.keys(answer.body.error).sort()).toEqual(['code', 'message', 'param', 'type'])
        expect(answer.headers.get('x-request-id')).toBeTruthy()
        expect(answer.headers.get('x-should-retry')).toMatch(/true|false/)
      })

      it('leaves nothing behind', async () => {
        expect((await caller.rest('GET', '/v1/files')).body.data).toEqual([])
        expect((await caller.rest('GET', `/v1/collections/${collection.id}/documents`)).body.data).toEqual([])
        expect((await balancedWallet(caller)).balance_usd).toBe('10')
      })

      it.each(['nan', 'narrow', 'few', '500', '429'])(
        'an embedding engine that gives %s fails the document, and nothing of it is kept or charged',
        async (script) => {
          const own = await newCollection(caller, `mock-embed-${script}`)
          const { balance_usd } = await balancedWallet(caller)
          const document = await addDocument(caller, own.id, 'a.txt', `Some text for ${script}.`)
          expect(document).toMatchObject({ status: 'failed', error: { code: 'embedding_failed' }, chunk_count: 0 })
          expect((await caller.rest('GET', '/v1/organization')).body.quota.vectors.used).toBe(0)
          expect((await balancedWallet(caller)).balance_usd).toBe(balance_usd)
        },
      )

      it('files of the wrong kind fail with their reason', async () => {
        const cases: [string, string | Uint8Array, string][] = [
          ['empty.txt', ' \n ', 'empty'],
          ['broken.docx', Buffer.from('PK\x03\x04 not really'), 'corrupt'],
          ['program.bin', Buffer.from([0, 1, 2, 3, 255, 254, 0, 0, 7]), 'unsupported_type'],
        ]
        for (const [fileName, content, code] of cases) {
          expect(await addDocument(caller, collection.id, fileName, content)).toMatchObject({ status: 'failed', error: { code } })
        }
      })

      it('a quota one byte short refuses the file, and one vector short fails the document; nothing is kept', async () => {
        const small = await newOrganization(operator, service, { plan: 'tiny' })
        const upload = (name: string, bytes: number) =>
          small.rest('POST', '/v1/files', { file_name: name, content_base64: base64('a'.repeat(bytes)) })
        expect((await upload('big.txt', 2_001)).body.error.code).toBe('payload_too_large')
        const first = await upload('1000.txt', 1_000)
        expect(first.status).toBe(201)
        const refused = await upload('1.txt', 1)
        expect([refused.status, refused.body.error.code]).toEqual([403, 'storage_quota_exceeded'])
        expect((await upload('again.txt', 1_000)).status).toBe(201)
        expect((await small.rest('GET', '/v1/organization')).body.quota.storage_bytes).toEqual({ used: 1_000, limit: 1_000 })
        for (const { id } of (await small.rest('GET', '/v1/files')).body.data)
          expect((await small.rest('DELETE', `/v1/files/${id}`)).status).toBe(200)
        expect((await small.rest('GET', '/v1/organization')).body.quota.storage_bytes.used).toBe(0)
        const own = await newCollection(small)
        const sections = Array.from({ length: 4 }, (_, i) => `# Section ${i}\n\n${`Sentence ${i} about something else. `.repeat(6)}`).join(
          '\n\n',
        )
        const document = await addDocument(small, own.id, 'four.md', sections.slice(0, 1_000))
        if (document.status === 'failed') expect(document.error.code).toBe('storage_quota_exceeded')
        else expect(document.chunk_count).toBeLessThanOrEqual(3)
      })

      it('internal operations cannot be reached by anybody', async () => {
        for (const query of [
          'mutation { voidHold(id: "hold_x") { id } }',
          'query { principalOfApiKey(apiKey: "x") { organizationId } }',
          'mutation { embedQuery(modelId: "e5-small-ar-en", text: "a") { vector } }',
          'query { _entities(representations: []) { __typename } }',
        ]) {
          const { errors, data } = await operator.graphql(query)
          expect([data ?? null, errors?.length]).toEqual([null, 1])
        }
      })
    })

    it('attaching twice gives one document; an attached file is in use; a deleted document is not found', async () => {
      const caller = await newOrganization(operator, service)
      const collection = await newCollection(caller)
      const document = await addDocument(caller, collection.id, 'tea.txt', 'Green tea is brewed at eighty degrees.')
      const again = await caller.rest('POST', `/v1/collections/${collection.id}/documents`, { file_id: document.file_id })
      expect([again.status, again.body.id]).toEqual([200, document.id])
      expect((await caller.rest('DELETE', `/v1/files/${document.file_id}`)).body.error.code).toBe('in_use')
      const search = async () => (await caller.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'green tea' })).body.data
      expect(await search()).toHaveLength(1)
      expect((await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${document.id}`)).body).toMatchObject({
        deleted: true,
      })
      expect(await search()).toEqual([])
      expect((await caller.rest('DELETE', `/v1/files/${document.file_id}`)).status).toBe(200)
      const { quota } = (await caller.rest('GET', '/v1/organization')).body
      expect([quota.vectors.used, quota.storage_bytes.used]).toEqual([0, 0])
    })

    it('a failed document starts again by retry', async () => {
      const caller = await newOrganization(operator, service, { creditUsd: '0' })
      const collection = await newCollection(caller)
      const document = await addDocument(caller, collection.id, 'a.txt', 'Something to embed.')
      expect(document).toMatchObject({ status: 'failed', error: { code: 'insufficient_quota' } })
      await operator.rest('POST', `/v1/organizations/${caller.organizationId}/top-ups`, { amount_usd: '1', reference: 'r' })
      expect((await caller.rest('POST', `/v1/collections/${collection.id}/documents/${document.id}/retry`)).status).toBe(200)
      expect(await settled(caller, collection.id, document.id)).toMatchObject({ status: 'ready', error: null, attempts: 2 })
      await balancedWallet(caller)
    })

    it('nothing of one organization is visible to another', async () => {
      const [ours, theirs] = await Promise.all([newOrganization(operator, service), newOrganization(operator, service)])
      const secret = 'The canary sings at midnight.'
      const collection = await newCollection(ours, 'e5-small-ar-en', 'same')
      const own = await newCollection(theirs, 'e5-small-ar-en', 'same')
      const document = await addDocument(ours, collection.id, 'canary.txt', secret)
      await addDocument(theirs, own.id, 'other.txt', 'The sparrow sleeps at noon.')
      const chunk = (await ours.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'canary' })).body.data[0].chunk_id
      const keyId = (await ours.rest('GET', '/v1/keys')).body.data[0].id
      const attempts: [string, string, unknown?][] = [
        ['GET', `/v1/collections/${collection.id}`],
        ['PATCH', `/v1/collections/${collection.id}`, { collection_name: 'taken' }],
        ['DELETE', `/v1/collections/${collection.id}`],
        ['POST', `/v1/collections/${collection.id}/search`, { query: 'canary' }],
        ['GET', `/v1/collections/${collection.id}/documents`],
        ['GET', `/v1/collections/${collection.id}/documents/${document.id}`],
        ['DELETE', `/v1/collections/${collection.id}/documents/${document.id}`],
        ['POST', `/v1/collections/${collection.id}/documents/${document.id}/retry`],
        ['GET', `/v1/collections/${own.id}/documents/${document.id}`],
        ['POST', `/v1/collections/${own.id}/documents`, { file_id: document.file_id }],
        ['GET', `/v1/files/${document.file_id}`],
        ['GET', `/v1/files/${document.file_id}/content`],
        ['DELETE', `/v1/files/${document.file_id}`],
        ['GET', `/v1/keys/${keyId}`],
        ['PATCH', `/v1/keys/${keyId}`, { name: 'taken' }],
        ['POST', `/v1/keys/${keyId}/rotate`],
        ['DELETE', `/v1/keys/${keyId}`],
      ]
      for (const [method, path, body] of attempts) {
        const answer = await theirs.rest(method, path, body)
        expect([method, path, answer.status, answer.body.error?.code]).toEqual([method, path, 404, 'not_found'])
      }
      const operatorsOnly: [string, unknown][] = [
        ['/v1/organizations', { name: 'x' }],
        [`/v1/organizations/${ours.organizationId}/top-ups`, { amount_usd: '1', reference: 'x' }],
      ]
      for (const [path, body] of operatorsOnly) expect((await theirs.rest('POST', path, body)).body.error.code).toBe('permission_denied')
      const lists = await Promise.all(
        ['/v1/collections', '/v1/files', '/v1/keys', '/v1/usage', '/v1/wallet/entries'].map((path) => theirs.rest('GET', path)),
      )
      const everything = JSON.stringify(lists.map(({ body }) => body))
      for (const id of [collection.id, document.id, document.file_id, keyId, ours.organizationId]) expect(everything).not.toContain(id)
      const { data } = await theirs.graphql(
        'query ($c: ID!, $d: ID!, $f: ID!, $k: ID!) { collection(id: $c) { id } document(id: $d) { id } file(id: $f) { id } apiKey(id: $k) { id } }',
        { c: collection.id, d: document.id, f: document.file_id, k: keyId },
      )
      expect(data).toEqual({ collection: null, document: null, file: null, apiKey: null })
      expect(JSON.stringify((await theirs.rest('POST', `/v1/collections/${own.id}/search`, { query: secret })).body)).not.toContain(
        'canary',
      )
      expect(chunk).toBeTruthy()

      const client = theirs.socket()
      const events = client.iterate<Json>({ query: 'subscription { documentUpdated { document { id } } }' })
      const first = events.next()
      await new Promise((resolve) => setTimeout(resolve, 300))
      await addDocument(ours, collection.id, 'second.txt', 'Another canary.')
      const mine = await addDocument(theirs, own.id, 'third.txt', 'Another sparrow.')
      expect((await first).value.data.documentUpdated.document.id).toBe(mine.id)
      await client.dispose()
    })

    it('deleting a collection takes its documents along and leaves the files', async () => {
      const caller = await newOrganization(operator, service)
      const collection = await newCollection(caller, 'e5-small-ar-en', 'gone')
      const document = await addDocument(caller, collection.id, 'a.txt', 'A text that stays as a file.')
      expect((await caller.rest('DELETE', `/v1/collections/${collection.id}`)).status).toBe(200)
      expect((await caller.rest('GET', `/v1/collections/${collection.id}`)).status).toBe(404)
      expect((await caller.rest('GET', `/v1/files/${document.file_id}`)).status).toBe(200)
      expect((await caller.rest('GET', '/v1/organization')).body.quota.vectors.used).toBe(0)
      await newCollection(caller, 'e5-small-ar-en', 'gone')
      expect((await caller.rest('DELETE', `/v1/files/${document.file_id}`)).status).toBe(200)
    })
  })
}
