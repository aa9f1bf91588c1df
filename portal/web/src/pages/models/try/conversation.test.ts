import { expect, test } from 'vitest'
import { cosine, NO_REPLY, requestOf, withEvent } from './conversation.ts'

test('a reply grows, and ends with its usage', () => {
  const event = { textDelta: '', finishReason: null, warnings: null, usage: null, cost: null }
  const reply = [
    { ...event, textDelta: 'Good ', warnings: ['no seed'] },
    { ...event, textDelta: 'day', finishReason: 'STOP' },
    { ...event, usage: { promptTokens: 3, completionTokens: 2 }, cost: '0.01' },
  ].reduce(withEvent, NO_REPLY)
  expect(reply).toEqual({
    text: 'Good day',
    finishReason: 'STOP',
    warnings: ['no seed'],
    usage: { promptTokens: 3, completionTokens: 2 },
    cost: '0.01',
  })
})

test('an image is a part of its message, and empty instructions are omitted', () => {
  expect(requestOf('m', ' ', [{ role: 'user', text: 'What?', image: 'data:image/png;base64,AA' }])).toEqual({
    model: 'm',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What?' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
        ],
      },
    ],
  })
  expect(requestOf('m', 'Be short.', [{ role: 'user', text: 'Hi' }]).messages[0]).toEqual({ role: 'system', content: 'Be short.' })
})

test('computes the cosine of two vectors', () => {
  expect(cosine([1, 0], [2, 0])).toBe(1)
  expect(cosine([1, 0], [0, 1])).toBe(0)
  expect(cosine([0, 0], [1, 1])).toBeNull()
})
