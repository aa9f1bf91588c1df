import fc from 'fast-check'
import {
  buildSchema,
  type ExecutionResult,
  execute,
  executeSync,
  type GraphQLError,
  type GraphQLFieldResolver,
  isObjectType,
  isUnionType,
  parse,
  validate,
} from 'graphql'
import { describe, expect, it, onTestFinished } from 'vitest'
import { compileOperation } from './compiled-operation.ts'
import { compileVariables } from './input-values.ts'
import { plainOperation } from './plain-operation.ts'

const schema = buildSchema(`
  interface Named { name: String }
  union Any = Book | Author
  enum Kind { OLD NEW }
  input Range { from: Int! = 1 to: Int }
  type Book implements Named {
    id: ID! name: String title: String! kind: Kind pages(range: Range, words: [String!] = ["a"]): [Int!]
    author: Author sure: Author! next: Book others: [Book] all: [Book!]! rows: [[Author!]] any: Any named: Named!
  }
  type Author implements Named { id: ID! name: String age: Int! books: [Book!] first: Book! }
  type Query { book: Book! maybe: Book authors: [Author!] any: [Any]! sum(of: [Int!]!): Int plain: String }
  type Mutation { one: Book two(by: Int! = 2): Int! three: Author! }
  type Subscription { books(first: Int = 1): Book }
`)

/** What a resolver of this seed gives. The same seed gives the same. */
interface Source {
  readonly seed: number
  readonly of: string
}

const ODDS = ['null', 'throws', 'error', 'rejects', 'later', 'later null', 'foreign later'] as const
let isSync = false

/** Numbers of 32 bits that look random. */
function mix(...parts: readonly (number | string)[]): number {
  let hash = 2_166_136_261
  for (const letter of parts.join('|')) hash = Math.imul(hash ^ letter.charCodeAt(0), 16_777_619)
  hash = Math.imul(hash ^ (hash >>> 15), 2_246_822_507)
  return (hash ^ (hash >>> 13)) >>> 0
}

function outcome(seed: number, give: () => unknown): unknown {
  const odd = ODDS[seed % 28]
  switch (odd) {
    case 'null':
      return null
    case 'throws':
      throw new Error(`thrown ${seed}`)
    case 'error':
      return new Error(`given ${seed}`)
    case 'rejects':
      return isSync ? give() : Promise.reject(new Error(`rejected ${seed}`))
    case 'later':
      // What `give` throws rejects.
      return isSync ? give() : new Promise(setImmediate).then(give)
    case 'later null':
      return isSync ? null : Promise.resolve(null)
    case 'foreign later':
      // biome-ignore lint/suspicious/noThenProperty: a promise of another library
      return isSync ? give() : { then: (resolve: (value: unknown) => void) => resolve(give()) }
    default:
      return give()
  }
}

function valueOfType(type: string, seed: number): unknown {
  const list = /^\[(.*)\]!?$/.exec(type)
  if (list) return Array.from({ length: seed % 4 }, (_, at) => outcome(mix(seed, at), () => valueOfType(list[1]!, mix(seed, at, 'item'))))
  const name = type.replace('!', '')
  if (name === 'Kind') return seed % 9 === 0 ? 'LOST' : 'NEW'
  if (name === 'Int') return seed % 11 === 0 ? 'many' : seed % 1000
  if (name === 'String' || name === 'ID') return `text ${seed}`
  const __typename = name === 'Any' || name === 'Named' ? ['Book', 'Author', seed % 7 === 0 ? 'Query' : 'Book'][seed % 3] : name
  return { seed, of: name, __typename }
}

for (const type of Object.values(schema.getTypeMap())) {
  if (isUnionType(type)) type.resolveType = (value: { __typename: string }) => value.__typename
  if (!isObjectType(type) || type.name.startsWith('__')) continue
  for (const [at, field] of Object.values(type.getFields()).entries()) {
    const resolve: GraphQLFieldResolver<Source | undefined, number> = (source, args, context) => {
      const seed = mix(source?.seed ?? context, field.name, JSON.stringify(args))
      return outcome(seed, () => valueOfType(String(field.type), seed))
    }
    // Some without a resolver: a property, or a function that is one.
    if (type.name === 'Author' && at < 2) continue
    field.resolve = resolve
  }
}

const QUERIES = [
  '{ book { id title author { id name age } } }',
  '{ maybe { id: title title: id __typename } again: maybe { sure { age } } }',
  '{ authors { age books { title all { id } } first { name } } }',
  'query ($range: Range, $words: [String!]) { book { a: pages(range: $range) b: pages(words: $words, range: { to: 3 }) c: pages } }',
  'query ($to: Int) { maybe { next { pages(range: { to: $to }) } others { pages(range: { to: $to }) kind } } }',
  '{ any { __typename ... on Book { id named { name ... on Author { age } } } ...A } } fragment A on Author { id ...N } fragment N on Named { name }',
  '{ book { next { id } next { title author { id } } ... { next { author { age } } } ... on Named { name } } }',
  '{ book { rows { id first { sure { age } } } all { sure { first { all { id title } } } } } }',
  '{ maybe { others { any { ... on Author { age } } named { name } } } authors { name id } }',
  'query ($of: [Int!]!) { sum(of: $of) plain }',
  'mutation { one { all { id } } two three { age first { id } } }',
  'mutation { a: two(by: 1) b: two(by: 7) one { sure { id } } }',
]
const VARIABLES = { range: { to: 2 }, words: ['x'], to: 5, of: [1] }

function bind(query: string, context: unknown) {
  const plain = plainOperation(parse(query))!
  const variables = compileVariables(schema, plain.operation)(VARIABLES)
  if ('errors' in variables) throw variables.errors[0]
  return compileOperation(schema, plain)(context, variables.coerced)
}

/** The errors by where they end in the answer: the first null on their path. Which error made it null is a race. */
function placesOf({ data, errors = [] }: ExecutionResult): readonly string[] {
  const placeOf = ({ path = [] }: GraphQLError) => {
    let value: unknown = data
    let depth = 0
    while (value !== null && value !== undefined && depth < path.length) value = (value as Record<string | number, unknown>)[path[depth++]!]
    return path.slice(0, depth).join('.')
  }
  return [...new Set(errors.map(placeOf))].toSorted()
}

/** A type that does not fit is told in other words. */
function inTheirWords({ message, path }: GraphQLError) {
  return { path, message: /has the type|Runtime Object type/.test(message) ? 'another type' : message }
}

describe('a compiled operation', () => {
  it('is tried with valid operations', () => {
    for (const query of QUERIES) expect(validate(schema, parse(query))).toEqual([])
  })

  it('answers as graphql-js does where all resolvers answer at once', async () => {
    isSync = true
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...QUERIES), fc.nat(), async (query, seed) => {
        const theirs = executeSync({ schema, document: parse(query), contextValue: seed, variableValues: VARIABLES })
        const ours = await bind(query, seed).execute()
        expect({ ...ours, errors: ours.errors?.map(inTheirWords) }).toEqual({ ...theirs, errors: theirs.errors?.map(inTheirWords) })
      }),
      { numRuns: 2_000 },
    )
  })

  it('answers as graphql-js does where some answer later', async () => {
    isSync = false
    // graphql-js leaves the promises of a list unhandled if a later item throws.
    const listeners = process.rawListeners('unhandledRejection') as (() => void)[]
    process.removeAllListeners('unhandledRejection').on('unhandledRejection', () => {})
    onTestFinished(async () => {
      // What it left goes on for some turns.
      for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate)
      process.removeAllListeners('unhandledRejection')
      for (const each of listeners) process.on('unhandledRejection', each)
    })
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...QUERIES), fc.nat(), async (query, seed) => {
        const theirs = await execute({ schema, document: parse(query), contextValue: seed, variableValues: VARIABLES })
        const ours = await bind(query, seed).execute()
        expect(ours.data).toEqual(theirs.data)
        expect(placesOf(ours)).toEqual(placesOf(theirs))
        expect(Object.keys(ours)).toEqual(Object.keys(theirs))
      }),
      { numRuns: 2_000 },
    )
  })

  it('keeps the order of the fields, and calls a function that is a property', async () => {
    const own = buildSchema('type Query { late: Int early(by: Int): Int later: [Int] }')
    const plain = plainOperation(parse('query ($by: Int) { late early(by: $by) later }'))!
    const source = {
      late: new Promise((resolve) => setImmediate(() => resolve(1))),
      early: ({ by }: { by: number }, context: number) => by + context,
      later: Promise.resolve([Promise.resolve(3), 4]),
    }
    const answer = await compileOperation(own, plain)(40, { by: 2 }).execute(source)
    expect(JSON.stringify(answer)).toBe('{"data":{"late":1,"early":42,"later":[3,4]}}')
  })

  it('makes one change after the other, and none after one that makes the answer null', async () => {
    const own = buildSchema('type Query { a: Int } type Mutation { change(to: Int!): Int! }')
    const plain = plainOperation(parse('mutation { a: change(to: 1) b: change(to: 2) c: change(to: 3) d: change(to: 4) }'))!
    const log: string[] = []
    const change = async ({ to }: { to: number }) => {
      log.push(`begin ${to}`)
      await new Promise(setImmediate)
      log.push(`end ${to}`)
      if (to === 3) throw new Error('no')
      return to
    }
    const { data, errors } = await compileOperation(own, plain)(null, {}).execute({ change })
    expect(data).toBeNull()
    expect(errors).toMatchObject([{ message: 'no', path: ['c'] }])
    expect(log).toEqual(['begin 1', 'end 1', 'begin 2', 'end 2', 'begin 3', 'end 3'])
  })

  it('gives all objects of an answer one object of arguments, and each execution its own', () => {
    const own = buildSchema('type Item { of(upTo: Int!): Int } type Query { items: [Item!] }')
    const plain = plainOperation(parse('query ($n: Int!) { items { of(upTo: $n) } }'))!
    const seen: object[] = []
    const item = { of: (args: object) => void seen.push(args) }
    const compiled = compileOperation(own, plain)
    for (const n of [1, 2]) compiled(null, { n }).execute({ items: [item, item] })
    expect(seen).toEqual([{ upTo: 1 }, { upTo: 1 }, { upTo: 2 }, { upTo: 2 }])
    expect(new Set(seen).size).toBe(2)
  })
})

describe('an answer', () => {
  const own = buildSchema('type Item { sure: Int! slow: Int } type Query { item: Item slow: Int sure: Int! }')
  const run = async (query: string, source: object) => compileOperation(own, plainOperation(parse(query))!)(null, {}).execute(source)

  it.each([
    ['{ item { sure slow } }', { item: null }],
    ['{ sure slow }', null],
  ])('waits for what an error has made needless: %s', async (query, data) => {
    let isOver = false
    const fields = {
      sure: () => Promise.reject(new Error('no')),
      slow: async () => {
        await new Promise((resolve) => setTimeout(resolve, 20))
        isOver = true
        throw new Error('nobody hears of this')
      },
    }
    const answer = await run(query, { ...fields, item: fields })
    expect(isOver).toBe(true)
    expect(answer).toMatchObject({ data, errors: [{ message: 'no' }] })
    expect(answer.errors).toHaveLength(1)
  })

  it('comes where a promise cannot be waited for', async () => {
    class Broken extends Promise<number> {
      // biome-ignore lint/suspicious/noThenProperty: the defect
      override then(): never {
        throw new Error('no then')
      }
    }
    expect(await run('{ slow }', { slow: () => Broken.resolve(1) })).toMatchObject({
      data: { slow: null },
      errors: [{ message: 'no then' }],
    })
  })
})

describe('a compiled subscription', () => {
  const own = buildSchema('type Event { n: Int! late: Int } type Query { a: Int } type Subscription { events(upTo: Int): Event }')
  const field = own.getSubscriptionType()!.getFields().events!
  const open = (query: string, variables: Record<string, unknown> = {}) =>
    compileOperation(own, plainOperation(parse(query))!)('me', variables)

  it('opens its events with the arguments, and reads each', async () => {
    const seen: unknown[] = []
    field.subscribe = async function* (_root: unknown, args: unknown, context: unknown) {
      seen.push(args, context)
      yield { n: 1, late: Promise.resolve(2) }
      yield { n: null }
    }
    field.resolve = (event) => event
    const bound = open('subscription ($upTo: Int) { all: events(upTo: $upTo) { n late } }', { upTo: 5 })
    const results: unknown[] = []
    for await (const event of await bound.subscribe()) results.push(await bound.execute(event))
    expect(seen).toEqual([{ upTo: 5 }, 'me'])
    expect(results).toMatchObject([{ data: { all: { n: 1, late: 2 } } }, { data: { all: null }, errors: [{ path: ['all', 'n'] }] }])
  })

  it.each([
    ['throws', () => Promise.reject(new Error('no'))],
    ['gives an error', () => new Error('no')],
  ])('tells with its path what its resolver %s', async (_how, subscribe) => {
    field.subscribe = subscribe
    await expect(open('subscription { all: events { n } }').subscribe()).rejects.toMatchObject({ message: 'no', path: ['all'] })
  })
})

describe('an operation that is left to graphql-js', () => {
  it.each([
    'query ($on: Boolean!) { plain @include(if: $on) }',
    'query ($on: Boolean!) { ... @skip(if: $on) { plain } }',
    'query ($on: Boolean!) { ...Q @skip(if: $on) } fragment Q on Query { plain }',
    'query ($on: Boolean!) { ...Q } fragment Q on Query { plain @skip(if: $on) }',
    '{ __schema { description } }',
    '{ plain __type(name: "Book") { name } }',
    '{ __proto__: plain }',
    'query A { plain } query B { plain }',
    // 2^11 fields by 12 fragments.
    `{ maybe { ...F0 } } ${Array.from({ length: 11 }, (_, at) => `fragment F${at} on Book { a: next { ...F${at + 1} } b: next { ...F${at + 1} } }`).join(' ')} fragment F11 on Book { id }`,
  ])('%s', (query) => {
    expect(validate(schema, parse(query))).toEqual([])
    expect(plainOperation(parse(query))).toBeNull()
  })
})
