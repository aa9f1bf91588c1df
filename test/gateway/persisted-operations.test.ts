import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { readTrustedDocuments } from '../../gateway/config.ts'
import { PersistedOperations, readManifest } from '../../gateway/persisted-operations.ts'
import { CONFIG, collect, connect, createPrincipal, KEY, OTHER_KEY, startGateway } from './support/start.ts'

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const reference = (text: string) => ({ persistedQuery: { version: 1, sha256Hash: sha256(text) } })

const PING = 'query Ping($n: Int) { ping(n: $n) }'
const TICKS = 'subscription Ticks { ticks(count: 2) { n } }'
const NOT_FOUND = { errors: [{ extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }] }
const DENIED = { errors: [{ extensions: { code: 'PERMISSION_DENIED' } }] }

describe('Automatic persisted queries', () => {
  it('are found once their text was sent with its hash', async () => {
    const { post } = await startGateway()
    const variables = { n: 3 }
    expect(await post({ extensions: reference(PING), variables })).toMatchObject({ status: 200, body: NOT_FOUND })
    expect((await post({ query: PING, extensions: reference(PING), variables })).body).toEqual({ data: { ping: 3 } })
    expect((await post({ extensions: reference(PING), variables })).body).toEqual({ data: { ping: 3 } })
  })

  it('are limited in number too, however short they are', () => {
    const persisted = new PersistedOperations(new Map(), false)
    const caller = { organizationId: 'org_a' }
    const sent = (n: number) => String.fromCharCode(0x4e00 + (n % 20_000), 0x4e00 + Math.floor(n / 20_000))
    for (let n = 0; n < 20_000; n++) persisted.findText({ query: sent(n), extensions: reference(sent(n)) }, caller)
    expect(persisted.findText({ extensions: reference(sent(19_999)) }, caller)).toBe(sent(19_999))
    expect(() => persisted.findText({ extensions: reference(sent(0)) }, caller)).toThrow()
  })

  it('are accepted by GET, where caches can store them', async () => {
    const { post, url } = await startGateway()
    await post({ query: PING, extensions: reference(PING) })
    const params = new URLSearchParams({ extensions: JSON.stringify(reference(PING)), variables: '{"n":4}', operationName: 'Ping' })
    const headers = { authorization: `Bearer ${KEY}`, 'apollo-require-preflight': 'true' }
    expect(await (await fetch(`${url}?${params}`, { headers })).json()).toEqual({ data: { ping: 4 } })
  })

  it('are found by clients that send null for the text, and no other text is mistaken for one', async () => {
    const { post } = await startGateway()
    expect(await post({ query: null, extensions: reference(PING) } as object)).toMatchObject({ status: 200, body: NOT_FOUND })
    await post({ query: PING, extensions: reference(PING) })
    expect((await post({ query: null, extensions: reference(PING) } as object)).body).toEqual({ data: { ping: 1 } })
    for (const query of [5, false, ''])
      expect(
        (await post({ query, extensions: { persistedQuery: { version: 1, sha256Hash: 'x' } } } as object)).body.errors[0].extensions.code,
      ).toMatch(query === '' ? NOT_FOUND.errors[0]!.extensions.code : 'INVALID_TYPE')
  })

  it('are unknown to another organization', async () => {
    const { post } = await startGateway({
      authenticate: async (apiKey) => ({ ...createPrincipal(apiKey), organizationId: `org of ${apiKey}` }),
    })
    await post({ query: PING, extensions: reference(PING) })
    const headers = { authorization: `Bearer ${OTHER_KEY}` }
    expect(await post({ extensions: reference(PING) }, headers)).toMatchObject({ status: 200, body: NOT_FOUND })
  })

  it('are accepted over sockets, including subscriptions', async () => {
    const { wsUrl } = await startGateway()
    const { client } = connect(wsUrl)
    const execute = async (query: string) => {
      const result = collect(client, query, {}, undefined, reference(TICKS))
      await result.over
      return result.results.length > 0 ? result.results : result.error()
    }
    expect(await execute('')).toMatchObject([NOT_FOUND.errors[0]!])
    expect(await execute(TICKS)).toHaveLength(2)
    expect(await execute('')).toEqual([{ data: { ticks: { n: 1 } } }, { data: { ticks: { n: 2 } } }])
  })

  for (const [what, extensions] of [
    ['the hash of another text', reference('{ mood }')],
    ['another version', { persistedQuery: { version: 2, sha256Hash: sha256(PING) } }],
    ['no hash', { persistedQuery: { version: 1 } }],
  ] as const) {
    it(`are refused with ${what}`, async () => {
      const { post } = await startGateway()
      const { status, body } = await post({ query: PING, extensions })
      expect({ status, code: body.errors[0].extensions.code }).toEqual({ status: 400, code: 'INVALID_REQUEST' })
    })
  }
})

describe('Trusted documents', () => {
  const config = { ...CONFIG, trustedDocuments: new Map([['ping-1', PING]]), trustedDocumentsOnly: true }
  const start = (options = {}) =>
    startGateway({
      config,
      authenticate: async (apiKey) => ({ ...createPrincipal(apiKey), scopes: apiKey === OTHER_KEY ? ['operator'] : ['inference'] }),
      ...options,
    })

  it('run by their ID, by their hash and by their text', async () => {
    const { post } = await start()
    expect((await post({ documentId: 'ping-1', variables: { n: 2 } })).body).toEqual({ data: { ping: 2 } })
    expect((await post({ query: PING, extensions: reference(PING) })).body).toEqual({ data: { ping: 1 } })
    expect((await post({ query: PING })).body).toEqual({ data: { ping: 1 } })
  })

  it('of graphql-codegen run by its IDs, however a client sends them', async () => {
    const id = `sha256:${sha256('of another text')}`
    const trustedDocuments = readManifest(JSON.stringify({ [id]: PING }))
    const { post } = await start({ config: { ...config, trustedDocuments } })
    const byHash = (sha256Hash: string) => ({ extensions: { persistedQuery: { version: 1, sha256Hash } } })
    for (const body of [{ documentId: id }, { documentId: id.slice(7) }, byHash(id), byHash(id.slice(7))])
      expect((await post(body)).body).toEqual({ data: { ping: 1 } })
  })

  it('are the only permitted operations if the operator configures it, over HTTP and sockets', async () => {
    const { post, wsUrl, seen } = await start()
    expect((await post({ query: '{ ping }' })).body).toMatchObject(DENIED)
    expect((await post({ query: '{ ping }', extensions: reference('{ ping }') })).body).toMatchObject(DENIED)
    expect((await post({ extensions: reference('{ ping }') })).body).toMatchObject(NOT_FOUND)
    const result = collect(connect(wsUrl).client, '{ ping }')
    await result.over
    expect(result.error()).toMatchObject(DENIED.errors)
    expect(seen.operations).toEqual([])
  })

  it('do not bind operators, nor the processes of the service', async () => {
    const { post, gateway } = await start({
      isService: async ({ headers }: { headers: Record<string, unknown> }) => headers['x-service'] === 'yes',
    })
    const authorization = `Bearer ${KEY}`
    expect((await post({ query: '{ ping }' }, { authorization: `Bearer ${OTHER_KEY}` })).body).toEqual({ data: { ping: 1 } })
    expect((await post({ query: '{ ping }' }, { authorization, 'x-service': 'yes' })).body).toEqual({ data: { ping: 1 } })
    const context = { caller: KEY, requestId: 'req', signal: AbortSignal.timeout(10_000) }
    expect(await gateway.link.execute({ query: '{ ping }' }, context)).toEqual({ data: { ping: 1 } })
  })

  it('stop the start if they are invalid, each with its error', async () => {
    const trustedDocuments = new Map([
      ['a', '{ pong }'],
      ['b', '{ ping'],
    ])
    await expect(startGateway({ config: { ...CONFIG, trustedDocuments } })).rejects.toThrow(/document a: .*pong.*\n.*document b: Syntax/)
  })

  it('are loaded from a manifest of Apollo, Relay or graphql-codegen', () => {
    const apollo = {
      format: 'apollo-persisted-query-manifest',
      version: 1,
      operations: [{ id: 'x', name: 'Ping', type: 'query', body: PING }],
    }
    expect(readManifest(JSON.stringify(apollo))).toEqual(new Map([['x', PING]]))
    expect(readManifest(JSON.stringify({ x: PING }))).toEqual(new Map([['x', PING]]))
    expect(readManifest(JSON.stringify({ 'sha256:x': PING }))).toEqual(new Map([['x', PING]]))
    for (const bad of [
      [],
      { format: 'other' },
      { x: 1 },
      { format: 'apollo-persisted-query-manifest', version: 1, operations: [{ id: 'x' }] },
    ])
      expect(() => readManifest(JSON.stringify(bad))).toThrow()
  })

  it('report the name of an unreadable file', () => {
    expect(() => readTrustedDocuments('/nowhere.json')).toThrow(/^KIS_TRUSTED_DOCUMENTS: \/nowhere\.json/)
  })
})
