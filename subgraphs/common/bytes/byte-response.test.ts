import { Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { finished } from 'node:stream/promises'
import { expect, it } from 'vitest'
import { type ByteRange, byteRequest, respondWithBytes, type StoredBytes } from './byte-response.ts'

const BYTES = Buffer.from('0123456789')
const stored: StoredBytes = {
  organizationId: 'org_a',
  name: 'a.txt',
  mediaType: 'text/plain',
  sha256: 'abc',
  sizeBytes: BYTES.length,
  async *read({ offset, length }: ByteRange) {
    for (const byte of BYTES.subarray(offset, offset + length)) yield Buffer.from([byte])
  },
}

async function respond(headers: Readonly<Record<string, string>>, of = stored) {
  const { body, ...head } = await respondWithBytes(
    byteRequest('/bytes?token=t', { method: 'GET', headers }),
    of,
    new AbortController().signal,
  )
  return { ...head, text: (await buffer(body)).toString() }
}

it.each([
  ['all', undefined, 200, '0123456789', undefined],
  ['an open range', 'bytes=7-', 206, '789', 'bytes 7-9/10'],
  ['a closed range', 'bytes=2-4', 206, '234', 'bytes 2-4/10'],
  ['the last bytes', 'bytes=-3', 206, '789', 'bytes 7-9/10'],
  ['more bytes than the file has', 'bytes=8-99', 206, '89', 'bytes 8-9/10'],
  ['the last of more bytes than the file has', 'bytes=-99', 206, '0123456789', 'bytes 0-9/10'],
  ['none', 'bytes=10-', 416, '', 'bytes */10'],
  ['the last zero bytes', 'bytes=-0', 416, '', 'bytes */10'],
  ['two ranges', 'bytes=0-1,3-4', 200, '0123456789', undefined],
  ['an end before its beginning', 'bytes=5-3', 200, '0123456789', undefined],
  ['another unit', 'lines=1-2', 200, '0123456789', undefined],
])('responds to a client that requests %s', async (_name, range, status, text, contentRange) => {
  const response = await respond(range === undefined ? {} : { range })
  expect([response.status, response.text, response.headers['content-range']]).toEqual([status, text, contentRange])
  expect(response.headers['content-length']).toBe(String(text.length))
})

it('sends the whole file to a client whose part is of other bytes', async () => {
  expect(await respond({ range: 'bytes=5-', 'if-range': '"abc"' })).toMatchObject({ status: 206, text: '56789' })
  expect(await respond({ range: 'bytes=5-', 'if-range': '"old"' })).toMatchObject({ status: 200, text: '0123456789' })
})

it.each(['"abc"', 'W/"abc"', '"x", "abc"', '*'])('sends no body to a client that has %s', async (etag) => {
  expect(await respond({ 'if-none-match': etag })).toMatchObject({ status: 304, text: '' })
  expect(await respond({ 'if-none-match': '"x"' })).toMatchObject({ status: 200 })
})

it('fails before it responds when the first part is lost', async () => {
  const lost = {
    ...stored,
    // biome-ignore lint/correctness/useYield: it has none.
    async *read(): AsyncGenerator<Uint8Array> {
      throw new Error('lost')
    },
  }
  await expect(respond({}, lost)).rejects.toThrow('lost')
})

it('responds with an empty file', async () => {
  expect(await respond({}, { ...stored, sizeBytes: 0, async *read() {} })).toMatchObject({ status: 200, text: '' })
})

it('frees each part once it is written, unless it shares its memory', async () => {
  const own = [new Uint8Array(1_000).fill(1), new Uint8Array(1_000).fill(2)]
  const shared = new Uint8Array(2_000).subarray(1_000)
  const pieces = [...own, shared]
  const { body } = await respondWithBytes(
    byteRequest('/bytes?token=t'),
    {
      ...stored,
      sizeBytes: 3_000,
      async *read() {
        yield* pieces
      },
    },
    new AbortController().signal,
  )
  const written: number[] = []
  const destination = new Writable({
    highWaterMark: 1,
    write(piece: Buffer, _encoding, done) {
      setImmediate(() => {
        written.push(piece.reduce((sum, byte) => sum + byte, 0))
        done()
      })
    },
  })
  await finished(body.pipe(destination))
  expect(written).toEqual([1_000, 2_000, 0])
  expect(pieces.map(({ buffer }) => buffer.byteLength)).toEqual([0, 0, 2_000])
})

it('serves the streams of organizations in turns, one part per tick of the event loop', async () => {
  const order: string[] = []
  const download = async (organizationId: string) => {
    const { body } = await respondWithBytes(byteRequest('/bytes?token=t'), { ...stored, organizationId }, new AbortController().signal)
    body.on('data', () => order.push(organizationId))
    await finished(body)
  }
  await Promise.all(['a', 'a', 'a', 'b'].map(download))
  expect(order).toHaveLength(4 * BYTES.length)
  expect(order.lastIndexOf('b')).toBeLessThan(2 * BYTES.length + 4)
})
