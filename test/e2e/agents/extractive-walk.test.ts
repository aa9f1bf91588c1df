import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PHRASES } from '../../../subgraphs/inference/adapters/embedded/extractive/phrases.ts'
import { agentCatalog } from '../../support/agents.ts'
import { addDocument, type Caller, createCaller, type Json, newCollection, newOrganization } from '../../support/client.ts'
import { VendorCloud } from '../../support/engines/vendor-cloud.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const FILES = {
  'handbook.md': `# Employee handbook

## Leave
Every employee has thirty days of paid annual leave. Requests are handed in two weeks before the first day. Unused leave expires at the end of March.

## Travel
Flights under six hours are booked in economy class. Meals on business trips are reimbursed up to 60 dollars a day, against receipts.
`,
  // So many rows that most chunks are without the header.
  'sales.csv': [
    'Quarter,Revenue (USD),Orders,Returns',
    'Q1 2021,412000,8120,190',
    'Q2 2021,455500,8790,204',
    'Q4 2021,611900,11870,330',
    ...Array.from({ length: 120 }, (_, i) => `Week ${i + 1} of 2022,${30_000 + i * 137},${600 + i},${10 + (i % 9)}`),
  ].join('\n'),
  'متحف.md': `# متحف الميناء

## الزيارة
يفتح المتحف أبوابه من التاسعة صباحًا حتى السادسة مساءً، ويغلق يوم الاثنين. سعر التذكرة عشرون ريالًا للكبار وعشرة ريالات للطلاب.

## التاريخ
شُيّد المبنى عام 1931 مستودعًا للحبوب، ثم حوّلته البلدية إلى متحف عام 1987. تضم القاعة الأولى خرائط البحارة. وتعرض القاعة الثانية نماذج السفن الشراعية.
`,
  'فروع.csv': 'المدينة,عدد الفروع,عدد الموظفين,المدير\nالرياض,12,340,سعاد القحطاني\nجدة,7,198,فهد الزهراني\nالدمام,4,85,ليلى العمري\n',
}

describe('Conversation with an agent of the embedded model', () => {
  let cloud: VendorCloud
  let service: Service
  let caller: Caller
  let agent: Json
  beforeAll(async () => {
    cloud = await VendorCloud.start()
    service = await startEmbedded({ catalog: agentCatalog(cloud) })
    caller = await newOrganization(createCaller(service, service.key), service)
    const collection = await newCollection(caller)
    for (const [name, text] of Object.entries(FILES)) await addDocument(caller, collection.id, name, text)
    const body = { code: 'guide', name: 'Guide', model: 'extractive', collection_ids: [collection.id] }
    agent = (await caller.rest('POST', '/v1/agents', body)).body
  }, 90_000)
  afterAll(async () => {
    await service?.close()
    await cloud?.[Symbol.asyncDispose]()
  })

  const { ar, en } = PHRASES

  for (const { language, turns } of [
    {
      language: 'English',
      turns: [
        ['Hi there!', en.greeting],
        ['How many days of paid leave do I get?', '“Every employee has thirty days of paid annual leave.” [#1]'],
        ['and when does unused leave expire?', '“Unused leave expires at the end of March.” [#1]'],
        ['What was the revenue in Q2 2021?', 'Quarter: Q2 2021, Revenue (USD): 455500 [#1]'],
        ['And in Q4?', 'Quarter: Q4 2021, Revenue (USD): 611900 [#1]'],
        ['What was the revenue in week 97 of 2022?', 'Quarter: Week 97 of 2022, Revenue (USD): 43152 [#1]'],
        ['Who is the president of Brazil?', en.nothingFound],
        ['Thank you so much!', en.thanks],
      ],
    },
    {
      language: 'Arabic',
      turns: [
        ['السَّلام عليكم', ar.peace],
        ['متى يفتح المتحف؟', '«يفتح المتحف أبوابه من التاسعة صباحًا حتى السادسة مساءً، ويغلق يوم الاثنين.» [#1]'],
        ['وكم سعر التذكرة؟', '«سعر التذكرة عشرون ريالًا للكبار وعشرة ريالات للطلاب.» [#1]'],
        ['ماذا تضم القاعة الأولى؟', '«تضم القاعة الأولى خرائط البحارة.» [#1]'],
        ['وماذا عن الثانية؟', '«وتعرض القاعة الثانية نماذج السفن الشراعية.» [#1]'],
        ['كم عدد الموظفين في جدة؟', 'المدينة: جدة، عدد الفروع: 7، عدد الموظفين: 198 [#1]'],
        ['ما سرعة الضوء؟', ar.nothingFound],
        ['مشكور، ما قصرت', ar.thanks],
      ],
    },
  ] as const) {
    it(`reads naturally, in ${language}`, async () => {
      const messages: { role: 'user' | 'assistant'; content: string }[] = []
      for (const [question] of turns) {
        messages.push({ role: 'user', content: question })
        const { choices } = await caller.openai.chat.completions.create({ model: `agent/${agent.code}`, messages })
        messages.push({ role: 'assistant', content: choices[0]!.message.content! })
      }
      // The number of a mark depends on the rank of its chunk, and on the chunks of earlier responses.
      const pairs = turns.map((_, i) => messages.slice(2 * i, 2 * i + 2).map(({ content }) => content.replaceAll(/\[#\d+\]/g, '[#1]')))
      expect(pairs).toEqual(turns)
    })
  }

  it('lists what is in the collection, a line for each file', async () => {
    const startRun = async (input: string) => (await caller.rest('POST', `/v1/agents/${agent.id}/runs`, { input })).body
    for (const [question, opening] of [
      ['What is in this collection?', en.overview],
      ['لخّص المستندات', ar.overview],
    ] as const) {
      const { output_text: text, citations } = await startRun(question)
      const [first, ...lines] = text.split('\n')
      expect(first).toBe(opening)
      expect(lines.length).toBeGreaterThanOrEqual(2)
      const files = lines.map((line: string) => /^- ([^:]+\.(?:md|csv)): .+ \[#\d+\]$/.exec(line)?.[1])
      expect(new Set(files).size).toBe(lines.length)
      expect(files.every((file: string) => file in FILES)).toBe(true)
      expect(citations).toHaveLength(lines.length)
    }
  })

  it('pays for no search after thanks', async () => {
    const { body } = await caller.rest('POST', `/v1/agents/${agent.id}/runs`, { input: 'شكرًا جزيلًا' })
    expect(body).toMatchObject({ output_text: ar.thanks, citations: [] })
    expect(body.steps.map(({ kind }: Json) => kind)).toEqual(['model'])
  })
})
