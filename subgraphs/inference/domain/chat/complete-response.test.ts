import { describe, expect, it } from 'vitest'
import { believedUsage, countedUsage, reportedUsage } from '../tokens/usage.ts'
import { completedResponse, type ResponseNames } from './complete-response.ts'

let created = 0
const names: ResponseNames = { newId: (kind) => `${kind}-${++created}`, model: 'our-model', created: 1_795_000_000 }
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

describe('Response completion', () => {
  it('leaves a complete response unchanged, with unknown fields', () => {
    const whole = { ...said, system_fingerprint: 'fp', usage: { ...said.usage, total_tokens: 9, queue_time: 0.1 } }
    expect(completedResponse(whole, names, believed(whole.usage))).toEqual(whole)
  })

  it('adds the keys that the engine left out, and nothing else', () => {
    const response = {
      choices: [{ message: { content: 'Hi' } }, { index: 1, message: { refusal: 'No.', reasoning: 'hm' }, finish_reason: 'eos' }],
    }
    expect(completedResponse(response, names, counted)).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      created: 1_795_000_000,
      model: 'our-model',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Hi', refusal: null }, logprobs: null, finish_reason: 'stop' },
        { index: 1, message: { role: 'assistant', content: null, refusal: 'No.', reasoning: 'hm' }, logprobs: null, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    })
  })

  it.each([
    ['white space', 'two words'],
    ['invisible characters', 'a\u202eb'],
    ['markup', '<b>'],
    ['too many characters', 'x'.repeat(10_000)],
    ['no text', 7],
    ['fields', {}],
  ])('removes names and metadata with %s', (_what, odd) => {
    const call = { id: odd, type: odd, function: { name: 'f', arguments: '{}' } }
    const choice = { index: 0, message: { role: odd, content: null, tool_calls: [call] }, finish_reason: odd }
    const response = { ...said, id: odd, object: odd, model: odd, system_fingerprint: odd, service_tier: odd, choices: [choice] }
    expect(completedResponse(response, names, counted)).toEqual({
      ...said,
      id: expect.stringMatching(/^chatcmpl-/),
      model: 'our-model',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: null,
            refusal: null,
            tool_calls: [{ ...call, id: expect.stringMatching(/^call-/), type: 'function' }],
          },
          logprobs: null,
          finish_reason: 'tool_calls',
        },
      ],
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    })
  })

  it('preserves the names and metadata of real engines', () => {
    for (const model of ['meta-llama/Llama-3.3-70B:free', 'models/gemini-2.5@001', 'accounts/a~b/models/c|d+e=,'])
      for (const fact of ['fp_44709d6fcb', 'default', 'on_demand', null]) {
        const response = { ...said, id: 'gen-1:a/b+c=', model, system_fingerprint: fact, service_tier: fact }
        expect(completedResponse(response, names, believed(said.usage))).toEqual(response)
      }
  })

  it.each([
    ...['stop', 'length', 'tool_calls', 'content_filter', 'function_call'].map((reason) => [reason, reason] as const),
    ...[['model_length', 'length'] as const, ['MAX_TOKENS', 'length'] as const, ['SAFETY', 'content_filter'] as const],
    ...['end_turn', 'eos', 'a key', ''].map((reason) => [reason, 'stop'] as const),
  ])('maps the finish reason %j to %j', (reason, expected) => {
    const response = completedResponse({ ...said, choices: [{ ...said.choices[0], finish_reason: reason }] }, names, counted)
    expect(response.choices).toMatchObject([{ finish_reason: expected }])
  })

  it('creates IDs of tool calls without one, and the finish reason tool_calls where there is none', () => {
    const call = { function: { name: 'f', arguments: '{}' } }
    const response = completedResponse({ ...said, choices: [{ index: 0, message: { tool_calls: [call] } }] }, names, counted)
    expect(response.choices).toMatchObject([
      {
        message: { content: null, tool_calls: [{ id: expect.stringMatching(/^call-/), type: 'function', ...call }] },
        finish_reason: 'tool_calls',
      },
    ])
  })

  it('reports the sum of the usage, and counted tokens where it is malformed or zero for some text', () => {
    const usage = { prompt_tokens: 4, completion_tokens: 5 }
    expect(completedResponse({ ...said, usage }, names, believed(usage)).usage).toEqual({ ...usage, total_tokens: 9 })
    const zero = { prompt_tokens: 9, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 2 } }
    expect(completedResponse({ ...said, usage: zero }, names, believed(zero)).usage).toEqual({
      ...{ prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
      prompt_tokens_details: { cached_tokens: 2 },
    })
    expect(completedResponse({ ...said, usage: {} }, names, counted).usage).toEqual({
      prompt_tokens: 7,
      completion_tokens: 3,
      total_tokens: 10,
    })
  })
})
