import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { EventStreamError, EventStreamParser } from './event-stream.ts'

function read(pieces: readonly Buffer[], maxLength = 1_000): (readonly [string, string])[] {
  const events: (readonly [string, string])[] = []
  const parser = new EventStreamParser((data, name) => events.push([name, data]), maxLength)
  for (const piece of pieces) parser.push(piece)
  parser.end()
  return events
}

for (const { name, stream, expected } of [
  { name: 'reads an event', stream: 'data: a\n\n', expected: [['', 'a']] },
  {
    name: 'removes one space after the colon, if there is one',
    stream: 'data:a\n\ndata:  b\n\n',
    expected: [
      ['', 'a'],
      ['', ' b'],
    ],
  },
  { name: 'joins the data lines of one event', stream: 'data: a\ndata: b\n\n', expected: [['', 'a\nb']] },
  {
    name: 'accepts CRLF and CR as line ends',
    stream: 'data: a\r\n\r\ndata: b\r\r',
    expected: [
      ['', 'a'],
      ['', 'b'],
    ],
  },
  {
    name: 'skips comments, ids, unknown fields and empty events',
    stream: ': ping\n\nid: 4\nretry: 5\nfoo\ndata: a\n\n\n\n',
    expected: [['', 'a']],
  },
  {
    name: 'returns the name of an event',
    stream: 'event: error\ndata: a\n\ndata: b\n\n',
    expected: [
      ['error', 'a'],
      ['', 'b'],
    ],
  },
  { name: 'skips a byte order mark', stream: '\ufeffdata: a\n\n', expected: [['', 'a']] },
  {
    name: 'accepts a stream without its last line end',
    stream: 'data: a\n\ndata: [DONE]',
    expected: [
      ['', 'a'],
      ['', '[DONE]'],
    ],
  },
]) {
  it(name, () => expect(read([Buffer.from(stream)])).toEqual(expected))
}

function cutAt(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  let from = 0
  for (const length of lengths) {
    pieces.push(bytes.subarray(from, from + length))
    from += length
  }
  return [...pieces, bytes.subarray(from)]
}

it('yields the same events at any split of the bytes', () => {
  const data = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).map((text) => text.replace(/[\r\n\ufeff]/g, '_'))
  const lineEnd = fc.constantFrom('\n', '\r\n', '\r')
  const cuts = fc.array(fc.nat(40), { maxLength: 12 })
  fc.assert(
    fc.property(fc.array(data, { maxLength: 6 }), lineEnd, cuts, (texts, end, lengths) => {
      const bytes = Buffer.from(texts.map((text) => `data: ${text}${end}${end}`).join(''))
      expect(read(cutAt(bytes, lengths))).toEqual(texts.map((text) => ['', text]))
    }),
  )
})

it('treats CR and CRLF like LF, in any order and at any split', () => {
  const parts = fc.array(fc.constantFrom('\r', '\n', '\r\n', 'data: a', 'data', 'event: b', ': c', 'ب'), { maxLength: 20 })
  const cuts = fc.array(fc.nat(6), { maxLength: 20 })
  fc.assert(
    fc.property(parts, cuts, (texts, lengths) => {
      const text = texts.join('')
      expect(read(cutAt(Buffer.from(text), lengths))).toEqual(read([Buffer.from(text.replaceAll('\r\n', '\n').replaceAll('\r', '\n'))]))
    }),
  )
})

it.each([
  ['LF', '\n'],
  ['CR', '\r'],
  ['CRLF', '\r\n'],
])('reads many lines that end with %s in linear time', (_what, ends) => {
  const bytes = Buffer.from(ends.repeat(10_000))
  let checks = 0
  const { indexOf } = String.prototype
  const searching = vi.spyOn(String.prototype, 'indexOf').mockImplementation(function (this: string, text, from = 0) {
    const at = indexOf.call(this, text, from)
    checks += (at < 0 ? this.length : at + 1) - from
    return at
  })
  try {
    expect(read([bytes])).toEqual([])
  } finally {
    searching.mockRestore()
  }
  expect(checks).toBeLessThan(4 * bytes.length)
})

it('limits the length of a line and of an event', () => {
  expect(() => read([Buffer.alloc(600, 'a'), Buffer.alloc(600, 'a')])).toThrow(EventStreamError)
  expect(() => read([Buffer.from('data: 0123456789\n'.repeat(100))])).toThrow(EventStreamError)
})

it('refuses more than 20 unknown lines between two events', () => {
  const event = `${'foo\n'.repeat(10)}retry: x\n${'foo: 1\n'.repeat(9)}data: a\n\n`
  expect(read([Buffer.from(event.repeat(100))])).toHaveLength(100)
  expect(() => read([Buffer.from(`foo\n${event}`)])).toThrow(EventStreamError)
  expect(() => read(Array(21).fill(Buffer.from('foo\n\n')))).toThrow(EventStreamError)
})
