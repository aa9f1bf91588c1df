import { composeServices } from '@apollo/composition'
import { buildSubgraphSchema } from '@apollo/subgraph'
import { parse } from 'graphql'
import { localLink } from '../../../cli/links/local-link.ts'
import { KisError } from '../../../subgraphs/common/errors.ts'
import type { Link, LinkContext } from '../../../subgraphs/common/link/link.ts'
import type { Subgraph, SubgraphName } from '../../../subgraphs/common/link/subgraph.ts'
import { endableIterator } from '../../../subgraphs/common/process/endable-iterator.ts'
import { silentLog } from '../../../subgraphs/common/process/log.ts'

const HEAD = 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key", "@inaccessible"])'

/**
 * `inference` streams events that hold documents of `knowledge`, whose authors live in `billing`: three subgraphs, two
 * hops.
 */
const SDL: Record<SubgraphName, string> = {
  inference: `${HEAD}
    type Query { ping(n: Int = 1): Int! mood: Mood slow: Int echo(text: String!): String nest: Nest find(input: FindInput!): Int upload(input: UploadInput!): Int }
    input FindInput { query: String! limit: Int = 10 mood: Mood tags: [String!] filter: JSON near: FindInput }
    input UploadInput { name: String! contentBase64: String! }
    type Mutation { poke: Int! }
    type Subscription { ticks(count: Int!, mode: String, input: FindInput): Tick! others: Int }
    type Tick { n: Int! text: String! json: JSON documents: [Document!]! thing: Thing flaky: Int mood: Mood author: Author filler: String }
    type Nest { nest: Nest n: Int }
    scalar JSON
    enum Mood { CALM SECRET @inaccessible }
    interface Thing { id: ID! }
    type Pen implements Thing { id: ID! ink: String! }
    type Cup implements Thing { id: ID! size: Int! }
    type Document @key(fields: "id", resolvable: false) { id: ID! }
    type Author @key(fields: "id", resolvable: false) { id: ID! }`,
  knowledge: `${HEAD}
    type Query { documents: [Document!] }
    type Document @key(fields: "id") { id: ID! title(prefix: String): String boom: String author: Author authors: [Author!]! }
    type Author @key(fields: "id", resolvable: false) { id: ID! }`,
  billing: `${HEAD}
    type Query { me: Author }
    type Author @key(fields: "id") { id: ID! name: String broken: String }`,
}

/** What the subgraphs saw and did. */
export interface Seen {
  opened: number
  pulled: number
  ended: number
  aborted: number
  readonly contexts: LinkContext[]
  /** Every operation that reached a subgraph, `inference: {…}`. */
  readonly operations: string[]
  readonly representations: number[]
}

export interface Shop {
  readonly supergraphSdl: string
  readonly links: Record<SubgraphName, Link>
  readonly seen: Seen
  /** Lets the subscriptions of mode `slow start` begin. */
  start(): void
}

const { supergraphSdl = '', errors: composition } = composeServices(
  Object.entries(SDL).map(([name, sdl]) => ({ name, url: `http://${name}`, typeDefs: parse(sdl) })),
)
if (composition) throw new Error(composition.map(({ message }) => message).join('\n'))

/** Three subgraphs whose stream does what its `mode` says. */
export function shop(): Shop {
  const seen: Seen = { opened: 0, pulled: 0, ended: 0, aborted: 0, contexts: [], operations: [], representations: [] }
  let start: () => void = () => undefined
  const started = new Promise<void>((resolve) => {
    start = resolve
  })
  const stream = (count: number, mode: string) => {
    seen.opened++
    let n = 0
    return endableIterator(
      async () => {
        seen.pulled++
        if (mode === 'refused') throw new KisError('insufficient_quota', 'No money.')
        if (n === count) {
          if (mode === 'idle' || mode === 'slow start') return new Promise<never>(() => undefined)
          if (mode === 'breaks') throw new Error('secret detail')
          return { done: true, value: undefined }
        }
        n++
        return { done: false, value: { ticks: tick(n, mode) } }
      },
      () => void seen.ended++,
    )
  }
  const documents = [
    { id: 'a', author: { id: '1' }, authors: [{ id: '1' }, { id: '2' }] },
    { id: 'b', author: { id: '1' }, authors: [{ id: '2' }] },
    { id: 'c', author: { id: '2' }, authors: [] },
  ]
  const links = Object.fromEntries(
    Object.entries({
      inference: {
        Query: {
          ping: (_: unknown, { n }: { n: number }) => n,
          mood: () => 'SECRET',
          nest: () => ({ n: 1 }),
          find: (_: unknown, { input }: { input: { limit: number } }) => input.limit,
          upload: (_: unknown, { input }: { input: { contentBase64: string } }) => input.contentBase64.length,
          echo: (_: unknown, { text }: { text: string }) => text,
          slow: (_parent: unknown, _args: unknown, { signal }: LinkContext) =>
            new Promise<null>((resolve) => {
              seen.opened++
              signal.addEventListener('abort', () => {
                seen.aborted++
                resolve(null)
              })
            }),
        },
        Mutation: { poke: () => 7 },
        Subscription: {
          ticks: {
            subscribe: async (_parent: unknown, { count, mode = 'ends' }: { count: number; mode?: string }) => {
              if (mode === 'slow start') await started
              return stream(count, mode)
            },
          },
        },
        Tick: {
          flaky: ({ n }: { n: number }) => {
            if (n === 2) throw new KisError('engine_error', 'The second one fails.')
            return n
          },
        },
        Thing: { __resolveType: (thing: object) => ('ink' in thing ? 'Pen' : 'Cup') },
      },
      knowledge: {
        Query: { documents: () => documents },
        Document: {
          __resolveReference: ({ id }: { id: string }) => documents.find((document) => document.id === id) ?? null,
          title: ({ id }: { id: string }, { prefix = '' }: { prefix?: string }) => `${prefix}Document ${id}`,
          boom: ({ id }: { id: string }) => {
            if (id === 'b') throw new KisError('not_found', 'No such page.', { param: 'page' })
            return `fine ${id}`
          },
        },
      },
      billing: {
        Query: { me: () => ({ id: '1' }) },
        Author: {
          __resolveReference: ({ id }: { id: string }) => ({ id }),
          name: ({ id }: { id: string }) => (id === '2' ? null : `Author ${id}`),
          broken: () => {
            throw new Error('password=hunter2')
          },
        },
      },
    }).map(([name, resolvers]) => {
      const subgraph: Subgraph = {
        name: name as SubgraphName,
        schema: buildSubgraphSchema({ typeDefs: parse(SDL[name as SubgraphName]), resolvers: resolvers as never }),
        toResolverContext: (context) => {
          seen.contexts.push(context)
          return { deps: null, ...context }
        },
        problems: async () => [],
        [Symbol.asyncDispose]: async () => undefined,
      }
      return [name, noting(localLink(subgraph, silentLog), name, seen)]
    }),
  ) as Record<SubgraphName, Link>
  return { supergraphSdl, links, seen, start: () => start() }
}

function tick(n: number, mode: string) {
  return {
    n,
    text: `tick ${n}`,
    json: { n, list: [{ deep: true }] },
    documents: [{ id: 'a' }, { id: 'b' }, { id: 'a' }],
    thing: n % 2 ? { id: 'p', ink: 'blue' } : { id: 'c', size: 3 },
    mood: n % 2 ? 'CALM' : 'SECRET',
    author: { id: '1' },
    filler: mode === 'large' ? 'x'.repeat(900_000) : '',
  }
}

function noting(link: Link, name: string, seen: Seen): Link {
  return {
    ...link,
    execute(operation, context) {
      seen.operations.push(`${name}: ${operation.query}`)
      const { representations } = operation.variables ?? {}
      if (Array.isArray(representations)) seen.representations.push(representations.length)
      return link.execute(operation, context)
    },
    subscribe(operation, context) {
      seen.operations.push(`${name}: ${operation.query}`)
      return link.subscribe(operation, context)
    },
  }
}
