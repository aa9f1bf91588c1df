import { expect, it } from 'vitest'
import { balancedWallet, type Json, nano } from '../../../support/client.ts'
import type { Library } from './library.ts'

/** Agents that answer from the library. */
export function agents(library: Library): void {
  it('an agent answers from the chunks in one call, as a chat model and with live events, for the amount on its receipt', async () => {
    const { caller, collection } = library
    const body = { code: 'guide', name: 'Guide', model: 'extractive', collection_ids: [collection.id] }
    const agent = (await caller.rest('POST', '/v1/agents', body)).body
    const run = (await caller.rest('POST', `/v1/agents/${agent.id}/runs`, { input: 'كم يوماً مدة الإجازة السنوية؟' })).body
    expect(run).toMatchObject({ status: 'completed', citations: [{ mark: 1, file: { file_name: 'دليل.md' } }] })
    expect(run.output_text).toMatch(/ثلاثون يوماً.*\[#1\]/)
    const cited = await caller.graphql('query ($id: ID!) { agentRun(id: $id) { citations { text chunk { text pageBoxes { page } } } } }', {
      id: run.id,
    })
    const [{ text, chunk }] = cited.data.agentRun.citations
    expect(chunk).toEqual({ text, pageBoxes: null })
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
}
