import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { type Caller, type Json, makeCaller, newOrganization } from '../../support/client.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const MIB = 1024 * 1024
const UPLOAD =
  'mutation ($file: MultipartFile!, $name: String) { uploadFile(input: { file: $file, name: $name }) { file { id name sizeBytes checksum } } }'
const TWO = `mutation ($a: MultipartFile!, $b: MultipartFile!) {
  a: uploadFile(input: { file: $a }) { file { name sizeBytes } } b: uploadFile(input: { file: $b }) { file { name sizeBytes } } }`

const makeText = (sizeBytes: number) =>
  Buffer.from(
    randomBytes(Math.ceil(sizeBytes / 2))
      .toString('hex')
      .slice(0, sizeBytes),
  )

type Parts = readonly (readonly [string, string | File])[]

const operations = (query: string, variables: unknown) => ['operations', JSON.stringify({ query, variables })] as const
const map = (places: unknown) => ['map', JSON.stringify(places)] as const
const file = (name: string, bytes: string | Uint8Array<ArrayBuffer> = 'some text', fileName = `${name}.txt`) =>
  [name, new File([bytes], fileName)] as const

describe('multipart requests', () => {
  let service: Service
  beforeAll(async () => {
    service = await startEmbedded({ catalog: mockCatalog('http://127.0.0.1:1') })
  }, 120_000)
  afterAll(async () => {
    await service?.close()
  })
  const organization = (options = {}) => newOrganization(makeCaller(service, service.key), service, options)

  async function send({ key }: Caller, parts: Parts, headers: Record<string, string> = { 'apollo-require-preflight': 'true' }) {
    const body = new FormData()
    for (const [part, value] of parts) body.append(part, value)
    const response = await fetch(service.graphql, { method: 'POST', headers: { authorization: `Bearer ${key}`, ...headers }, body })
    return { status: response.status, body: (await response.json()) as Json }
  }

  /** Unfinished uploads may have eight of the largest files together: these fit only if nothing else is there. */
  async function isEmpty(caller: Caller): Promise<boolean> {
    const creation = { filename: 'a.txt', bytes: 512 * MIB, mime_type: 'text/plain', purpose: 'assistants' }
    const made = await Promise.all(Array.from({ length: 8 }, () => caller.rest('POST', '/v1/uploads', creation)))
    for (const { body } of made) if (body.id) await caller.rest('POST', `/v1/uploads/${body.id}/cancel`)
    return made.every(({ status }) => status === 200) && (await caller.rest('GET', '/v1/files')).body.data.length === 0
  }

  it('take several files, one file in several places, and answer with events', async () => {
    const caller = await organization()
    const both = [operations(TWO, { a: null, b: null }), map({ 0: ['variables.a'], 1: ['variables.b'] }), file('0'), file('1', 'other')]
    expect((await send(caller, both)).body.data).toEqual({
      a: { file: { name: '0.txt', sizeBytes: 9 } },
      b: { file: { name: '1.txt', sizeBytes: 5 } },
    })
    const once = [operations(TWO, { a: null, b: null }), map({ 0: ['variables.a', 'variables.b'] }), file('0')]
    const { a, b } = (await send(caller, once)).body.data
    expect(a).toEqual(b)
    const body = new FormData()
    for (const [part, value] of [operations(UPLOAD, { file: null }), map({ 0: ['variables.file'] }), file('0')]) body.append(part, value)
    const headers = { authorization: `Bearer ${caller.key}`, 'graphql-preflight': '1', accept: 'text/event-stream' }
    expect(await (await fetch(service.graphql, { method: 'POST', headers, body })).text()).toContain('"name":"0.txt"')
  })

  it('are refused, and leave nothing, when they are not what the specification asks for', async () => {
    const caller = await organization()
    const good = [operations(UPLOAD, { file: null }), map({ 0: ['variables.file'] }), file('0', makeText(3 * MIB))] as const
    const [first, second, third] = good
    const cases: readonly (readonly [string, Parts, RegExp])[] = [
      ['no file', [first, second], /`0` of the map is not there/],
      ['files first', [third, first, second], /before the files/],
      ['map first', [second, first, third], /`operations` before `map`/],
      ['a field that nobody asks for', [...good, ['other', 'x']], /`other`/],
      ['a file that nobody asks for', [...good, file('1')], /`1`/],
      ['the same file twice', [...good, third], /more than once/],
      ['no map', [first, third], /before the files/],
      ['nothing', [['a', 'b']], /`a`/],
      ['no JSON', [['operations', '{'], second, third], /not valid JSON/],
      ['several operations', [['operations', '[{}]'], second, third], /one operation/],
      ['a map of no lists', [first, map({ 0: 'variables.file' }), third], /list of places/],
      ['no null', [operations(UPLOAD, { file: 'x' }), second, third], /no null at/],
      ['a place outside', [first, map({ 0: ['query'] }), third], /no null at/],
      ['a place of the prototype', [first, map({ 0: ['variables.__proto__.x'] }), third], /no null at/],
      ['two files for one place', [first, map({ 0: ['variables.file'], 1: ['variables.file'] }), third, file('1')], /no null at/],
      [
        'too many files',
        [first, map(Object.fromEntries(Array.from({ length: 11 }, (_, index) => [index, ['variables.file']])))],
        /10 files/,
      ],
      ['a long operation', [['operations', 'x'.repeat(2 * MIB)], second, third], /at most 1 MiB/],
      ['a name that is none', [first, second, file('0', makeText(3 * MIB), '../a.txt')], /name/],
      ['an unknown format', [first, second, file('0', new Uint8Array(3 * MIB), 'a.bin')], /format|type/i],
      ['an unknown field', [operations('mutation { none }', { file: null }), second, third], /none/],
      [
        'an unused file',
        [operations('mutation ($file: MultipartFile) { cancelUpload(id: "x") { __typename } }', { file: null }), second, third],
        /never used/,
      ],
    ]
    for (const [what, parts, message] of cases) {
      const { status, body } = await send(caller, parts)
      expect([what, body.errors?.[0]?.message ?? body.data, status]).toEqual([what, expect.stringMatching(message), status])
    }
    await expect.poll(() => isEmpty(caller), { timeout: 20_000 }).toBe(true)
  })

  it('need a header that no form of another page has', async () => {
    const caller = await organization()
    const good = [operations(UPLOAD, { file: null }), map({ 0: ['variables.file'] }), file('0')]
    expect(await send(caller, good, {})).toMatchObject({
      status: 400,
      body: { errors: [{ message: expect.stringContaining('preflight') }] },
    })
    expect(await isEmpty(caller)).toBe(true)
    expect((await send({ ...caller, key: 'kis_live_wrong' }, good)).status).toBe(401)
  })

  it('answer a file above the limit with 413 and the limit', async () => {
    const tiny = await organization({ plan: 'tiny' })
    const good = [operations(UPLOAD, { file: null }), map({ 0: ['variables.file'] }), file('0', makeText(25 * MIB))]
    expect(await send(tiny, good)).toMatchObject({
      status: 413,
      body: {
        errors: [{ message: expect.stringContaining('2000'), extensions: { code: 'PAYLOAD_TOO_LARGE', param: 'variables.file' } }],
      },
    })
  })

  it('leave nothing when they are cut off', async () => {
    const caller = await organization()
    const boundary = 'b'.repeat(20)
    const part = (head: string, text: string) => `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n${text}`
    for (const sizeBytes of [0, 1, 3 * MIB]) {
      const left = new AbortController()
      async function* body() {
        for (const [field, text] of [operations(UPLOAD, { file: null }), map({ 0: ['variables.file'] })])
          yield Buffer.from(`${part(`name="${field}"`, text)}\r\n`)
        yield Buffer.from(part('name="0"; filename="a.txt"', ''))
        yield makeText(sizeBytes)
        await sleep(300)
        left.abort()
      }
      const sent = fetch(service.graphql, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${caller.key}`,
          'graphql-preflight': '1',
          'content-type': `multipart/form-data; boundary=${boundary}`,
        },
        body: ReadableStream.from(body()),
        duplex: 'half',
        signal: left.signal,
      } as RequestInit)
      await expect(sent).rejects.toThrow()
    }
    await expect.poll(() => isEmpty(caller), { timeout: 20_000 }).toBe(true)
  })

  it('are refused by their headers when they are compressed, as every other body is', async () => {
    const { key } = await organization()
    const headers = { authorization: `Bearer ${key}`, 'graphql-preflight': '1', 'content-encoding': 'gzip' }
    for (const [url, type] of [
      [service.graphql, 'multipart/form-data; boundary=x'],
      [service.graphql, 'application/json'],
      [`${service.rest}/v1/files`, 'application/json'],
      [`${service.rest}/v1/files?name=a.txt`, 'text/plain'],
    ] as const) {
      const response = await fetch(url, { method: 'POST', headers: { ...headers, 'content-type': type }, body: gzipSync('{}') })
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('content-encoding')])
    }
  })

  it('give no file of another organization', async () => {
    const [one, other] = [await organization(), await organization()]
    const created = await one.graphql('mutation { createUpload(input: { name: "a.txt" }) { upload { id } } }')
    const { id } = created.data.createUpload.upload
    await one.graphql('mutation ($id: ID!) { appendToUpload(input: { id: $id, offset: 0, contentBase64: "YWJj" }) { upload { id } } }', {
      id,
    })
    expect((await other.graphql(UPLOAD, { file: id })).errors?.[0]?.extensions).toMatchObject({ code: 'NOT_FOUND' })
    expect((await one.graphql(UPLOAD, { file: id })).data.uploadFile.file).toMatchObject({ name: 'a.txt', sizeBytes: 3 })
    for (const input of [{}, { name: 'a.txt' }, { contentBase64: 'YWJj' }, { file: id, contentBase64: 'YWJj' }]) {
      const { errors } = await one.graphql('mutation ($input: UploadFileInput!) { uploadFile(input: $input) { file { id } } }', { input })
      expect(errors).toHaveLength(1)
    }
  })
})
