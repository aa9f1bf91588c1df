import { afterEach, describe, expect, it } from 'vitest'
import type { ThreadLimits } from '../../../common/process/threads/thread.ts'
import { SchemaFailure } from '../../ports/schema-judge.ts'
import { AjvSchemaJudge } from './schema-judge.ts'

const { signal } = new AbortController()
const TEXT_OF_DIGITS = { type: 'string', pattern: '^\\d+$' }

const open: AjvSchemaJudge[] = []
afterEach(async () => {
  for (const judge of open.splice(0)) await judge[Symbol.asyncDispose]()
})

function judgeWith(limits: Partial<ThreadLimits> = {}): AjvSchemaJudge {
  const judge = new AjvSchemaJudge({ cpuMs: 500, wallMs: 20_000, heapMb: 128, ...limits })
  open.push(judge)
  return judge
}

/** Returns the longest event-loop delay during the work, in milliseconds. */
async function longestPause(work: Promise<unknown>): Promise<number> {
  let [last, longest] = [performance.now(), 0]
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
  }, 5)
  await work.catch(() => undefined)
  clearInterval(timer)
  return longest
}

/** Each of 40 levels has two alternatives, neither of which matches: 2 to the 40th combinations in all. */
const WAYS = {
  $ref: '#/$defs/level',
  $defs: {
    level: {
      anyOf: [
        { type: 'object', properties: { a: { $ref: '#/$defs/level' } }, required: ['a'] },
        { type: 'object', properties: { a: { $ref: '#/$defs/level' } }, required: ['a'] },
      ],
    },
  },
}
const DEEP = `${'{"a":'.repeat(40)}0${'}'.repeat(40)}`
const ATTACKS: readonly [string, object, string][] = [
  ['references to itself in two ways', WAYS, DEEP],
  ['items that must differ', { uniqueItems: true }, JSON.stringify(Array.from({ length: 60_000 }, (_, i) => ({ i })))],
]

describe('JSON Schema validation', () => {
  it.each([
    ['at the root', { $async: true, type: 'string' }],
    ['in a referenced schema', { properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { $async: true, type: 'string' } } }],
  ])('accepts no value by a schema with promises %s, and continues', async (_where, schema) => {
    const judge = judgeWith()
    await expect(judge.judge('org_a', schema, '5', signal)).rejects.toThrow(SchemaFailure)
    expect(await judge.judge('org_a', { type: 'string' }, '5', signal)).toHaveLength(1)
    expect(await judge.judge('org_b', { type: 'string' }, '"a"', signal)).toEqual([])
  })

  it('returns the first ten faults with their paths, and none for a valid value', async () => {
    const judge = judgeWith()
    const schema = { type: 'array', items: { type: 'number', description: 'A year.' } }
    expect(await judge.judge('org_a', schema, '[1, 2]', signal)).toEqual([])
    const faults = await judge.judge('org_a', schema, JSON.stringify(Array.from({ length: 12 }, () => 'x')), signal)
    expect(faults).toHaveLength(10)
    expect(faults[1]).toEqual({
      keyword: 'type',
      params: { type: 'number' },
      instancePath: '/1',
      message: 'must be number',
      parentSchema: { description: 'A year.' },
    })
  })

  it.each(ATTACKS)('stops %s without blocking the event loop, and judges the next value', async (_what, schema, value) => {
    const judge = judgeWith()
    const attack = judge.judge('org_a', { ...schema }, value, signal)
    const next = judge.judge('org_a', TEXT_OF_DIGITS, '"x"', signal)
    expect(await longestPause(attack)).toBeLessThan(400)
    // The recursion may grow the heap as well, so either limit may end it first.
    const reason = /^Checking a value against it takes (longer than 500 ms|more than 128 MB of memory)\.$/
    await expect(attack).rejects.toSatisfy((error) => error instanceof SchemaFailure && reason.test(error.message))
    expect(await next).toMatchObject([{ keyword: 'pattern' }])
  })

  it.each<readonly [string, object, string]>([
    ['a schema that only refers to itself', { $ref: '#' }, '1'],
    ['a value nested a hundred thousand levels deep', { items: { $ref: '#' } }, `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
  ])('fails %s, and judges the next value in the same thread', async (_what, schema, value) => {
    const judge = judgeWith()
    await expect(judge.judge('org_a', schema as { type: string }, value, signal)).rejects.toBeInstanceOf(SchemaFailure)
    expect(await judge.judge('org_a', TEXT_OF_DIGITS, '"1"', signal)).toEqual([])
  })

  it('stops what uses too much memory', async () => {
    const judge = judgeWith({ cpuMs: 60_000, wallMs: 60_000, heapMb: 48 })
    const items = JSON.stringify(Array.from({ length: 400_000 }, () => 1))
    const schema = { items: { allOf: Array.from({ length: 50 }, () => ({ type: 'string' })) } }
    await expect(judge.judge('org_a', schema, items, signal)).rejects.toThrow(
      new SchemaFailure('Checking a value against it takes more than 48 MB of memory.'),
    )
    expect(await judge.judge('org_a', TEXT_OF_DIGITS, '"1"', signal)).toEqual([])
  })

  it('matches any pattern in linear time', async () => {
    const judge = judgeWith({ cpuMs: 10_000 })
    const schema = { pattern: '^(a+)+$', propertyNames: { pattern: '^(a|a)*$' }, patternProperties: { '^(a|aa)+$': { type: 'number' } } }
    const text = `${'a'.repeat(100_000)}!`
    expect(await judge.judge('org_a', schema, JSON.stringify(text), signal)).toMatchObject([{ keyword: 'pattern' }])
    expect(await judge.judge('org_a', schema, JSON.stringify({ [text]: 1 }), signal)).toMatchObject([
      { keyword: 'pattern' },
      { keyword: 'propertyNames' },
    ])
  })

  it.each([
    ['\\u0661\\/', '"\u0661/"', '"\u0662/"'],
    ['^\\p{L}{2,3}$', '"سور"', '"Muscat"'],
    ['^(?<year>[12]\\d{3})-\\d\\d$', '"1931-07"', '"31-07"'],
    ['b', '"abc"', '"ac"'],
  ])('accepts the pattern %s in JSON Schema syntax', async (pattern, good, bad) => {
    const judge = judgeWith()
    expect(await judge.judge('org_a', { pattern }, good, signal)).toEqual([])
    expect(await judge.judge('org_a', { pattern }, bad, signal)).toMatchObject([{ keyword: 'pattern' }])
  })

  it('distinguishes two patterns of one schema', async () => {
    const schema = { properties: { a: { pattern: '^a$' }, b: { pattern: '^b$' } } }
    expect(await judgeWith().judge('org_a', schema, '{"a": "a", "b": "b"}', signal)).toEqual([])
  })

  it.each([
    ['a lookahead pattern', { pattern: '^(?=.*x)y' }, /the pattern "\^\(\?=\.\*x\)y" has syntax that `pattern` does not know/],
    ['a backreference pattern', { patternProperties: { '(a)\\1': {} } }, /the pattern "\(a\)\\\\1"/],
    ['an unknown type', { type: 'text' }, /not a JSON Schema/],
    ['a remote reference', { $ref: 'https://example.test/schema.json' }, /not a JSON Schema/],
  ])('refuses a schema with %s', async (_what, schema, message) => {
    await expect(judgeWith().check('org_a', schema, signal)).rejects.toThrow(message)
  })

  it('makes an organization that uses up its deadlines wait alone', async () => {
    const judge = judgeWith()
    let ended = 0
    const attacks = Array.from({ length: 30 }, () => judge.judge('org_a', WAYS, DEEP, signal).catch(() => (ended += 1)))
    for (let i = 0; i < 3; i++) expect(await judge.judge('org_b', TEXT_OF_DIGITS, '"1"', signal)).toEqual([])
    expect(ended).toBeLessThan(30)
    await judge[Symbol.asyncDispose]()
    await Promise.all(attacks)
  })

  it('drops a request whose caller has disconnected, and refuses more than its queue holds', async () => {
    const judge = judgeWith()
    const leaving = new AbortController()
    const left = [judge.judge('org_a', WAYS, DEEP, leaving.signal), judge.judge('org_a', WAYS, DEEP, leaving.signal)]
    leaving.abort(new Error('left'))
    for (const question of left) await expect(question).rejects.toThrow('left')
    const many = Array.from({ length: 501 }, () =>
      judge.check('org_a', {}, signal).then(
        () => null,
        (error) => error.code,
      ),
    )
    expect((await Promise.all(many)).filter((code) => code === 'service_unavailable')).toHaveLength(1)
  })
})
