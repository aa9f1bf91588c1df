import { buildSchema, execute, parse } from 'graphql'
import { describe, expect, it } from 'vitest'
import { eventOperation } from './event-operation.ts'

const schema = buildSchema(`
  input Ask { messages: [String!]! }
  type Event { text(upTo: Int): String }
  type Query { nothing: Boolean }
  type Subscription { events(ask: Ask!, after: String): Event }
`)
const runEvent = (query: string, variables: Record<string, unknown>) => {
  const { document, toVariables: variablesOf } = eventOperation(parse(query))
  const rootValue = { events: { text: ({ upTo }: { upTo?: number }) => 'Hello'.slice(0, upTo ?? undefined) } }
  return { variables: variablesOf(variables), result: execute({ schema, document, variableValues: variablesOf(variables), rootValue }) }
}
const ask = { messages: ['a long conversation'] }

describe('what an event of a subscription is executed with', () => {
  it('has nothing of the variables that begin the stream, and all that its fields use', () => {
    const query = 'subscription ($ask: Ask!, $upTo: Int) { events(ask: $ask) { text(upTo: $upTo) } }'
    const { variables, result } = runEvent(query, { ask, upTo: 4 })
    expect(variables).toEqual({ ask: true, upTo: 4 })
    expect(result).toEqual({ data: { events: { text: 'Hell' } } })
  })

  it('takes variables inside a literal, absent ones and defaults as they are', () => {
    const query =
      'subscription ($m: [String!]!, $after: String = "x", $upTo: Int = 2) { events(ask: { messages: $m }, after: $after) { text(upTo: $upTo) } }'
    const { variables, result } = runEvent(query, { m: ask.messages })
    expect(variables).toEqual({ m: true, after: true })
    expect(result).toEqual({ data: { events: { text: 'He' } } })
  })

  for (const [name, query] of [
    ['a fragment', 'subscription ($ask: Ask!) { events(ask: $ask) { ...of } } fragment of on Event { text }'],
    ['a directive', 'subscription ($ask: Ask!, $on: Boolean!) { events(ask: $ask) @include(if: $on) { text } }'],
    ['a fragment at the root', 'subscription ($ask: Ask!) { ... on Subscription { events(ask: $ask) { text } } }'],
    ['no variables', 'subscription { events(ask: { messages: [] }) { text } }'],
  ] as const) {
    it(`is the operation itself where that has ${name}`, () => {
      const document = parse(query)
      const operation = eventOperation(document)
      expect(operation.document).toBe(document)
      expect(operation.toVariables({ ask })).toEqual({ ask })
    })
  }
})
