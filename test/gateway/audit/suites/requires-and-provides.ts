import { byKey, type Suite, unreached } from './suite.ts'

const items = [
  { id: 'i1', grams: 500, cover: { __typename: 'Leather', kind: 'hard', animal: 'goat' } },
  { id: 'i2', grams: 4_000, cover: { __typename: 'Paper', kind: 'soft', sheets: 3 } },
]
const books = [{ id: 'b1', title: 'The Book of Misers', author: { id: 'w1', name: 'al-Jahiz' } }]

export const REQUIRES_AND_PROVIDES: Readonly<Record<string, Suite>> = {
  'requires-with-arguments-and-fragments': {
    subgraphs: {
      stock: {
        sdl: `type Query { items: [Item!]! } enum Unit { GRAM KILO }
          type Item @key(fields: "id") { id: ID! weight(unit: Unit!): Int! cover: Cover! }
          interface Cover { kind: String! } type Leather implements Cover @shareable { kind: String! animal: String! }
          type Paper implements Cover @shareable { kind: String! sheets: Int! }`,
        resolvers: {
          Query: { items: () => items },
          Item: {
            __resolveReference: byKey(items, 'id'),
            weight: ({ grams }: { grams: number }, { unit }: { unit: string }) => (unit === 'KILO' ? Math.ceil(grams / 1_000) : grams),
          },
        },
      },
      postage: {
        sdl: `enum Unit { GRAM KILO }
          type Item @key(fields: "id") { id: ID! weight(unit: Unit!): Int! @external cover: Cover! @external
            postage: Int! @requires(fields: "weight(unit: GRAM)")
            handling: String! @requires(fields: "cover { kind ... on Leather { animal } }") }
          interface Cover { kind: String! } type Leather implements Cover @shareable { kind: String! animal: String! }
          type Paper implements Cover @shareable { kind: String! sheets: Int! }`,
        resolvers: {
          Item: {
            postage: ({ weight }: { weight: number }) => weight / 100,
            handling: ({ cover }: { cover: { kind: string; animal?: string } }) => [cover.kind, cover.animal].join(' ').trim(),
          },
        },
      },
      offers: {
        sdl: 'type Item @key(fields: "id") { id: ID! postage: Int! @external cheap: Boolean! @requires(fields: "postage") }',
        resolvers: { Item: { cheap: ({ postage }: { postage: number }) => postage < 10 } },
      },
    },
    tests: [
      { query: '{ items { cheap } }', expected: { data: { items: [{ cheap: true }, { cheap: false }] } } },
      { query: '{ items { handling } }', expected: { data: { items: [{ handling: 'hard goat' }, { handling: 'soft' }] } } },
      {
        query: '{ items { cheap postage handling cover { __typename } } }',
        expected: {
          data: {
            items: [
              { cheap: true, postage: 5, handling: 'hard goat', cover: { __typename: 'Leather' } },
              { cheap: false, postage: 40, handling: 'soft', cover: { __typename: 'Paper' } },
            ],
          },
        },
      },
      // Include and skip by variables, over fetches of which some then do not run.
      {
        query: 'query ($all: Boolean = false) { items { id cheap @include(if: $all) handling @skip(if: $all) } }',
        expected: {
          data: {
            items: [
              { id: 'i1', handling: 'hard goat' },
              { id: 'i2', handling: 'soft' },
            ],
          },
        },
      },
      {
        query:
          'query ($all: Boolean = true) { items { id ...Offer @include(if: $all) handling @skip(if: $all) } } fragment Offer on Item { cheap }',
        expected: {
          data: {
            items: [
              { id: 'i1', cheap: true },
              { id: 'i2', cheap: false },
            ],
          },
        },
      },
    ],
  },

  'provides-on-a-union-and-nested': {
    subgraphs: {
      search: {
        sdl: `type Query { hits: [Hit!]! @provides(fields: "... on Book { title }") best: Book @provides(fields: "title author { name }") }
          union Hit = Book | Film type Film @key(fields: "id") { id: ID! }
          type Book @key(fields: "id") { id: ID! title: String! @external author: Author @external }
          type Author @key(fields: "id") { id: ID! name: String! @external }`,
        resolvers: {
          Query: {
            hits: () => [
              { __typename: 'Book', ...books[0] },
              { __typename: 'Film', id: 'f1' },
            ],
            best: () => books[0],
          },
        },
      },
      library: {
        sdl: `type Book @key(fields: "id") { id: ID! title: String! @shareable author: Author @shareable pages: Int! }
          type Author @key(fields: "id") { id: ID! name: String! @shareable } type Film @key(fields: "id") { id: ID! title: String! }`,
        resolvers: {
          Book: { __resolveReference: ({ id }: { id: string }) => ({ id, pages: 300 }), title: unreached, author: unreached },
          Author: { __resolveReference: unreached },
          Film: { __resolveReference: ({ id }: { id: string }) => ({ id, title: 'The Message' }) },
        },
      },
    },
    tests: [
      {
        query: '{ hits { ... on Book { id name: title } ... on Film { title } } }',
        expected: { data: { hits: [{ id: 'b1', name: books[0]!.title }, { title: 'The Message' }] } },
      },
      {
        query: '{ best { ...Long author { ... { name } } } } fragment Long on Book { title pages }',
        expected: { data: { best: { title: books[0]!.title, pages: 300, author: { name: 'al-Jahiz' } } } },
      },
    ],
  },

  // The subgraph that provides is asked for what the client wants, and for no more.
  'provides-what-is-asked': {
    subgraphs: {
      desk: {
        sdl: `type Query { loan: Loan @provides(fields: "reader due") }
          type Loan @key(fields: "id") { id: ID! reader: String! @external due: String! @external }`,
        resolvers: { Query: { loan: () => ({ id: 'l1', reader: 'Layla' }) }, Loan: { due: unreached } },
      },
      ledger: {
        sdl: 'type Loan @key(fields: "id") { id: ID! reader: String! @shareable due: String! @shareable fine: Int! }',
        resolvers: { Loan: { __resolveReference: ({ id }: { id: string }) => ({ id, fine: 3 }), reader: unreached, due: unreached } },
      },
    },
    tests: [
      { query: '{ loan { id who: reader } }', expected: { data: { loan: { id: 'l1', who: 'Layla' } } } },
      { query: '{ loan { ... { reader } ... { fine } } }', expected: { data: { loan: { reader: 'Layla', fine: 3 } } } },
      { query: '{ loan { id ... on Loan @skip(if: true) { due } } }', expected: { data: { loan: { id: 'l1' } } } },
    ],
  },

  'override-and-requires': {
    subgraphs: {
      former: {
        sdl: `type Query { formerShop: Shop } type Shop @key(fields: "id") { id: ID! rent: Int! yearly: Int! @requires(fields: "fee") fee: Int! @external }`,
        resolvers: {
          Query: { formerShop: () => ({ id: 's1', rent: 1 }) },
          Shop: { rent: unreached, yearly: ({ fee }: { fee: number }) => fee * 12 },
        },
      },
      present: {
        sdl: 'type Shop @key(fields: "id") { id: ID! rent: Int! @override(from: "former") fee: Int! @override(from: "gone") }',
        resolvers: { Shop: { __resolveReference: ({ id }: { id: string }) => ({ id, rent: 100, fee: 5 }) } },
      },
      taxes: {
        sdl: 'type Query { taxed: Shop } type Shop @key(fields: "id") { id: ID! rent: Int! @external tax: Int! @requires(fields: "rent") }',
        resolvers: { Query: { taxed: () => ({ id: 's1' }) }, Shop: { tax: ({ rent }: { rent: number }) => rent / 10 } },
      },
    },
    tests: [
      { query: '{ formerShop { rent yearly tax } }', expected: { data: { formerShop: { rent: 100, yearly: 60, tax: 10 } } } },
      { query: '{ taxed { yearly } }', expected: { data: { taxed: { yearly: 60 } } } },
    ],
  },
}
