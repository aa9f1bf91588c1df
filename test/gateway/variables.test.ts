import { expect, it } from 'vitest'
import { CONFIG, collect, connect, KEY, startGateway } from './support/start.ts'

const FIND = 'query($input: FindInput!) { find(input: $input) }'
const TICKS = 'subscription($input: FindInput!) { ticks(count: 1, input: $input) { n } }'
const UPLOAD = 'query($input: UploadInput!) { upload(input: $input) }'

/** An answer about bad variables: complaints of 500 characters each, ten of them, and what stands around them. */
const MAX_RESPONSE_CHARACTERS = 10_000

const nested = (levels: number): unknown => JSON.parse('{"a":'.repeat(levels) + 1 + '}'.repeat(levels))
const unknown = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`q${i}`, 1]))

const REFUSED: readonly { readonly what: string; readonly input: unknown; readonly code: string; readonly says: string }[] = [
  { what: '20,000 unknown fields', input: unknown(20_000), code: 'INVALID_VARIABLES', says: '"q0"' },
  {
    what: 'a list of 2,000 objects for strings',
    input: { query: 'x', tags: Array.from({ length: 2_000 }, () => ({})) },
    code: 'INVALID_TYPE',
    says: 'input.tags[0]',
  },
  {
    what: 'a list of 2,000 numbers for strings',
    input: { query: 'x', tags: Array.from({ length: 2_000 }, () => 1) },
    code: 'INVALID_VARIABLES',
    says: 'input.tags[0]',
  },
  {
    what: 'a list of 100,000 strings',
    input: { query: 'x', tags: Array.from({ length: 100_000 }, () => 'x') },
    code: 'ARRAY_ABOVE_MAX_LENGTH',
    says: 'input.tags',
  },
  {
    what: 'a string of over a million characters',
    input: { query: 'x'.repeat(1_048_577) },
    code: 'STRING_ABOVE_MAX_LENGTH',
    says: 'input.query',
  },
  { what: 'a wide object for a string', input: { query: unknown(20_000) }, code: 'INVALID_TYPE', says: 'input.query' },
  {
    what: 'an enum value of 100,000 characters',
    input: { query: 'x', mood: 'C'.repeat(100_000) },
    code: 'INVALID_REQUEST',
    says: 'input.mood',
  },
  { what: 'a field whose name has 100,000 characters', input: { ['q'.repeat(100_000)]: 1 }, code: 'INVALID_REQUEST', says: "'input'" },
  { what: 'JSON with 1,000 levels', input: { query: 'x', filter: nested(1_000) }, code: 'INVALID_REQUEST', says: 'input.filter' },
  { what: 'a list for an object', input: [[[[[]]]]], code: 'INVALID_VARIABLES', says: '$input' },
]

for (const { what, input, code, says } of REFUSED) {
  it(`refuses ${what} with a short error, on every transport, without a subgraph request`, async () => {
    const { gateway, post, wsUrl, seen } = await startGateway({ config: { ...CONFIG, maxBodyBytes: 4 * 1024 * 1024 } })
    const context = { caller: KEY, requestId: 'req_1', signal: new AbortController().signal }
    const http = await post({ query: FIND, variables: { input } })
    const local = await gateway.link.execute({ query: FIND, variables: { input: input as never } }, context)
    const responses = [http.body.errors, local.errors]
    // A message to a socket is shorter.
    if (JSON.stringify(input).length < 500_000)
      for (const query of [FIND, TICKS]) {
        const socket = collect(connect(wsUrl).client, query, { input })
        await socket.over
        responses.push(socket.error() ?? socket.results[0].errors)
      }
    for (const errors of responses) {
      expect(errors[0].extensions.code).toBe(code)
      expect(errors.map(({ message }: Error) => message).join('\n')).toContain(says)
      expect(JSON.stringify(errors).length).toBeLessThan(MAX_RESPONSE_CHARACTERS)
    }
    expect(seen.operations).toEqual([])
  })
}

it('refuses a body of more values than any operation needs before it reads them, without a subgraph request', async () => {
  const { post, seen } = await startGateway({ config: { ...CONFIG, maxBodyBytes: 4 * 1024 * 1024 } })
  for (const extra of [{ variables: { input: [Array.from({ length: 700_000 }, () => 0)] } }, { extensions: unknown(110_000) }]) {
    const { status, body } = await post({ query: FIND, ...extra })
    expect([status, body.errors[0].extensions.code]).toEqual([413, 'PAYLOAD_TOO_LARGE'])
  }
  expect(seen.operations).toEqual([])
})

it('refuses 8,000 unknown fields a hundred times while the process stays responsive', async () => {
  const { post } = await startGateway()
  const body = JSON.stringify({ query: FIND, variables: { input: unknown(8_000) } })
  let underWay = true
  let longestMs = 0
  const watching = (async () => {
    while (underWay) {
      const at = performance.now()
      await post({ query: '{ ping }' })
      longestMs = Math.max(longestMs, performance.now() - at)
    }
  })()
  for (let i = 0; i < 100; i++) expect((await post(body)).status).toBe(400)
  underWay = false
  await watching
  // One such answer took 24 s when each complaint printed the whole input.
  expect(longestMs).toBeLessThan(2_000)
})

it('accepts valid variables: defaults, one value for a list, deep enough JSON, and a file of any length', async () => {
  const { post } = await startGateway({ config: { ...CONFIG, maxBodyBytes: 4 * 1024 * 1024 } })
  const found = await post({ query: FIND, variables: { input: { query: 'x', tags: 'one', filter: nested(60), near: { query: 'y' } } } })
  expect(found.body).toEqual({ data: { find: 10 } })
  const contentBase64 = 'x'.repeat(2_000_000)
  expect((await post({ query: UPLOAD, variables: { input: { name: 'a', contentBase64 } } })).body).toEqual({ data: { upload: 2_000_000 } })
  // The content is as long as a variable of its own, whatever its name.
  const query = 'query($content: String!) { upload(input: { name: "a", contentBase64: $content }) }'
  expect((await post({ query, variables: { content: contentBase64 } })).body).toEqual({ data: { upload: 2_000_000 } })
})

it('accepts no string as the content of a file because its variable has that name', async () => {
  const { post, seen } = await startGateway({ config: { ...CONFIG, maxBodyBytes: 4 * 1024 * 1024 } })
  const query = 'query($contentBase64: String!) { find(input: { query: $contentBase64 }) }'
  const { body } = await post({ query, variables: { contentBase64: 'x'.repeat(2_000_000) } })
  expect(body.errors[0]).toMatchObject({ extensions: { code: 'STRING_ABOVE_MAX_LENGTH', param: 'contentBase64' } })
  expect(seen.operations).toEqual([])
  // Nor because it is a file's content in another place.
  const both = 'query($content: String!) { upload(input: { name: $content, contentBase64: $content }) }'
  const refused = await post({ query: both, variables: { content: 'x'.repeat(2_000_000) } })
  expect(refused.body.errors[0]).toMatchObject({ extensions: { code: 'STRING_ABOVE_MAX_LENGTH', param: 'content' } })
})

it('names what is missing, and suggests names only where the schema may be read', async () => {
  const { post } = await startGateway()
  const { body } = await post({ query: FIND, variables: { input: { query: 'x', limitt: 1 } } })
  expect(body.errors[0].message).toContain('Did you mean "limit"')
  expect((await post({ query: FIND })).body.errors[0].message).toContain('"$input" of required type "FindInput!" was not provided')
  const closed = await startGateway({ config: { ...CONFIG, introspection: false } })
  const { body: hidden } = await closed.post({ query: FIND, variables: { input: { query: 'x', limitt: 1, mood: 'CALMM' } } })
  expect(JSON.stringify(hidden)).not.toContain('Did you mean')
})

const LONG_TEXTS: readonly { readonly what: string; readonly query: string; readonly code: string }[] = [
  { what: 'a block string of 4 MB', query: `{ echo(text: """${'a\n'.repeat(2_000_000)}""") }`, code: 'OPERATION_TOO_COMPLEX' },
  { what: 'a comment of 4 MB', query: `#${'x'.repeat(4_000_000)}\n{ ping }`, code: 'OPERATION_TOO_COMPLEX' },
  { what: 'an alias of 100,000 characters', query: `{ ${'a'.repeat(100_000)}: ping }`, code: 'OPERATION_TOO_COMPLEX' },
  { what: 'a name of 100,000 characters', query: `{ ${'p'.repeat(100_000)} }`, code: 'GRAPHQL_VALIDATION_FAILED' },
  {
    what: 'an error message full of "Did you mean"',
    query: `{ ping(n: "${' Did you mean '.repeat(15_000)}") }`,
    code: 'GRAPHQL_VALIDATION_FAILED',
  },
  { what: 'a wrong literal of 200,000 characters', query: `{ ping(n: "${'x'.repeat(200_000)}") }`, code: 'GRAPHQL_VALIDATION_FAILED' },
]

for (const { what, query, code } of LONG_TEXTS) {
  it(`refuses ${what} in the operation with a short error, on every transport`, async () => {
    for (const introspection of [true, false]) {
      const { gateway, post, wsUrl, url, seen } = await startGateway({
        config: { ...CONFIG, introspection, maxBodyBytes: 8 * 1024 * 1024 },
      })
      const context = { caller: KEY, requestId: 'req_1', signal: new AbortController().signal }
      const responses = [(await post({ query })).body.errors, (await gateway.link.execute({ query }, context)).errors]
      if (query.length < 1_000_000) {
        const socket = collect(connect(wsUrl).client, query)
        await socket.over
        responses.push(socket.error())
      }
      // Node takes 16 KiB of headers, the address included.
      const got = await fetch(`${url}?query=${encodeURIComponent('{ ping }')}`, {
        headers: { authorization: `Bearer ${KEY}`, 'x-apollo-operation-name': 'a' },
      })
      expect(got.status).toBe(200)
      seen.operations.length = 0
      for (const errors of responses) {
        expect(errors[0].extensions.code).toBe(code)
        expect(JSON.stringify(errors).length).toBeLessThan(MAX_RESPONSE_CHARACTERS)
      }
    }
  })
}

it('explains that a long string belongs into variables', async () => {
  const { post } = await startGateway()
  const { body } = await post({ query: `{ upload(input: { name: "a", contentBase64: "${'x'.repeat(300_000)}" }) }` })
  expect(body.errors[0].message).toContain('variables')
})
