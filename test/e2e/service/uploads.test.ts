import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { toFile } from 'openai'
import { Upload } from 'tus-js-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { type Caller, createCaller, type Json, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, type ServiceOptions, startEmbedded, startFiveProcesses } from '../../support/processes/service.ts'

const MIB = 1024 * 1024

/** Text, so that the service takes it, and no two alike. */
const createText = (sizeBytes: number) =>
  Buffer.from(
    randomBytes(Math.ceil(sizeBytes / 2))
      .toString('hex')
      .slice(0, sizeBytes),
  )
const CREATE = 'mutation ($input: CreateUploadInput!) { createUpload(input: $input) { upload { id } } }'
const CANCEL = 'mutation ($id: ID!) { cancelUpload(id: $id) { upload { id } } }'

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

async function download(service: Service, caller: Caller, id: string): Promise<string> {
  const response = await fetch(`${service.rest}/v1/files/${id}/content`, { headers: { authorization: `Bearer ${caller.key}` } })
  return sha256(new Uint8Array(await response.arrayBuffer()))
}

interface Sent {
  readonly fileId: string | undefined
  readonly url: string
}

/** Sends a file with the official client; resolves at the end, or when `stopAt` bytes are on their way. */
function sendByTus(
  service: Service,
  caller: Caller,
  bytes: Buffer,
  options: { readonly chunkSize?: number; readonly url?: string; readonly stopAt?: number } = {},
): Promise<Sent> {
  return new Promise((resolve, reject) => {
    const upload: Upload = new Upload(bytes, {
      endpoint: `${service.rest}/v1/uploads/tus`,
      ...(options.url && { uploadUrl: options.url }),
      ...(options.chunkSize && { chunkSize: options.chunkSize }),
      headers: { authorization: `Bearer ${caller.key}` },
      metadata: { filename: 'تقرير.txt' },
      retryDelays: [],
      onError: reject,
      onProgress(sent) {
        if (options.stopAt !== undefined && sent >= options.stopAt)
          upload.abort().then(() => resolve({ fileId: undefined, url: upload.url! }), reject)
      },
      onSuccess: ({ lastResponse }) => resolve({ fileId: lastResponse.getHeader('x-kis-file-id'), url: upload.url! }),
    })
    upload.start()
  })
}

function uploads(name: string, start: (options: ServiceOptions) => Promise<Service>): void {
  describe(`Uploads, ${name}`, () => {
    let engine: MockEngine
    let service: Service
    let caller: Caller
    beforeAll(async () => {
      engine = await startMockEngine()
      service = await start({ catalog: mockCatalog(engine.url) })
      caller = await newOrganization(createCaller(service, service.key), service)
    }, 120_000)
    afterAll(async () => {
      await service?.close()
      await engine?.[Symbol.asyncDispose]()
    })

    it('accept fifty concurrent small files of one organization, by JSON, forms and GraphQL', async () => {
      const UPLOAD = 'mutation ($input: UploadFileInput!) { uploadFile(input: $input) { file { name } } }'
      const sends = Array.from({ length: 50 }, async (_, index) => {
        const bytes = createText(30_000 + index)
        const contentBase64 = bytes.toString('base64')
        if (index % 3 === 0) return (await caller.rest('POST', '/v1/files', { file_name: 'a.txt', content_base64: contentBase64 })).status
        if (index % 3 === 1)
          return (await caller.openai.files.create({ file: await toFile(bytes, 'a.txt'), purpose: 'assistants' })).filename
        return (await caller.graphql(UPLOAD, { input: { name: 'a.txt', contentBase64 } })).data.uploadFile.file.name
      })
      expect(new Set(await Promise.all(sends))).toEqual(new Set([201, 'a.txt']))
    })

    it('accept ten concurrent files of 3 MiB of one organization', async () => {
      const sends = Array.from({ length: 10 }, () =>
        caller.rest('POST', '/v1/files', { file_name: 'a.txt', content_base64: createText(3 * MIB).toString('base64') }),
      )
      expect((await Promise.all(sends)).map(({ status }) => status)).toEqual(sends.map(() => 201))
    })

    it('accept a large form, and leave nothing of a refused one', async () => {
      const bytes = createText(5 * MIB + 3)
      const { id } = await caller.openai.files.create({ file: await toFile(bytes, 'large.txt'), purpose: 'assistants' })
      expect(await download(service, caller, id)).toBe(sha256(bytes))
      const used = async () => (await caller.graphql('{ organization { quota { storageBytes { used } } } }')).data
      const before = await used()
      const refused = caller.openai.files.create({ file: await toFile(Buffer.alloc(5 * MIB), 'large.bin'), purpose: 'assistants' })
      await expect(refused).rejects.toMatchObject({ status: 415, code: 'unsupported_file_type' })
      expect(await used()).toEqual(before)
    })

    it('stream a form of any length to the store, with the same response as JSON', async () => {
      const large = createText(26 * MIB + 7)
      const authorization = `Bearer ${caller.key}`
      const form = new FormData()
      form.set('file', new Blob([large]), 'تقرير.txt')
      form.set('purpose', 'assistants')
      const asForm = await fetch(`${service.rest}/v1/files`, { method: 'POST', body: form, headers: { authorization } })
      expect(asForm.status).toBe(200)
      const { message, ...file } = (await asForm.json()) as Json
      expect(file).toMatchObject({ ...message, filename: 'تقرير.txt', purpose: 'assistants' })
      expect(message).toMatchObject({ file_name: 'تقرير.txt', size_bytes: large.length, checksum: `sha256:${sha256(large)}` })
      const bare = await fetch(`${service.rest}/v1/files?name=whole.txt`, {
        method: 'POST',
        body: 'some text',
        headers: { authorization, 'content-type': 'text/plain' },
      })
      expect([bare.status, await bare.json()]).toMatchObject([
        400,
        { error: { code: 'invalid_request', message: expect.stringMatching(/as a form.*base64/) } },
      ])
    })

    it('refuse compressed bodies by their headers', async () => {
      const headers = { authorization: `Bearer ${caller.key}`, 'content-encoding': 'gzip' }
      for (const [url, type] of [
        [service.graphql, 'application/json'],
        [`${service.rest}/v1/files`, 'application/json'],
        [`${service.rest}/v1/files`, 'multipart/form-data; boundary=b'],
      ] as const) {
        const response = await fetch(url, { method: 'POST', headers: { ...headers, 'content-type': type }, body: gzipSync('{}') })
        expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('content-encoding')])
      }
    })

    it('leave nothing of an interrupted form, or one whose last field is wrong', async () => {
      const other = await newOrganization(createCaller(service, service.key), service)
      const authorization = `Bearer ${other.key}`
      // Unfinished uploads may have eight of the largest files together: these fit only if nothing else is there.
      const isEmpty = async () => {
        const input = { name: 'a.txt', sizeBytes: 512 * MIB }
        const created = await Promise.all(Array.from({ length: 8 }, () => other.graphql(CREATE, { input })))
        const ids = created.flatMap(({ data }) => data?.createUpload.upload.id ?? [])
        for (const id of ids) await other.graphql(CANCEL, { id })
        return ids.length === 8
      }
      const boundary = 'b'.repeat(20)
      const head = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n`
      const left = new AbortController()
      async function* body() {
        yield Buffer.from(head)
        yield createText(5 * MIB)
        await sleep(300)
        left.abort()
      }
      const sent = fetch(`${service.rest}/v1/files`, {
        method: 'POST',
        body: ReadableStream.from(body()),
        headers: { authorization, 'content-type': `multipart/form-data; boundary=${boundary}` },
        duplex: 'half',
        signal: left.signal,
      } as RequestInit)
      await expect(sent).rejects.toThrow()
      const form = new FormData()
      form.set('file', new Blob([createText(3 * MIB)]), 'a.txt')
      form.set('other', 'x')
      const refused = await fetch(`${service.rest}/v1/files`, { method: 'POST', body: form, headers: { authorization } })
      expect(await refused.json()).toMatchObject({ error: { param: 'other' } })
      await expect.poll(isEmpty, { timeout: 20_000 }).toBe(true)
      expect((await other.rest('GET', '/v1/files')).body.data).toEqual([])
    })

    it('refuse a file above the limit with 413, which every client reads', async () => {
      const tiny = await newOrganization(createCaller(service, service.key), service, { plan: 'tiny' })
      const refused = tiny.openai.files.create({ file: await toFile(createText(25 * MIB), 'large.txt'), purpose: 'assistants' })
      await expect(refused).rejects.toMatchObject({ status: 413, code: 'payload_too_large', message: expect.stringContaining('2000') })
    })

    it('accept base64 in lines and in the alphabet of URLs', async () => {
      const bytes = Buffer.from('ÿþýÿ??>>~~'.repeat(40))
      for (const text of [bytes.toString('base64').replace(/.{76}/g, '$&\r\n'), bytes.toString('base64url')]) {
        const { body } = await caller.rest('POST', '/v1/files', { file_name: 'a.txt', content_base64: text })
        expect(body.message.checksum).toBe(`sha256:${sha256(bytes)}`)
      }
    })

    it('accept a file by tus in one request and in parts, and resume after a disconnect', async () => {
      const bytes = createText(9 * MIB + 5)
      const whole = await sendByTus(service, caller, bytes)
      expect(await download(service, caller, whole.fileId!)).toBe(sha256(bytes))

      const inPieces = await sendByTus(service, caller, bytes, { chunkSize: 1_000_003 })
      expect(inPieces.fileId).not.toBe(whole.fileId)
      expect(await download(service, caller, inPieces.fileId!)).toBe(sha256(bytes))

      const broken = await sendByTus(service, caller, bytes, { chunkSize: 4 * MIB, stopAt: 5 * MIB })
      const offset = async () => {
        const head = await fetch(broken.url, {
          method: 'HEAD',
          headers: { authorization: `Bearer ${caller.key}`, 'tus-resumable': '1.0.0' },
        })
        expect(head.status).toBe(200)
        return Number(head.headers.get('upload-offset'))
      }
      expect(await offset()).toBeGreaterThanOrEqual(4 * MIB)
      const resumed = await sendByTus(service, caller, bytes, { url: broken.url })
      expect(await download(service, caller, resumed.fileId!)).toBe(sha256(bytes))
      const { body } = await caller.rest('GET', `/v1/files/${resumed.fileId}`)
      expect(body).toMatchObject({ file_name: 'تقرير.txt', media_type: 'text/plain', size_bytes: bytes.length })
    })

    it('preserve received bytes when the connection breaks during a request', async () => {
      const bytes = createText(6 * MIB)
      const headers = { authorization: `Bearer ${caller.key}`, 'tus-resumable': '1.0.0' }
      const created = await fetch(`${service.rest}/v1/uploads/tus`, {
        method: 'POST',
        headers: {
          ...headers,
          'upload-length': String(bytes.length),
          'upload-metadata': `filename ${Buffer.from('b.txt').toString('base64')}`,
        },
      })
      expect(created.status).toBe(201)
      expect(Date.parse(created.headers.get('upload-expires')!)).toBeGreaterThan(Date.now())
      const url = new URL(created.headers.get('location')!, service.rest).href
      const id = url.split('/').at(-1)
      // A `HEAD` would end the request that is under way.
      const stored = async () => (await caller.graphql('query ($id: ID!) { upload(id: $id) { offset } }', { id })).data.upload.offset
      const left = new AbortController()
      async function* part() {
        yield bytes.subarray(0, 3 * MIB)
        // The first piece is in the store; the rest comes in at once and waits for more.
        await eventually(async () => (await stored()) > 0, 20_000)
        await sleep(300)
        left.abort()
        yield bytes.subarray(3 * MIB)
      }
      const patch = fetch(url, {
        method: 'PATCH',
        headers: { ...headers, 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' },
        body: ReadableStream.from(part()),
        duplex: 'half',
        signal: left.signal,
      } as RequestInit)
      await expect(patch).rejects.toThrow()
      await expect
        .poll(async () => Number((await fetch(url, { method: 'HEAD', headers })).headers.get('upload-offset')), { timeout: 20_000 })
        .toBe(3 * MIB)
      const { fileId } = await sendByTus(service, caller, bytes, { url })
      expect(await download(service, caller, fileId!)).toBe(sha256(bytes))
    })

    it('explain what is wrong with a resumable upload', async () => {
      const authorization = `Bearer ${caller.key}`
      const send = (method: string, path: string, headers: Record<string, string> = {}, body?: string) =>
        fetch(`${service.rest}/v1/uploads/tus${path}`, {
          method,
          headers: { authorization, 'tus-resumable': '1.0.0', ...headers },
          ...(body !== undefined && { body }),
        }).then(async (response) => ({ status: response.status, body: await response.json().catch(() => null) }))
      const name = `filename ${Buffer.from('a.txt').toString('base64')}`
      expect(await send('POST', '', { 'upload-length': String(1024 ** 3), 'upload-metadata': name })).toMatchObject({
        status: 413,
        body: { error: { code: 'payload_too_large', param: 'Upload-Length' } },
      })
      expect(await send('POST', '', { 'upload-length': '3', authorization: 'Bearer kis_live_wrong' })).toMatchObject({ status: 401 })
      expect(await send('HEAD', '/upload_none')).toMatchObject({ status: 404 })
      const stream = { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' }
      expect(await send('PATCH', '/upload_none', stream, 'abc')).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
      const created = await fetch(`${service.rest}/v1/uploads/tus`, {
        method: 'POST',
        headers: { authorization, 'tus-resumable': '1.0.0', 'upload-length': '4', 'upload-metadata': name },
      })
      const path = created.headers.get('location')!.slice('/v1/uploads/tus'.length)
      expect(await send('PATCH', path, { ...stream, 'upload-offset': '2' }, 'ab')).toMatchObject({
        status: 409,
        body: { error: { code: 'in_use' } },
      })
      expect(await send('PATCH', path, stream, 'abcdef')).toMatchObject({ status: 413, body: { error: { code: 'payload_too_large' } } })
      expect(await send('PATCH', path, { ...stream, 'tus-resumable': '0.2.0' }, 'ab')).toMatchObject({ status: 400 })
      expect(await send('GET', path)).toMatchObject({ status: 405 })
      // The file is refused with its last bytes, and the upload is over.
      expect(await send('PATCH', path, stream, '\0\x01\x02\x03')).toMatchObject({
        status: 415,
        body: { error: { code: 'unsupported_file_type' } },
      })
      expect(await send('HEAD', path)).toMatchObject({ status: 404 })
      const options = await fetch(`${service.rest}/v1/uploads/tus`, { method: 'OPTIONS' })
      expect(options.headers.get('tus-version')).toBe('1.0.0')
      expect(options.headers.get('tus-extension')).toContain('termination')
    })

    it("tell OpenAI's client what to use in place of multipart uploads", async () => {
      const creation = { filename: 'parts.txt', bytes: 3, mime_type: 'text/plain', purpose: 'assistants' } as const
      await expect(caller.openai.uploads.create(creation)).rejects.toMatchObject({
        status: 404,
        code: 'not_offered',
        message: expect.stringMatching(/POST \/v1\/files.*tus/),
      })
    })
  })
}

uploads('one process', startEmbedded)
uploads('five processes', startFiveProcesses)
