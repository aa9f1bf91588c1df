import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { KEY, type RunningAdapter, startAdapter } from './support.ts'

/** One piece of an upload, and some more. */
const SIZE = 2 * 1024 * 1024 + 1_000
const FILE = {
  id: 'file_1',
  name: 'a.txt',
  sizeBytes: SIZE,
  checksum: 'sha256:0',
  mediaType: 'text/plain',
  status: 'READY',
  createdAt: '2026-11-23T10:00:00.000Z',
}
const UPLOAD = {
  ...{ id: 'upl_1', sizeBytes: SIZE, offset: 0, status: 'OPEN', metadata: null, file: null },
  ...{ createdAt: '2026-11-23T10:00:00.000Z', expiresAt: '2999-01-01T00:00:00.000Z' },
}
const cancelled = { cancelUpload: { upload: { id: 'upl_1' } } }
const created = { createUpload: { upload: { id: 'upl_1' } } }
const appended = { appendToUpload: { upload: { offset: 0 } } }

let adapter: RunningAdapter
let complete: (signal: AbortSignal) => Promise<void>
beforeAll(async () => {
  adapter = await startAdapter({
    Upload: () => ({ upload: UPLOAD }),
    CreateFormUpload: () => created,
    AppendToUpload: () => appended,
    CancelFormUpload: () => cancelled,
    async UploadFile(_variables, { signal }) {
      await complete(signal)
      return { uploadFile: { file: FILE } }
    },
    async CompleteFormUpload(_variables, { signal }) {
      await complete(signal)
      return { completeUpload: { upload: { file: FILE } } }
    },
  })
})
beforeEach(() => void adapter.gateway.received.splice(0))
afterAll(() => adapter[Symbol.asyncDispose]())

const END = '--b--\r\n'
const part = (head: string, text: string) => `--b\r\ncontent-disposition: form-data; ${head}\r\n\r\n${text}\r\n`

const receivedNames = () => adapter.gateway.received.map(({ name }) => name)

describe('Form after its file was received', () => {
  const file = part('name="file"; filename="a.txt"', 'x'.repeat(SIZE))

  /** Sends the file, and the rest when the file is stored. */
  async function send(rest: string) {
    const length = file.length + rest.length
    const client = open('POST /v1/files', 'content-type: multipart/form-data; boundary=b', `content-length: ${length}`)
    client.write(`${file}--b`)
    await eventually(() => receivedNames().filter((name) => name === 'AppendToUpload').length === 2)
    await setImmediate()
    return { client, finish: () => client.write(rest.slice('--b'.length)) }
  }

  it.each([
    ['a second file', part('name="file"; filename="b.txt"', 'x') + END, /more than once/],
    ['a field that is too long', part('name="purpose"', 'x'.repeat(20_000)) + END, /at most 16 KiB/],
    ['too many parts', Array.from({ length: 101 }, (_, index) => part(`name="f${index}"`, 'x')).join('') + END, /more than 100 parts/],
    ['an unknown field', part('name="other"', 'x') + END, /other/],
  ])('leaves nothing of the file with %s', async (_what, rest, message) => {
    const { client, finish } = await send(rest)
    finish()
    expect(String((await once(client, 'data'))[0])).toMatch(message)
    expect(receivedNames().at(-1)).toBe('CancelFormUpload')
  })

  it('leaves nothing of the file when its client disconnects before the end', async () => {
    const { client } = await send(part('name="purpose"', 'assistants'))
    client.destroy()
    await eventually(() => receivedNames().at(-1) === 'CancelFormUpload')
  })
})

describe('File whose client disconnects at completion', () => {
  it.each([
    ['is created anyway if it is large', SIZE, true, ['CompleteFormUpload']],
    ['is created anyway if it is small', 1_000, true, ['UploadFile']],
    ['leaves nothing if it fails', SIZE, false, ['CompleteFormUpload', 'CancelFormUpload']],
  ] as const)('%s', async (_what, size, succeeds, last) => {
    const { promise: gone, resolve: disconnect } = Promise.withResolvers<void>()
    let isCreated = false
    complete = async (signal) => {
      client.destroy()
      await gone
      signal.throwIfAborted()
      if (!succeeds) throw new Error('the store is away')
      isCreated = true
    }
    const form = part('name="file"; filename="a.txt"', 'x'.repeat(size)) + END
    const client = open('POST /v1/files', 'content-type: multipart/form-data; boundary=b', `content-length: ${form.length}`)
    client.on('close', () => setTimeout(disconnect, 50))
    client.write(form)
    await eventually(() => receivedNames().at(-1) === last.at(-1) && isCreated === succeeds)
    expect(receivedNames().slice(-last.length)).toEqual(last)
  })
})

it('ends a resumable upload in tiny parts, and survives a client that continues to send', async () => {
  const headers = ['tus-resumable: 1.0.0', 'upload-offset: 0', 'content-type: application/offset+octet-stream']
  const client = open('PATCH /v1/uploads/tus/upl_1', ...headers, 'transfer-encoding: chunked')
  const response = once(client, 'data')
  const pieces = '1\r\nx\r\n'.repeat(2_000)
  const sending = setInterval(() => client.write(pieces), 5)
  expect(String((await response)[0])).toContain('pieces that are too small')
  for (let more = 0; more < 5; more++) await new Promise((resolve) => client.write(pieces, () => resolve(undefined)))
  clearInterval(sending)
  client.destroy()
})

function open(line: string, ...headers: string[]) {
  const socket = connect(Number(new URL(adapter.url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write([`${line} HTTP/1.1`, 'host: a', `authorization: Bearer ${KEY}`, ...headers, '', ''].join('\r\n'))
  return socket
}
