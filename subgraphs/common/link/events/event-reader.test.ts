import { buildSchema, execute, type GraphQLFieldResolver, parse } from 'graphql'
import { describe, expect, it } from 'vitest'
import { eventReader } from './event-reader.ts'

const schema = buildSchema(`
  enum Kind { FIRST LAST }
  type Usage { tokens: Int! }
  type Event { id: ID! kind: Kind words: [String!] usage: Usage uses: [Usage!]! told: String part(of: Int): String late: String info: String }
  union Any = Event | Usage
  type Query { nothing: Boolean }
  type Subscription { events(ask: String): Event! any: Any }
`)
const resolvers: Readonly<Record<string, GraphQLFieldResolver<never, never>>> = {
  told: ({ id }: { id: string }, _args: unknown, context: string) => `${id} for ${context}`,
  late: async () => 'later',
  info: (_event: unknown, _args: unknown, _context: unknown, info) => info.fieldName,
}
const eventFields = schema.getType('Event') as unknown as { getFields(): Record<string, { resolve?: unknown }> }
for (const [name, resolve] of Object.entries(resolvers)) eventFields.getFields()[name]!.resolve = resolve
schema.getSubscriptionType()!.getFields().events!.resolve = (event: unknown) => event

const event = { id: 'a', kind: 'LAST', words: ['b', 'c'], usage: { tokens: 1 }, uses: [{ tokens: 2 }], part: 'd' }
const read = (query: string, value: unknown = event) => eventReader(schema, parse(query))?.(value, 'me')
const executed = (query: string, value: unknown = event) =>
  execute({ schema, document: parse(query), rootValue: value, contextValue: 'me' })

describe('an event that is read without graphql-js', () => {
  it.each([
    'subscription { events { id kind words usage { tokens } uses { tokens } } }',
    'subscription ($ask: String) { all: events(ask: $ask) { __typename key: id told absent: usage { __typename } } }',
  ])('has the data that graphql-js gives: %s', (query) => {
    for (const value of [event, { id: 1, uses: [], words: null }]) {
      const data = read(query, value)
      expect(data).toBeDefined()
      expect({ data }).toEqual(executed(query, value))
    }
  })

  it.each([
    ['null where none may be', { ...event, id: null }],
    ['null in a list', { ...event, uses: [null] }],
    ['no list', { ...event, uses: 'none' }],
    ['a value outside its type', { ...event, kind: 'MIDDLE' }],
    ['a promise', { ...event, usage: Promise.resolve({ tokens: 1 }) }],
    ['an error', { ...event, usage: new Error('no') }],
    ['a function', { ...event, words: () => ['b'] }],
    ['nothing', null],
  ])('is left to graphql-js with %s', (_what, value) => {
    expect(read('subscription { events { id kind words usage { tokens } uses { tokens } } }', value)).toBeUndefined()
  })

  it('is left to graphql-js when a resolver answers later', () => {
    expect(read('subscription { events { id late } }')).toBeUndefined()
  })

  it.each([
    'subscription { events { part(of: 1) } }',
    'subscription { events { part } }',
    'subscription { events { info } }',
    'subscription { events { id id } }',
    'subscription { events { __proto__: id } }',
    'subscription { events { id @include(if: true) } }',
    'subscription { events { ...F } } fragment F on Event { id }',
    'subscription { events { ... on Event { id } } }',
    'subscription { any { __typename } }',
    'query { nothing }',
  ])('is not one of %s', (query) => {
    expect(eventReader(schema, parse(query))).toBeNull()
  })
})
