import fc from 'fast-check'

/**
 * Numbers that are valid JSON and that few programs expect. They are generated as texts `@@…@@`; `writeJson` replaces
 * each by the number inside.
 */
const RAW_NUMBERS = ['1e999', '-1e999', '-0', '1e-999', '9007199254740993', '0.1e1', '123456789012345678901234567890']

/** Texts that break parsers, stores, logs and headers. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    ...['', ' ', '\u0000', 'a\u0000b', '\ud800', 'a\udfff', '\ufeff', '\u202e\u2066abc\u2069', '\u200f', '\r\n\r\n', '\n'.repeat(500)],
    ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '$where', '$ref', '$gt', 'undefined', 'null', 'NaN'],
    ...['{{ inputs.x }}', '{{', '{{ nodes.a | join( }}', '../../etc/passwd', '..%2f', '%', '%00', '%E0%A4%A', "' OR 1=1 --", '<script>'],
    ...['😀', '👩‍👩‍👧‍👦', 'e\u0301', 'ﷺ'.repeat(50), 'ا\u064b'.repeat(200), '!', '*', '(', '[', '\\', '"', '`', '~', '-', '1'],
    ...[
      '2024-02-30T00:00:00Z',
      '9999-12-31T23:59:59Z',
      '+275760-09-13T00:00:00.000Z',
      '0000-01-01',
      '1e400',
      '-1',
      '0x10',
      '1.',
      '.5',
      '999999999999999999',
    ],
    ...[
      'agent/',
      'agent/x',
      'agent//',
      'mock-chat ',
      'MOCK-CHAT',
      'col_',
      `col_${'0'.repeat(32)}`,
      `run_${'f'.repeat(32)}`,
      'MQ',
      'MQ==',
      '____',
      'Y29sXw',
    ],
    ...['http://127.0.0.1:1/', 'http://[::1]/', 'file:///etc/passwd', 'data:text/plain,x', 'data:image/png;base64,AAAA', 'https://'],
  ),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc
    .constantFrom('a', '\u0000', 'ا', '\ud83d', '{', '`', ' ', '\n', '\\')
    .chain((unit) => fc.constantFrom(300, 10_000, 100_000).map((n) => unit.repeat(n))),
)

const hostileNumber: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(
    0,
    1,
    -1,
    2,
    50,
    51,
    100,
    101,
    0.5,
    1e-9,
    2 ** 31,
    2 ** 31 - 1,
    -(2 ** 31),
    2 ** 53,
    1e21,
    1e308,
    -1e308,
    253_402_300_800,
  ),
  fc.constantFrom(...RAW_NUMBERS).map((number) => `@@${number}@@`),
)

const nested = (depth: number, wrap: (inner: unknown) => unknown): unknown => {
  let value: unknown = 'x'
  for (let i = 0; i < depth; i++) value = wrap(value)
  return value
}

const hostileKeys = fc.constantFrom(
  '__proto__',
  'constructor',
  'toString',
  '',
  'id',
  'type',
  'op',
  'filters',
  '$ref',
  'ا',
  '\u0000',
  'a.b',
  '$set',
  '0',
)

/** Any JSON value, most of them hostile. */
export const hostileJson: fc.Arbitrary<unknown> = fc.oneof(
  { maxDepth: 3 },
  { arbitrary: hostileText, weight: 5 },
  { arbitrary: hostileNumber, weight: 3 },
  { arbitrary: fc.constantFrom(null, true, false, [], {}, [[]], [null], [{}], [1, '1', null]), weight: 3 },
  {
    arbitrary: fc.constantFrom(
      ...[20, 127, 128, 129, 2_000].flatMap((depth) =>
        [
          nested(depth, (inner) => [inner]),
          nested(depth, (inner) => ({ a: inner })),
          nested(depth, (inner) => ({ op: 'not', filters: [inner] })),
          nested(depth, (inner) => ({ type: 'object', properties: { a: inner } })),
          nested(depth, (inner) => ({ anyOf: [inner, inner] })),
        ].filter((_, i) => depth < 20 || i < 4),
      ),
    ),
    weight: 1,
  },
  { arbitrary: fc.constantFrom(300, 5_000).map((n) => Array.from({ length: n }, (_, i) => `v${i}`)), weight: 1 },
  { arbitrary: fc.constantFrom(100, 3_000).map((n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, i]))), weight: 1 },
  {
    arbitrary: fc.constantFrom(
      { $ref: '#' },
      { type: 'string', pattern: '^(a+)+$' },
      { type: 'object', additionalProperties: { $ref: '#' } },
      { op: 'in', field: 'metadata.x', value: [] },
      { op: 'gt', field: '__proto__', value: '1' },
      { field: { op: 'eq' } },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
      { role: 'tool', tool_call_id: 'x', content: '' },
    ),
    weight: 2,
  },
  {
    arbitrary: fc.array(fc.tuple(hostileKeys, fc.constantFrom<unknown>(null, '', 1, [], {})), { maxLength: 5 }).map(ownEntries),
    weight: 2,
  },
)

/** Builds an object with an own `__proto__`. An assignment would set its prototype instead. */
function ownEntries(entries: readonly (readonly [string, unknown])[]): object {
  const generated = {}
  for (const [key, value] of entries) Object.defineProperty(generated, key, { value, enumerable: true, configurable: true, writable: true })
  return generated
}

/** Writes JSON with numbers that JavaScript cannot represent. */
export function writeJson(value: unknown): string {
  return (JSON.stringify(value) ?? 'null').replaceAll(/"@@([^"]*)@@"/g, '$1')
}

/** Returns the path of every value inside, without the value itself. */
export function pathsIn(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return path.length > 0 ? [path] : []
  const inner = Object.keys(value).flatMap((key) => pathsIn((value as Record<string, unknown>)[key], [...path, key]))
  return path.length > 0 ? [path, ...inner] : inner
}

/** Returns a copy with another value at the path. An undefined value removes the path. */
export function withAt(value: unknown, path: readonly string[], put: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return put
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<string, unknown>
  const next = withAt(copy[key], rest, put)
  if (next === undefined) delete copy[key]
  else Object.defineProperty(copy, key, { value: next, enumerable: true, configurable: true, writable: true })
  return copy
}
