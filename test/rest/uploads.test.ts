import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
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
const cancelled = { cancelUpload: { upload: { id: 'upl_1' } } }
const created = { createUpload: { upload: { id: 'upl_1' } } }
const appended = { appendToUpload: { upload: { offset: 0 } } }

const asked = ({ gateway }: RunningAdapter) => gateway.asked.map(({ name }) => name)

describe('a form whose file has come in', () => {
  const part = (head: string, text: string) => `--b\r\ncontent-disposition: form-data; ${head}\r\n\r\n${text}\r\n`
  const file = part('name="file"; filename="a.txt"', 'x'.repeat(SIZE))
  const END = '--b--\r\n'

  /** Sends the file, and the rest when the file is stored. */
  async function send(adapter: RunningAdapter, rest: string) {
    const length = file.length + rest.length
    const client = open(adapter, 'POST /v1/files', 'content-type: multipart/form-data; boundary=b', `content-length: ${length}`)
    client.write(`${file}--b`)
    await eventually(() => asked(adapter).filter((name) => name === 'AppendToUpload').length === 2)
    await setImmediate()
    return { client, finish: () => client.write(rest.slice('--b'.length)) }
  }
  const start = () => startAdapter({ CreateFormUpload: () => created, AppendToUpload: () => appended, CancelFormUpload: () => cancelled })

  it.each([
    ['a second file', part('name="file"; filename="b.txt"', 'x') + END, /more than once/],
    ['a field that is too long', part('name="purpose"', 'x'.repeat(20_000)) + END, /at most 16384/],
    ['too many parts', Array.from({ length: 101 }, (_, index) => part(`name="f${index}"`, 'x')).join('') + END, /more than 100 parts/],
    ['an unknown field', part('name="other"', 'x') + END, /other/],
  ])('leaves nothing of it with %s', async (_what, rest, message) => {
    await using adapter = await start()
    const { client, finish } = await send(adapter, rest)
    finish()
    expect(String((await once(client, 'data'))[0])).toMatch(message)
    expect(asked(adapter).at(-1)).toBe('CancelFormUpload')
  })

  it('leaves nothing of it when its client leaves before the end', async () => {
    await using adapter = await start()
    const { client } = await send(adapter, part('name="purpose"', 'assistants'))
    client.destroy()
    await eventually(() => asked(adapter).at(-1) === 'CancelFormUpload')
  })
})

describe('a large file whose client leaves as it is completed', () => {
  it.each([
    ['is made all the same', true, ['CompleteFormUpload']],
    ['leaves nothing if it fails', false, ['CompleteFormUpload', 'CancelFormUpload']],
  ] as const)('%s', async (_what, succeeds, last) => {
    const { promise: gone, resolve: leave } = Promise.withResolvers<void>()
    let isMade = false
    await using adapter = await startAdapter({
      CreateFormUpload: () => created,
      AppendToUpload: () => appended,
      async CompleteFormUpload(_variables, { signal }) {
        client.destroy()
        await gone
        signal.throwIfAborted()
        if (!succeeds) throw new Error('the store is away')
        isMade = true
        return { completeUpload: { upload: { file: FILE } } }
      },
      CancelFormUpload: () => cancelled,
    })
    const client = open(adapter, 'POST /v1/files?name=a.txt', 'content-type: text/plain', `content-length: ${SIZE}`)
    client.on('close', () => setTimeout(leave, 50))
    client.write('x'.repeat(SIZE))
    await eventually(() => asked(adapter).at(-1) === last.at(-1) && isMade === succeeds)
    expect(asked(adapter).slice(-last.length)).toEqual(last)
  })
})

function open({ url }: RunningAdapter, line: string, ...headers: string[]) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write([`${line} HTTP/1.1`, 'host: a', `authorization: Bearer ${KEY}`, ...headers, '', ''].join('\r\n'))
  return socket
}
