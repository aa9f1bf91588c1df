import { byKey, type Suite } from './suite.ts'

const finds = [
  { __typename: 'Scroll', id: 's1', year: 900, lines: 40, keeper: { __typename: 'Museum', id: 'm1' } },
  { __typename: 'Coin', id: 'c1', year: 1200, metal: 'silver', keeper: { __typename: 'Person', name: 'Amal' } },
]
const works = [{ __typename: 'Play', id: 'w1', name: 'The Shadow', acts: 3 }]
const poem = { __typename: 'Poem', id: 'p1', title: 'Bānat Suʿād', verses: 58, meter: 'basit' }

const FRIENDS = [
  { id: 'r1', name: 'Zayd' },
  { id: null, name: 'nobody' },
]
const friends = () => FRIENDS.map((friend) => ({ __typename: friend.id === null ? 'Guest' : 'Reader', ...friend }))

export const ABSTRACT_TYPES: Readonly<Record<string, Suite>> = {
  'interface-object-and-override': {
    subgraphs: {
      media: {
        sdl: `type Query { all: [Media!]! } interface Media @key(fields: "id") { id: ID! }
          type Book implements Media @key(fields: "id") { id: ID! pages: Int! } type Film implements Media @key(fields: "id") { id: ID! minutes: Int! title: String! }`,
        resolvers: {
          Query: {
            all: () => [
              { __typename: 'Book', id: 'b', pages: 9 },
              { __typename: 'Film', id: 'f', minutes: 90, title: 'old' },
            ],
          },
          Media: { __resolveReference: ({ id }: { id: string }) => ({ __typename: id === 'b' ? 'Book' : 'Film', id }) },
        },
      },
      rating: {
        sdl: 'type Media @key(fields: "id") @interfaceObject { id: ID! stars: Int! }',
        resolvers: { Media: { __resolveReference: ({ id }: { id: string }) => ({ id, stars: id === 'b' ? 5 : 3 }) } },
      },
      titles: {
        sdl: 'type Film @key(fields: "id") { id: ID! title: String! @override(from: "media") }',
        resolvers: { Film: { __resolveReference: ({ id }: { id: string }) => ({ id, title: 'new' }) } },
      },
    },
    tests: [
      {
        query: '{ all { __typename id stars ... on Book { pages } ... on Film { title } } }',
        expected: {
          data: {
            all: [
              { __typename: 'Book', id: 'b', stars: 5, pages: 9 },
              { __typename: 'Film', id: 'f', stars: 3, title: 'new' },
            ],
          },
        },
      },
    ],
  },

  // A subgraph that knows only the interface gives the objects; their types come from another.
  'interface-object-as-the-start': {
    subgraphs: {
      works: {
        sdl: `type Query { works: [Work!]! } interface Work @key(fields: "id") { id: ID! name: String! }
          type Play implements Work @key(fields: "id") { id: ID! name: String! acts: Int! }
          type Poem implements Work @key(fields: "id") { id: ID! name: String! }`,
        resolvers: {
          Query: { works: () => works },
          Work: { __resolveReference: byKey(works, 'id') },
          Play: { __resolveReference: byKey(works, 'id') },
        },
      },
      fame: {
        sdl: `type Query { famous: [Work!]! }
          type Work @key(fields: "id") @interfaceObject { id: ID! name: String! @external fame: String! @requires(fields: "name") }`,
        resolvers: {
          Query: { famous: () => [{ id: 'w1' }] },
          Work: { fame: ({ name }: { name: string }) => `everyone knows ${name}` },
        },
      },
    },
    tests: [
      { query: '{ famous { id } }', expected: { data: { famous: [{ id: 'w1' }] } } },
      { query: '{ famous { __typename } }', expected: { data: { famous: [{ __typename: 'Play' }] } } },
      {
        query: '{ famous { name fame ... on Play { acts again: fame } ... on Poem { id } } }',
        expected: {
          data: { famous: [{ name: 'The Shadow', fame: 'everyone knows The Shadow', acts: 3, again: 'everyone knows The Shadow' }] },
        },
      },
      { query: '{ works { fame } }', expected: { data: { works: [{ fame: 'everyone knows The Shadow' }] } } },
      { query: '{ famous { ... on Poem { fame } } }', expected: { data: { famous: [{}] } } },
    ],
  },

  'interfaces-over-subgraphs': {
    subgraphs: {
      archive: {
        sdl: `type Query { finds: [Find!]! } interface Find { id: ID! year: Int! keeper: Keeper } interface Written { lines: Int! }
          type Scroll implements Find & Written @key(fields: "id") { id: ID! year: Int! keeper: Keeper lines: Int! }
          type Coin implements Find @key(fields: "id") { id: ID! year: Int! keeper: Keeper metal: String! }
          union Keeper = Museum | Person type Museum @key(fields: "id") { id: ID! } type Person { name: String! }`,
        resolvers: {
          Query: { finds: () => finds },
          Scroll: { __resolveReference: byKey(finds, 'id') },
          Coin: { __resolveReference: byKey(finds, 'id') },
        },
      },
      studies: {
        sdl: `type Scroll @key(fields: "id") { id: ID! language: String! lines: Int! @external hours: Int! @requires(fields: "lines") }
          type Coin @key(fields: "id") { id: ID! mint: String! }`,
        resolvers: {
          Scroll: { language: () => 'Syriac', hours: ({ lines }: { lines: number }) => lines / 10 },
          Coin: { mint: () => 'Wasit' },
        },
      },
      places: {
        sdl: 'type Museum @key(fields: "id") { id: ID! city: String! }',
        resolvers: { Museum: { city: () => 'Cairo' } },
      },
    },
    tests: [
      {
        query:
          '{ finds { __typename kind: __typename year ... on Written { lines } ... on Scroll { language hours } ... on Coin { mint } } }',
        expected: {
          data: {
            finds: [
              { __typename: 'Scroll', kind: 'Scroll', year: 900, lines: 40, language: 'Syriac', hours: 4 },
              { __typename: 'Coin', kind: 'Coin', year: 1200, mint: 'Wasit' },
            ],
          },
        },
      },
      {
        query:
          '{ finds { ...Kept } } fragment Kept on Find { keeper { ...Who } } fragment Who on Keeper { ... on Museum { name: city } ... on Person { name } }',
        expected: { data: { finds: [{ keeper: { name: 'Cairo' } }, { keeper: { name: 'Amal' } }] } },
      },
      ...[true, false].map((deep) => ({
        query: `query ($deep: Boolean = ${deep}) { finds { id ... on Scroll @include(if: $deep) { language } ... on Coin @skip(if: $deep) { mint } } }`,
        expected: {
          data: {
            finds: [
              { id: 's1', ...(deep && { language: 'Syriac' }) },
              { id: 'c1', ...(!deep && { mint: 'Wasit' }) },
            ],
          },
        },
      })),
      {
        query:
          'query ($no: Boolean = false) { finds { ... on Scroll { hours @include(if: $no) ... on Find { ... on Written { lines } } } } }',
        expected: { data: { finds: [{ lines: 40 }, {}] } },
      },
    ],
  },

  // The members of a union have a field of one name but not of one type in the subgraph, so the plan renames it.
  'fields-of-different-types': {
    subgraphs: {
      members: {
        sdl: `type Query { members: [Member!]! } union Member = Reader | Guest
          type Reader @key(fields: "id") { id: ID! name: String! friends: [Member!]! } type Guest { id: ID name: String! friends: [Member!]! }`,
        resolvers: {
          Query: { members: friends },
          Reader: { __resolveReference: ({ id }: { id: string }) => ({ id, name: 'Zayd' }), friends },
          Guest: { friends },
        },
      },
      cards: {
        sdl: 'type Query { readers: [Reader!]! } type Reader { id: ID @shareable }',
        resolvers: { Query: { readers: () => [{ id: 'r1' }] } },
      },
    },
    tests: [
      {
        query: `{ readers { id name } members { ...Both ... on Reader { friends { ...Both } } ... on Guest { friends { ...Both } } } }
          fragment Both on Member { ... on Reader { id name } ... on Guest { id name } }`,
        expected: {
          data: {
            readers: [{ id: 'r1', name: 'Zayd' }],
            members: [
              { id: 'r1', name: 'Zayd', friends: FRIENDS },
              { id: null, name: 'nobody', friends: FRIENDS },
            ],
          },
        },
      },
    ],
  },

  // No subgraph can tell the id of every node, so some operations have no plan.
  'operations-without-a-plan': {
    subgraphs: {
      people: {
        sdl: `type Query { node: Node @shareable } interface Node { id: ID! } type Person implements Node @key(fields: "id") { id: ID! }
          type Talk implements Node @key(fields: "id") { id: ID! @external speaker: String! }`,
        resolvers: { Query: { node: () => ({ __typename: 'Person', id: 'x' }) } },
      },
      talks: {
        sdl: `type Query { node: Node @shareable } interface Node { id: ID! } type Person implements Node @key(fields: "id") { id: ID! @external age: Int! }
          type Talk implements Node @key(fields: "id") { id: ID! }`,
        resolvers: {
          Query: { node: () => ({ __typename: 'Person', age: 30 }) },
          Person: { __resolveReference: () => ({ age: 30 }) },
        },
      },
    },
    tests: [
      { query: '{ node { id } }', expected: { errors: true } },
      { query: '{ node { __typename ... on Talk { id } } }', expected: { data: { node: { __typename: 'Person' } } } },
      { query: '{ node { ... on Person { id age } } }', expected: { data: { node: { id: 'x', age: 30 } } } },
    ],
  },

  'unions-with-different-members': {
    subgraphs: {
      readings: {
        sdl: `type Query { picked: Piece @shareable read: Piece } union Piece = Poem | Speech
          type Poem @key(fields: "id") { id: ID! title: String! @shareable verses: Int! } type Speech { minutes: Int! }`,
        resolvers: { Query: { picked: () => poem, read: () => poem }, Poem: { __resolveReference: () => poem } },
      },
      songs: {
        sdl: `type Query { picked: Piece @shareable sung: Piece } union Piece = Poem | Song
          type Poem @key(fields: "id") { id: ID! title: String! @shareable meter: String! } type Song { singer: String! }`,
        resolvers: {
          Query: { picked: () => poem, sung: () => ({ __typename: 'Song', singer: 'Ziryab' }) },
          Poem: { __resolveReference: () => poem },
        },
      },
    },
    tests: [
      { query: '{ picked { ... on Song { singer } } }', expected: { data: { picked: {} } } },
      {
        query: '{ picked { ... on Poem { title verses meter } ... on Song { singer } ... on Speech { minutes } } }',
        expected: { data: { picked: { title: poem.title, verses: 58, meter: 'basit' } } },
      },
      {
        query: '{ read { __typename ... on Song { singer } ... on Poem { meter } } }',
        expected: { data: { read: { __typename: 'Poem', meter: 'basit' } } },
      },
      { query: '{ sung { ... on Song { singer } ... on Speech { minutes } } }', expected: { data: { sung: { singer: 'Ziryab' } } } },
    ],
  },
}
