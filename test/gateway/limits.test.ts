import { readFileSync } from 'node:fs'
import { getIntrospectionQuery } from 'graphql'
import { expect, it } from 'vitest'
import { CONFIG, collect, connect, KEY, startGateway } from './support/start.ts'

const times = (count: number, text: (i: number) => string) => Array.from({ length: count }, (_, i) => text(i)).join(' ')

const nests = (count: number, last: string) => `${'nest { '.repeat(count)}${last}${' }'.repeat(count)}`

/** Each fragment spreads the next one twice: ten make 2,556 fields and fragments, eleven 5,116. */
const twice = (count: number) =>
  `{ nest { ...F1 } } ${times(count - 1, (i) => `fragment F${i + 1} on Nest { ... { ...F${i + 2} } ... on Nest { ...F${i + 2} } }`)} fragment F${count} on Nest { n }`

const lists = (count: number) => `${'['.repeat(count)}1${']'.repeat(count)}`

/** Each at its limit, and above it. */
const CASES: readonly { readonly what: string; readonly most: string; readonly above: string }[] = [
  { what: 'aliases', most: `{ ${times(15, (i) => `a${i}: ping`)} }`, above: `{ ${times(16, (i) => `a${i}: ping`)} }` },
  {
    what: 'aliases in fragments that are spread repeatedly',
    most: `{ ...B ...B ...B } fragment B on Query { ${times(5, (i) => `a${i}: ping`)} }`,
    above: '{ ...B ...B ...B ...B } fragment B on Query { a: ping b: ping c: ping d: ping }',
  },
  { what: 'root fields', most: `{ ${'ping '.repeat(20)} }`, above: `{ ${'ping '.repeat(21)} }` },
  {
    what: 'directives',
    most: `{ ${times(20, () => 'ping @include(if: true)')} }`,
    above: `{ ping @include(if: true) ...D ...D } fragment D on Query { ${times(10, () => 'ping @include(if: true)')} }`,
  },
  { what: 'levels', most: `{ ${nests(9, 'n')} }`, above: `{ ${nests(10, 'n')} }` },
  {
    what: 'levels inside fragments',
    most: `{ ${nests(4, '...F')} } fragment F on Nest { ${nests(5, 'n')} }`,
    above: `{ ${nests(4, '...F')} } fragment F on Nest { ${nests(5, '... { nest { n } }')} }`,
  },
  {
    what: 'list levels',
    most: `{ find(input: { query: "x", filter: { a: ${lists(8)}, b: ${lists(8)} } }) }`,
    above: `{ find(input: { query: "x", filter: [{ a: ${lists(8)} }] }) }`,
  },
  {
    what: 'list levels in a default',
    most: `query ($j: JSON = ${lists(8)}) { find(input: { query: "x", filter: $j }) }`,
    above: `query ($j: JSON = ${lists(60)}) { find(input: { query: "x", filter: $j }) }`,
  },
  { what: 'selections in fragments that are spread twice', most: twice(10), above: twice(11) },
  { what: 'selections, far too many to expand', most: twice(1), above: twice(90) },
  {
    what: 'introspections',
    most: '{ __schema { types { name } } __type(name: "Query") { name } }',
    above: '{ a: __schema { description } b: __schema { description } ...T } fragment T on Query { __type(name: "Query") { name } }',
  },
  {
    what: 'introspections by aliases',
    most: '{ __schema { types { name } all: types { name } } }',
    above: '{ __schema { types { f: fields { name } } ...S } } fragment S on __Schema { all: types { name } }',
  },
  {
    what: 'line ends',
    most: `{${'\n'.repeat(9_999)}ping\r}`,
    above: `{${'\r\n'.repeat(5_000)} ping${'\r'.repeat(2_500)}${'\n'.repeat(2_502)}}`,
  },
  { what: 'tokens', most: `# ${'x '.repeat(5_000)}\n{ ping }`, above: `{ ${'ping '.repeat(2_000)} }` },
]

for (const { what, most, above } of CASES) {
  it(`refuses more ${what} than the limit, on every transport`, async () => {
    const { gateway, post, wsUrl, seen } = await startGateway()
    const context = { caller: KEY, requestId: 'req_1', signal: new AbortController().signal }
    expect((await gateway.link.execute({ query: most }, context)).errors).toBeUndefined()
    seen.operations.length = 0
    const local = await gateway.link.execute({ query: above }, context)
    const http = await post({ query: above })
    const socket = collect(connect(wsUrl).client, above)
    await socket.over
    for (const errors of [local.errors, http.body.errors, socket.error()]) {
      expect(errors[0].extensions.code).toBe('OPERATION_TOO_COMPLEX')
    }
    expect(http.status).toBe(400)
    expect(seen.operations).toEqual([])
  })
}

it('refuses more than one `fileContent`, wherever its fragments are spread', async () => {
  const link = { execute: async () => ({ data: {} }), subscribe: () => notCalled(), openBytes: () => notCalled() }
  const supergraphSdl = readFileSync(new URL('../../schema/supergraph.graphql', import.meta.url), 'utf8')
  const { gateway } = await startGateway({ supergraphSdl, links: { billing: link, inference: link, knowledge: link } })
  const run = async (query: string) => {
    const context = { caller: KEY, requestId: 'req_1', signal: new AbortController().signal }
    return (await gateway.link.execute({ query }, context)).errors?.map(({ extensions }) => extensions.code) ?? []
  }
  const content = (alias: string) => `${alias}: fileContent(id: "file_1") { length }`
  expect(await run(`{ ${content('a')} }`)).not.toContain('OPERATION_TOO_COMPLEX')
  for (const query of [
    `{ ${content('a')} ${content('b')} }`,
    `{ ...A ...B } fragment A on Query { ${content('a')} } fragment B on Query { ... { ${content('b')} } }`,
    '{ ...A ...A } fragment A on Query { fileContent(id: "file_1") { length } }',
  ])
    expect(await run(query)).toEqual(['OPERATION_TOO_COMPLEX'])
})

function notCalled(): never {
  throw new Error('not asked')
}

it('executes the full introspection query for callers with a key, although it is deep', async () => {
  const { post } = await startGateway()
  const { body } = await post({
    query: getIntrospectionQuery({ descriptions: true, inputValueDeprecation: true, specifiedByUrl: true, directiveIsRepeatable: true }),
  })
  expect(body.errors).toBeUndefined()
  expect(body.data.__schema.queryType.name).toBe('Query')
})

it('refuses introspection, and suggests no names, when introspection is disabled', async () => {
  const { post, wsUrl } = await startGateway({ config: { ...CONFIG, introspection: false } })
  for (const query of [
    '{ __schema { types { name } } }',
    '{ __type(name: "Query") { name } }',
    '{ ...F } fragment F on Query { s: __schema { types { name } } }',
  ]) {
    const { body } = await post({ query })
    expect(body.errors[0].extensions.code).toBe('GRAPHQL_VALIDATION_FAILED')
    expect(body.data).toBeUndefined()
  }
  const { body } = await post({ query: '{ pong }' })
  expect(body.errors[0].message).toBe('Cannot query field "pong" on type "Query".')
  const socket = collect(connect(wsUrl).client, '{ pong }')
  await socket.over
  expect(socket.error()[0].message).toBe('Cannot query field "pong" on type "Query".')
})

it('suggests names when the schema may be read anyway', async () => {
  const { post } = await startGateway()
  expect((await post({ query: '{ pong }' })).body.errors[0].message).toContain('Did you mean "ping"?')
})

it('refuses cyclic introspection', async () => {
  const { post } = await startGateway()
  const query = `{ __schema { types { ${'fields { type { '.repeat(6)} name ${'} } '.repeat(6)} } } }`
  expect((await post({ query })).body.errors[0].extensions.code).toBe('GRAPHQL_VALIDATION_FAILED')
})
