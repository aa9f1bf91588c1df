import { describe, expect, it } from 'vitest'
import { believedUsage, countedUsage, reportedUsage } from '../tokens/usage.ts'
import { type AnswerNames, completedAnswer } from './complete-answer.ts'

let made = 0
const names: AnswerNames = { newId: (kind) => `${kind}-${++made}`, model: 'our-model', created: 1_795_000_000 }
const counted = countedUsage(7, 3)
const believed = (usage: object) => believedUsage(reportedUsage({ usage }), 7, () => 3)
const said = {
  id: 'theirs',
  object: 'chat.completion',
  created: 1_750_000_000,
  model: 'their-model',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi', refusal: null }, logprobs: null, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
}

describe('an answer', () => {
  it('that has every key is as the engine gave it, with what the protocol does not know', () => {
    const whole = { ...said, system_fingerprint: 'fp', usage: { ...said.usage, total_tokens: 9, queue_time: 0.1 } }
    expect(completedAnswer(whole, names, believed(whole.usage))).toEqual(whole)
  })

  it('gets the keys that the engine left out, and nothing else', () => {
    const answer = {
      choices: [{ message: { content: 'Hi' } }, { index: 1, message: { refusal: 'No.', reasoning: 'hm' }, finish_reason: 'eos' }],
    }
    expect(completedAnswer(answer, names, counted)).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      created: 1_795_000_000,
      model: 'our-model',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Hi', refusal: null }, logprobs: null, finish_reason: 'stop' },
        { index: 1, message: { role: 'assistant', content: null, refusal: 'No.', reasoning: 'hm' }, logprobs: null, finish_reason: 'eos' },
      ],
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    })
  })

  it('names calls of tools that have no id, and ends with them where it says no end', () => {
    const call = { function: { name: 'f', arguments: '{}' } }
    const answer = completedAnswer({ ...said, choices: [{ index: 0, message: { tool_calls: [call] } }] }, names, counted)
    expect(answer.choices).toMatchObject([
      {
        message: { content: null, tool_calls: [{ id: expect.stringMatching(/^call-/), type: 'function', ...call }] },
        finish_reason: 'tool_calls',
      },
    ])
  })

  it('gets the sum of its usage, and its count where the usage is no usage, or zero for something', () => {
    const usage = { prompt_tokens: 4, completion_tokens: 5 }
    expect(completedAnswer({ ...said, usage }, names, believed(usage)).usage).toEqual({ ...usage, total_tokens: 9 })
    const zero = { prompt_tokens: 9, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 2 } }
    expect(completedAnswer({ ...said, usage: zero }, names, believed(zero)).usage).toEqual({
      ...{ prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
      prompt_tokens_details: { cached_tokens: 2 },
    })
    expect(completedAnswer({ ...said, usage: {} }, names, counted).usage).toEqual({
      prompt_tokens: 7,
      completion_tokens: 3,
      total_tokens: 10,
    })
  })
})
