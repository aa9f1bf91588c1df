import fc from 'fast-check'
import { expect, it } from 'vitest'
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
    name: 'takes one space off, and none where there is none',
    stream: 'data:a\n\ndata:  b\n\n',
    expected: [
      ['', 'a'],
      ['', ' b'],
    ],
  },
  { name: 'joins the data lines of one event', stream: 'data: a\ndata: b\n\n', expected: [['', 'a\nb']] },
  {
    name: 'takes CRLF and CR for line ends',
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
    name: 'gives the name of an event',
    stream: 'event: error\ndata: a\n\ndata: b\n\n',
    expected: [
      ['error', 'a'],
      ['', 'b'],
    ],
  },
  { name: 'skips a byte order mark', stream: '\ufeffdata: a\n\n', expected: [['', 'a']] },
  {
    name: 'understands a stream without its last line end',
    stream: 'data: a\n\ndata: [DONE]',
    expected: [
      ['', 'a'],
      ['', '[DONE]'],
    ],
  },
]) {
  it(name, () => expect(read([Buffer.from(stream)])).toEqual(expected))
}

it('gives the same events however the bytes are cut', () => {
  const data = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).map((text) => text.replace(/[\r\n\ufeff]/g, '_'))
  const lineEnd = fc.constantFrom('\n', '\r\n', '\r')
  const cuts = fc.array(fc.nat(40), { maxLength: 12 })
  fc.assert(
    fc.property(fc.array(data, { maxLength: 6 }), lineEnd, cuts, (texts, end, lengths) => {
      const bytes = Buffer.from(texts.map((text) => `data: ${text}${end}${end}`).join(''))
      const pieces: Buffer[] = []
      let from = 0
      for (const length of lengths) {
        pieces.push(bytes.subarray(from, from + length))
        from += length
      }
      pieces.push(bytes.subarray(from))
      expect(read(pieces)).toEqual(texts.map((text) => ['', text]))
    }),
  )
})

it('refuses a line that never ends, and an event of endless lines', () => {
  expect(() => read([Buffer.alloc(600, 'a'), Buffer.alloc(600, 'a')])).toThrow(EventStreamError)
  expect(() => read([Buffer.from('data: 0123456789\n'.repeat(100))])).toThrow(EventStreamError)
})
