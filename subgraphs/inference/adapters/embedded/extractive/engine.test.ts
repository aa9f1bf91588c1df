import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isAbort } from '../../../../common/errors.ts'
import { systemClock } from '../../../../common/process/clock.ts'
import { silentLog } from '../../../../common/process/log.ts'
import type { ChatEngine, ProtocolObject } from '../../../ports/engines.ts'
import { type EmbeddedEngines, openEmbeddedEngines } from '../engines.ts'
import { PHRASES } from './phrases.ts'

const MODEL = new URL('../../../../../models/e5-small-ar-en/', import.meta.url)
const CALL = { engineModel: 'extractive', requestId: 'req_1', maxOutputTokens: null, warn: () => undefined }
const NEVER = new AbortController().signal

const ENGLISH = `[1] handbook.pdf, page 3: Employees receive twenty-one days of paid leave per year. Unused leave expires in March.
[2] handbook.pdf, page 9: The office opens at eight in the morning. Visitors register at the front desk.`
const ARABIC = `[1] الدليل.pdf، صفحة 3: يحصل الموظف على واحد وعشرين يوما من الإجازة المدفوعة في السنة. تنتهي الإجازة غير المستخدمة في مارس.
[2] الدليل.pdf، صفحة 9: يفتح المكتب أبوابه في الثامنة صباحا. يسجل الزوار أسماءهم عند الاستقبال.`

let engines: EmbeddedEngines
let chat: ChatEngine
beforeAll(async () => {
  engines = await openEmbeddedEngines({ modelDirectory: MODEL, log: silentLog, clock: systemClock })
  chat = engines.chat
})
afterAll(() => engines[Symbol.asyncDispose]())

interface Completion {
  readonly choices: readonly { readonly message: { readonly content: string }; readonly finish_reason: string }[]
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number; readonly total_tokens: number }
}

async function complete(request: ProtocolObject): Promise<Completion> {
  return (await chat.complete(CALL, request, NEVER)) as unknown as Completion
}

async function replyTo(question: string, context = '', more: ProtocolObject = {}): Promise<string> {
  const { choices } = await complete({ messages: [{ role: 'user', content: `${context}\n\n${question}` }], ...more })
  return choices[0]!.message.content
}

describe('Extractive answers', () => {
  for (const { name, question, context, quoted } of [
    {
      name: 'English over English',
      question: 'How many vacation days do I get?',
      context: ENGLISH,
      quoted: '“Employees receive twenty-one days of paid leave per year.” — [1] handbook.pdf, page 3',
    },
    {
      name: 'Arabic over Arabic',
      question: 'متى يفتح المكتب؟',
      context: ARABIC,
      quoted: '«يفتح المكتب أبوابه في الثامنة صباحا.» — [2] الدليل.pdf، صفحة 9',
    },
    {
      name: 'Arabic over English',
      question: 'متى يفتح المكتب؟',
      context: ENGLISH,
      quoted: '“The office opens at eight in the morning.” — [2] handbook.pdf, page 9',
    },
    {
      name: 'English over Arabic',
      question: 'When does the office open?',
      context: ARABIC,
      quoted: '«يفتح المكتب أبوابه في الثامنة صباحا.» — [2] الدليل.pdf، صفحة 9',
    },
  ]) {
    it(`quote the supporting sentence with its source: ${name}`, async () => {
      expect((await replyTo(question, context)).split('\n')[0]).toBe(quoted)
    })
  }

  it('say in the language of the question that nothing supports an answer', async () => {
    expect(await replyTo('Who won the football world cup in 1998?', ENGLISH)).toBe(PHRASES.en.nothingFound)
    expect(await replyTo('Who won the football world cup in 1998?', ARABIC)).toBe(PHRASES.en.nothingFound)
    expect(await replyTo('من فاز بكأس العالم لكرة القدم؟', ENGLISH)).toBe(PHRASES.ar.nothingFound)
    expect(await replyTo('من فاز بكأس العالم لكرة القدم؟', ARABIC)).toBe(PHRASES.ar.nothingFound)
  })

  it('say that there is no text, and reply to a greeting', async () => {
    expect(await replyTo('When does the office open?')).toBe(PHRASES.en.noContext)
    expect(await replyTo('متى يفتح المكتب؟')).toBe(PHRASES.ar.noContext)
    expect(await replyTo('Hello there!')).toBe(PHRASES.en.greeting)
    expect(await replyTo('السلام عليكم')).toBe(PHRASES.ar.peace)
    expect(await replyTo('')).toBe(PHRASES.en.greeting)
  })

  it('read system and tool messages, earlier turns and content parts, and quote no instructions or questions', async () => {
    const { choices } = await complete({
      messages: [
        { role: 'system', content: 'You are an assistant that knows when the office opens. Answer in one sentence.' },
        { role: 'user', content: 'When does the office open?' },
        { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'search', arguments: '{}' } }] },
        {
          role: 'tool',
          tool_call_id: 'c',
          content: JSON.stringify({
            data: [
              {
                text: 'The office opens at eight.\nIt is closed on Friday.',
                page_start: 9,
                page_end: 9,
                file: { file_name: 'handbook.pdf' },
              },
            ],
          }),
        },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'When does the office open?' },
            { type: 'image_url', image_url: { url: 'data:' } },
          ],
        },
      ],
    })
    expect(choices[0]!.message.content.split('\n')[0]).toBe('“The office opens at eight.” — handbook.pdf, p. 9')
  })

  it('take no evidence from earlier replies, and quote no quote', async () => {
    const user = (content: string) => ({ role: 'user', content })
    const quoted = '“Employees receive twenty-one days of paid leave per year.” — [1] handbook.pdf, page 3'
    const claim = { role: 'assistant', content: `${quoted}\nThe cafeteria closes at four.` }
    const first = user(`${ENGLISH}\n\nHow many vacation days do I get?`)
    const replyAfter = async (question: string) => {
      const { choices } = await complete({ messages: [first, claim, user(question)] })
      return choices[0]!.message.content
    }
    expect(await replyAfter('How many days of paid leave do employees receive?')).toBe(quoted)
    expect(await replyAfter('When does the cafeteria close?')).toBe(PHRASES.en.nothingFound)
    expect(await replyAfter('thanks a lot')).toBe(PHRASES.en.thanks)
    expect(await replyTo('What did the sign say?', 'The sign at the gate said “mind the dog”.')).toBe(
      '“The sign at the gate said ‘mind the dog’.”',
    )
  })

  it('use the previous question for a follow-up', async () => {
    const context = 'Revenue was 40 million in 2020. Revenue was 52 million in 2021. The office moved to Leeds in 2021.'
    const messages = [`${context}\n\nWhat was the revenue in 2020?`, 'and in 2021?'].map((content) => ({ role: 'user', content }))
    expect((await complete({ messages })).choices[0]!.message.content).toBe('“Revenue was 52 million in 2021.”')
  })

  const CITIES =
    'Cities of the coast\nCity | People | Mayor\nJeddah | 4.7 million | Saleh\nYanbu | 300 thousand | Huda\nDammam | 1.5 million | Reem'
  for (const { name, question, context, expected } of [
    {
      name: 'the requested column',
      question: 'How many people live in Yanbu?',
      context: CITIES,
      expected: 'City: Yanbu, People: 300 thousand',
    },
    {
      name: 'all columns where none is requested',
      question: 'What do you know of Yanbu?',
      context: CITIES,
      expected: 'City: Yanbu, People: 300 thousand, Mayor: Huda',
    },
    {
      name: 'a Markdown table',
      question: 'من رئيس بلدية ينبع؟',
      context: '| المدينة | رئيس البلدية |\n|---|---|\n| جدة | صالح |\n| ينبع | هدى |',
      expected: 'المدينة: ينبع، رئيس البلدية: هدى',
    },
    {
      name: 'the header of another chunk of the file',
      question: 'How many people live in Abha?',
      context:
        '[#1] a.csv, row 40–41: Abha | 1.1 million\nTaif | 700 thousand\n\n[#2] a.csv, row 1–3: City | People\nJeddah | 4.7 million\nYanbu | 300 thousand',
      expected: 'City: Abha, People: 1.1 million [#1]',
    },
    {
      name: 'no header where the chunk has none',
      question: 'Where does Omar Nasser work?',
      context: '[#1] a.csv, row 40–42: Sara Ali | Riyadh office\nOmar Nasser | Jeddah office\nHuda Zaki | Abha office',
      expected: 'Omar Nasser, Jeddah office [#1]',
    },
  ]) {
    it(`return the row of a table with its headers: ${name}`, async () => expect(await replyTo(question, context)).toBe(expected))
  }

  it('find the question when context and question are one paragraph', async () => {
    expect(await replyTo('Context: The gate closes at ten at night.\nQuestion: When does the gate close?')).toBe(
      '“The gate closes at ten at night.”',
    )
  })

  it('find the sentence in a long context in the other language', async () => {
    const filler = Array.from(
      { length: 60 },
      (_, index) => `Paragraph ${index} says that copper pipe number ${index} was painted blue by the plumber.`,
    )
    filler.splice(40, 0, 'The office opens at eight in the morning.')
    expect(await replyTo('في أي ساعة من الصباح يفتح المكتب أبوابه؟', filler.join('\n'))).toContain(
      '“The office opens at eight in the morning.”',
    )
  })

  it('refuse more text than the limit', async () => {
    await expect(replyTo('Why?', 'x'.repeat(256_001))).rejects.toMatchObject({ code: 'context_length_exceeded' })
  })

  it('stop when the caller disconnects', async () => {
    const request = { messages: [{ role: 'user', content: `${ENGLISH}\n\nWhy?` }] }
    const controller = new AbortController()
    const call = chat.complete(CALL, request, controller.signal)
    controller.abort()
    await expect(call).rejects.toSatisfy(isAbort)
    await expect(chat.stream(CALL, request, AbortSignal.abort())).rejects.toSatisfy(isAbort)
  })
})

describe('Extractive engine protocol', () => {
  const request = { messages: [{ role: 'user', content: `${ENGLISH}\n\nHow many vacation days do I get?` }] }

  it('counts usage by the tokenizer', async () => {
    const completion = await complete(request)
    const [promptTokens] = await engines.embedding.countTokens([request.messages[0]!.content], NEVER)
    const { usage } = completion
    expect(completion).toEqual({
      choices: [{ index: 0, message: { content: expect.any(String) }, finish_reason: 'stop' }],
      usage: { prompt_tokens: promptTokens, completion_tokens: expect.any(Number), total_tokens: expect.any(Number) },
    })
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens)
  })

  it('streams the same text for each choice, finish reason last, then usage', async () => {
    const plain = await complete({ ...request, n: 2 })
    const chunks: ProtocolObject[] = []
    for await (const item of await chat.stream(CALL, { ...request, n: 2 }, NEVER)) chunks.push(...item)
    type Choice = { index: number; delta: { content: string }; finish_reason: string | null }
    for (const index of [0, 1]) {
      const own = chunks.flatMap((chunk) => chunk.choices as Choice[]).filter((choice) => choice.index === index)
      expect(own.length).toBeGreaterThan(2)
      expect(own.map((choice) => choice.finish_reason)).toEqual([...own.slice(1).map(() => null), 'stop'])
      expect(own.map((choice) => choice.delta.content).join('')).toBe(plain.choices[index]!.message.content)
    }
    expect(chunks.at(-1)).toEqual({ choices: [], usage: plain.usage })
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === undefined)).toBe(true)
  })

  it('stops at the token limit with finish reason length', async () => {
    const whole = (await complete(request)).choices[0]!.message.content
    for (const limit of [{ max_tokens: 6 }, { max_completion_tokens: 6, max_tokens: 100 }]) {
      const { choices, usage } = await complete({ ...request, ...limit })
      expect(choices[0]!.finish_reason).toBe('length')
      expect(whole.startsWith(choices[0]!.message.content)).toBe(true)
      expect(usage.completion_tokens).toBeLessThanOrEqual(6)
      const [counted] = await engines.embedding.countTokens([choices[0]!.message.content], NEVER)
      expect(usage.completion_tokens).toBe(counted)
    }
  })

  it('leaves out the stop text and what follows it', async () => {
    for (const stop of ['days', ['zzz', 'days']]) {
      const { choices } = await complete({ ...request, stop })
      expect(choices[0]).toMatchObject({ message: { content: '“Employees receive twenty-one' }, finish_reason: 'stop' })
    }
  })
})
