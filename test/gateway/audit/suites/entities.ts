import { byKey, type Suite } from './suite.ts'

const prices: Readonly<Record<string, number>> = { p1: 10, p2: 2_000 }
const boxes = [
  { code: 'a', number: 1, room: { floor: 2, door: 'red' }, weight: 7 },
  { code: 'b', number: 1, room: { floor: 3, door: 'red' }, weight: 8 },
  { code: 'lost', number: 9, room: { floor: 9, door: 'red' }, weight: 9 },
]
const authors = [
  { id: 'u1', since: 1990 },
  { id: 'u2', since: 2020 },
]

export const ENTITIES: Readonly<Record<string, Suite>> = {
  'entities-and-requires': {
    subgraphs: {
      catalog: {
        sdl: `type Query { products: [Product!]! product(id: ID!): Product provided: Product @provides(fields: "maker { name }") }
          type Product @key(fields: "id") { id: ID! price: Int! maker: Maker }
          type Maker @key(fields: "id") { id: ID! name: String! @external }`,
        resolvers: {
          Query: {
            products: () => [{ id: 'p1' }, { id: 'p2' }],
            product: (_: unknown, { id }: { id: string }) => (id in prices ? { id } : null),
            provided: () => ({ id: 'p1', maker: { id: 'm1', name: 'provided' } }),
          },
          Product: {
            __resolveReference: ({ id }: { id: string }) => ({ id }),
            price: ({ id }: { id: string }) => prices[id],
            maker: ({ id, maker }: { id: string; maker?: object }) => maker ?? (id === 'p1' ? { id: 'm1' } : null),
          },
        },
      },
      delivery: {
        sdl: 'type Product @key(fields: "id") { id: ID! price: Int! @external dear: Boolean! @requires(fields: "price") }',
        resolvers: { Product: { dear: ({ price }: { price: number }) => price > 1_000 } },
      },
      makers: {
        sdl: 'type Maker @key(fields: "id") { id: ID! name: String! @shareable }',
        resolvers: { Maker: { __resolveReference: ({ id }: { id: string }) => ({ id, name: `maker ${id}` }) } },
      },
    },
    tests: [
      {
        query: '{ products { id dear } }',
        expected: {
          data: {
            products: [
              { id: 'p1', dear: false },
              { id: 'p2', dear: true },
            ],
          },
        },
      },
      {
        query: '{ a: product(id: "p1") { maker { name } } b: product(id: "p2") { maker { name } } }',
        expected: { data: { a: { maker: { name: 'maker m1' } }, b: { maker: null } } },
      },
      { query: '{ product(id: "p9") { dear } }', expected: { data: { product: null } } },
      { query: '{ product(id: "p1") { id @skip(if: true) price @include(if: true) } }', expected: { data: { product: { price: 10 } } } },
      { query: '{ provided { maker { name } } }', expected: { data: { provided: { maker: { name: 'provided' } } } } },
      { query: '{ nothing }', expected: { errors: true } },
    ],
  },

  // The way from a code to a weight leads through a second key, whose fields are nested. No second key: no weight.
  'nested-keys-that-may-be-missing': {
    subgraphs: {
      shelves: {
        sdl: 'type Query { boxes: [Box!]! } type Box @key(fields: "code") { code: ID! above: Box }',
        resolvers: {
          Query: { boxes: () => boxes.map(({ code }) => ({ code })) },
          Box: { above: ({ code }: { code: string }) => ({ code: code === 'a' ? 'b' : 'a' }) },
        },
      },
      numbers: {
        sdl: `type Box @key(fields: "code") @key(fields: "number room { floor }") { code: ID! number: Int! room: Room! }
          type Room @shareable { floor: Int! door: String! }`,
        resolvers: {
          Box: { __resolveReference: ({ code }: { code: string }) => boxes.find((box) => box.code === code && code !== 'lost') ?? null },
        },
      },
      scales: {
        sdl: `type Box @key(fields: "number room { floor }") { number: Int! room: Room! weight: Int }
          type Room @shareable { floor: Int! }`,
        resolvers: {
          Box: {
            __resolveReference: ({ number, room }: { number: number; room: { floor: number } }) =>
              boxes.find((box) => box.number === number && box.room.floor === room.floor),
          },
        },
      },
    },
    tests: [
      {
        query: '{ boxes { code weight } }',
        expected: {
          data: {
            boxes: [
              { code: 'a', weight: 7 },
              { code: 'b', weight: 8 },
              { code: 'lost', weight: null },
            ],
          },
        },
      },
      {
        query: '{ boxes { above { above { code room { door } weight } } } }',
        expected: {
          data: {
            boxes: ['a', 'b', 'b'].map((code, index) => ({
              above: { above: { code, room: { door: 'red' }, weight: index === 0 ? 7 : 8 } },
            })),
          },
        },
      },
    ],
  },

  // A subgraph requires what another computes from a field of a third, and both name the same entities.
  'requirements-in-a-circle': {
    subgraphs: {
      feed: {
        sdl: `type Query { essays: [Essay!]! } type Author @key(fields: "id") { id: ID! since: Int! }
          type Essay @key(fields: "id") { id: ID! young: Boolean! @external classic: Boolean! @requires(fields: "young") }`,
        resolvers: {
          Query: { essays: () => [{ id: 'e1' }, { id: 'e2' }] },
          Essay: { classic: ({ young }: { young?: boolean }) => (young === undefined ? null : !young) },
          Author: { __resolveReference: byKey(authors, 'id') },
        },
      },
      writers: {
        sdl: `type Essay @key(fields: "id") { id: ID! author: Author! young: Boolean! @requires(fields: "author { since }") }
          type Author @key(fields: "id") { id: ID! since: Int! @external }`,
        resolvers: {
          Essay: {
            __resolveReference: ({ id, author }: { id: string; author?: object }) => ({
              id,
              author: { id: id.replace('e', 'u'), ...author },
            }),
            young: ({ author }: { author: { since: number } }) => author.since > 2_000,
          },
        },
      },
    },
    tests: [
      { query: '{ essays { classic } }', expected: { data: { essays: [{ classic: true }, { classic: false }] } } },
      {
        query: '{ essays { young author { id } classic } }',
        expected: {
          data: {
            essays: [
              { young: false, author: { id: 'u1' }, classic: true },
              { young: true, author: { id: 'u2' }, classic: false },
            ],
          },
        },
      },
    ],
  },

  // A part without a key: each subgraph gives its fields of it with the whole that has a key.
  'parts-without-keys': {
    subgraphs: {
      deeds: {
        sdl: `type Query { houses: [House!]! } type House @key(fields: "id") { id: ID! owner: Owner @shareable } type Owner { name: String! }`,
        resolvers: {
          Query: {
            houses: () => [
              { id: 'h1', owner: { name: 'Idris' } },
              { id: 'h2', owner: null },
            ],
          },
        },
      },
      taxes: {
        sdl: 'type House @key(fields: "id") { id: ID! owner: Owner @shareable rate: Int! } type Owner { debts: [Int!]! }',
        resolvers: {
          House: {
            __resolveReference: ({ id }: { id: string }) => ({ id, rate: 4, owner: id === 'h1' ? { debts: [1, 2] } : null }),
          },
        },
      },
    },
    tests: [
      {
        query: '{ houses { owner { name debts } rate } }',
        expected: {
          data: {
            houses: [
              { owner: { name: 'Idris', debts: [1, 2] }, rate: 4 },
              { owner: null, rate: 4 },
            ],
          },
        },
      },
    ],
  },

  'failing-entities': {
    subgraphs: {
      list: {
        sdl: 'type Query { notes: [Note!]! } type Note @key(fields: "id") { id: ID! }',
        resolvers: { Query: { notes: () => [{ id: 'n1' }, { id: 'n2' }] } },
      },
      texts: {
        sdl: 'type Note @key(fields: "id") { id: ID! text: String }',
        resolvers: {
          Note: {
            __resolveReference: async ({ id }: { id: string }) => {
              if (id === 'n2') throw new Error('unreadable')
              return { id, text: 'read' }
            },
          },
        },
      },
    },
    tests: [
      {
        query: '{ notes { id text } }',
        expected: {
          data: {
            notes: [
              { id: 'n1', text: 'read' },
              { id: 'n2', text: null },
            ],
          },
          errors: true,
        },
      },
    ],
  },
}
