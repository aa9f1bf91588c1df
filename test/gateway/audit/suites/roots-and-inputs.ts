import type { Suite } from './suite.ts'

const sum = { value: 0 }
const opened = new Set<string>()
const open = (_: unknown, { id }: { id: string }) => {
  if (opened.has(id)) throw new Error('opened twice')
  opened.add(id)
  return { id }
}

export const ROOTS_AND_INPUTS: Readonly<Record<string, Suite>> = {
  'mutations-in-order': {
    subgraphs: {
      adding: {
        sdl: 'type Query { a: Int @shareable } type Mutation { add(by: Int!): Int! }',
        resolvers: { Mutation: { add: (_: unknown, { by }: { by: number }) => (sum.value += by) } },
      },
      timing: {
        sdl: 'type Query { a: Int @shareable } type Mutation { multiply(by: Int!): Int! }',
        resolvers: { Mutation: { multiply: (_: unknown, { by }: { by: number }) => (sum.value *= by) } },
      },
    },
    tests: [
      { query: 'mutation { x: add(by: 5) y: multiply(by: 2) z: add(by: 2) }', expected: { data: { x: 5, y: 10, z: 12 } } },
      { query: '{ a }', expected: { data: { a: null }, errors: false } },
    ],
  },

  // Two subgraphs have the same root fields: of a query each gives its part, a mutation runs in only one.
  'shared-roots': {
    subgraphs: {
      names: {
        sdl: `type Query { library: Library! @shareable libraries: [Library!]! @shareable } type Library { id: ID! @shareable name: String! }
          type Mutation { open(id: ID!): Gate! @shareable } type Gate @key(fields: "id") { id: ID! }`,
        resolvers: {
          Query: { library: () => ({ id: 'l', name: 'House of Wisdom' }), libraries: () => [{ id: 'l', name: 'House of Wisdom' }] },
          Mutation: { open },
        },
      },
      hours: {
        sdl: `type Query { library: Library! @shareable libraries: [Library!]! @shareable } type Library { id: ID! @shareable hours: Hours! }
          type Hours { from: Int! } type Mutation { open(id: ID!): Gate! @shareable } type Gate @key(fields: "id") { id: ID! width: Int! }`,
        resolvers: {
          Query: { library: () => ({ id: 'l', hours: { from: 8 } }), libraries: () => [{ id: 'l', hours: { from: 8 } }] },
          Mutation: { open },
          Gate: { width: () => 4 },
        },
      },
    },
    tests: [
      {
        query: '{ library { name hours { from } } libraries { id hours { from } name } }',
        expected: {
          data: {
            library: { name: 'House of Wisdom', hours: { from: 8 } },
            libraries: [{ id: 'l', hours: { from: 8 }, name: 'House of Wisdom' }],
          },
        },
      },
      { query: 'mutation { open(id: "g1") { id width } }', expected: { data: { open: { id: 'g1', width: 4 } }, errors: false } },
    ],
  },

  // Clients see of an enum or input what every subgraph has of it.
  'enums-and-inputs': {
    subgraphs: {
      short: {
        sdl: `type Query { count(filter: Filter!): Int! } enum Script { ARABIC LATIN } input Filter { script: Script! }
          type Text @key(fields: "id") { id: ID! script: Script @shareable }`,
        resolvers: {
          Query: { count: (_: unknown, { filter }: { filter: object }) => Object.keys(filter).length },
          Text: { __resolveReference: ({ id }: { id: string }) => ({ id, script: 'LATIN' }) },
        },
      },
      long: {
        sdl: `type Query { texts(limit: Int = 2 @inaccessible): [Text!]! search(filter: Filter!): Int! } enum Script { ARABIC LATIN COPTIC @inaccessible }
          input Filter { script: Script! strict: Boolean } type Text @key(fields: "id") { id: ID! script: Script @shareable }`,
        resolvers: {
          Query: {
            search: () => 7,
            texts: (_: unknown, { limit }: { limit: number }) =>
              [
                { id: 't1', script: 'ARABIC' },
                { id: 't2', script: 'COPTIC' },
                { id: 't3', script: 'LATIN' },
              ].slice(0, limit),
          },
        },
      },
    },
    tests: [
      {
        query: '{ texts { id script } }',
        expected: {
          data: {
            texts: [
              { id: 't1', script: 'ARABIC' },
              { id: 't2', script: null },
            ],
          },
        },
      },
      { query: '{ texts(limit: 1) { id } }', expected: { errors: true } },
      { query: '{ count(filter: { script: LATIN }) search(filter: { script: ARABIC }) }', expected: { data: { count: 1, search: 7 } } },
      { query: '{ search(filter: { script: ARABIC, strict: true }) }', expected: { errors: true } },
      { query: '{ count(filter: { script: COPTIC }) }', expected: { errors: true } },
    ],
  },
}
