import { expect, it } from 'vitest'
import { factsRedactor } from './response-facts.ts'

const KEY = 'operators-key-1234'
const redact = factsRedactor([KEY, 'short'])
const hidden = Buffer.from(`user:${KEY}`).toString('base64')

it('removes keys from each metadata field of a response, whatever its name and type', () => {
  const response = {
    id: KEY,
    more: { deep: [`a ${KEY} b`, [hidden, 'default']] },
    choices: [{ index: 0, finish_reason: hidden, message: { tool_calls: [{ id: KEY }] } }],
  }
  for (let times = 0; times < 2; times++)
    expect(redact(structuredClone(response))).toEqual({
      id: '…',
      more: { deep: ['a … b', ['…', 'default']] },
      choices: [{ index: 0, finish_reason: '…', message: { tool_calls: [{ id: '…' }] } }],
    })
})

it('removes field names that contain a key, and long values that contain one', () => {
  const long = `${'A'.repeat(9_000)} ${KEY}`
  for (let times = 0; times < 2; times++)
    expect(redact({ id: 'a', [KEY]: 1, choices: [{ index: 0, [hidden]: { deep: KEY }, note: long, list: [long, 'b'] }] })).toEqual({
      id: 'a',
      choices: [{ index: 0, note: '…', list: ['…', 'b'] }],
    })
})

it('preserves the texts of the model and the signatures of vendors', () => {
  const delta = { content: KEY, reasoning_content: KEY, tool_calls: [{ function: { arguments: KEY } }] }
  const message = { content: [{ type: 'text', text: KEY }], refusal: null, reasoning_details: [{ signature: hidden }] }
  const response = {
    choices: [{ delta, message, logprobs: { content: [{ token: KEY }] } }],
    stop: 'short',
    image: `data:${'A'.repeat(9_000)}`,
  }
  expect(redact(structuredClone(response))).toEqual(response)
})

it('searches a limited number of fields, and removes the rest', () => {
  const facts = Array.from({ length: 30_000 }, (_, at) => `fact-number-${at}`)
  const { more } = redact({ more: [...facts] }) as { more: string[] }
  expect([more[0], more.at(-1)]).toEqual(['fact-number-0', '…'])
  expect((redact({ more: [...facts] }) as { more: string[] }).more).toHaveLength(30_000)
})
