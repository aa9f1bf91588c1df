import { buildSchema, parse, validate } from 'graphql'
import { expect, test } from 'vitest'
import { resumeAfter } from './resume.ts'

const schema = buildSchema(`
  scalar Cursor
  type Query { a: Int }
  type Event { id: ID! cursor: Cursor! textDelta: String! }
  type Subscription { chatCompletion(input: Int!): Event! chatCompletionEvents(id: ID!, after: Cursor): Event! }
`)
const CHAT = 'subscription Try($input: Int!) {\n  chatCompletion(input: $input) { id cursor textDelta }\n}'

test('a new attempt resumes the call after its last event', () => {
  const sent = { query: CHAT, variables: { input: 1 } as Record<string, unknown> }
  resumeAfter(sent, { chatCompletion: { id: 'cht_1', cursor: '3' } })
  resumeAfter(sent, { chatCompletion: { id: 'cht_1', cursor: '4' } })
  expect(sent.variables).toEqual({ id: 'cht_1', after: '4' })
  expect(validate(schema, parse(sent.query))).toEqual([])
  expect(sent.query).toContain('chatCompletionEvents')
})

test('nothing changes without an event', () => {
  const sent = { query: CHAT, variables: { input: 1 } as Record<string, unknown> }
  resumeAfter(sent, null)
  resumeAfter(sent, { documentUpdated: { id: 'doc_1', cursor: '1' } })
  expect(sent).toEqual({ query: CHAT, variables: { input: 1 } })
})
