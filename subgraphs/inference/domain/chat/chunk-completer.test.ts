import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ProtocolObject } from '../../ports/engines.ts'
import { believedUsage, reportedUsage } from '../tokens/usage.ts'
import { ChunkCompleter } from './chunk-completer.ts'
import type { ResponseNames } from './complete-response.ts'

const names: ResponseNames = { newId: (kind) => `${kind}-made`, model: 'our-model', created: 1_795_000_000 }
const head = { id: 'theirs', object: 'chat.completion.chunk', created: 1_750_000_000, model: 'their-model' }
const usage = { prompt_tokens: 4, completion_tokens: 5, total_tokens: 9 }
const delta = (content: object, rest: object = {}) => ({ ...head, choices: [{ index: 0, delta: content, finish_reason: null, ...rest }] })
const opening = delta({ role: 'assistant', content: '', refusal: null })
const last = delta({}, { finish_reason: 'stop' })
const end = (usageReport: object = usage) => ({ ...head, choices: [], usage: usageReport })

/** Returns every chunk that the caller gets of a response that ended well. */
function completed(chunks: readonly ProtocolObject[]): readonly ProtocolObject[] {
  const completer = new ChunkCompleter(names)
  const reported = chunks.flatMap((chunk) => reportedUsage(chunk) ?? []).at(-1)
  return [...chunks.flatMap((chunk) => completer.write([chunk])), ...completer.end(believedUsage(reported, 7, () => 3))]
}
const calls = (...pieces: readonly object[]) => pieces.map((piece) => delta({ tool_calls: [piece] }))
const listCalls = (chunks: readonly ProtocolObject[]) =>
  completed([opening, ...chunks]).flatMap(
    ({ choices }) => (choices as readonly { delta: { tool_calls?: readonly unknown[] } }[])[0]?.delta.tool_calls ?? [],
  )

describe('Chunk completion', () => {
  it('leaves whole chunks unchanged', () => {
    const chunks = [opening, delta({ content: 'Hi' }, { logprobs: { content: [] } }), { ...last, system_fingerprint: 'fp' }, end()]
    expect(completed(chunks)).toEqual(chunks)
  })

  it('removes malformed names and metadata', () => {
    for (const odd of ['two words', 'x'.repeat(10_000), '\u202e']) {
      const spoiled = { id: odd, object: odd, created: head.created, model: odd, system_fingerprint: odd, service_tier: odd }
      const call = { index: 0, id: odd, type: odd, function: { name: 'f', arguments: '{}' } }
      const got = completed([
        { ...spoiled, choices: [{ index: 0, delta: { role: odd, content: '' }, finish_reason: null }] },
        { ...spoiled, choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] },
        { ...spoiled, choices: [{ index: 0, delta: {}, finish_reason: odd }] },
        { ...spoiled, choices: [], usage },
      ])
      const ours = { ...head, id: 'chatcmpl-made', model: 'our-model' }
      expect(got).toEqual([
        { ...ours, choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] },
        { ...ours, choices: [{ index: 0, delta: { tool_calls: [{ ...call, id: 'call-made', type: 'function' }] }, finish_reason: null }] },
        { ...ours, choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
        { ...ours, choices: [], usage },
      ])
    }
  })

  it('sets the ID, time and model of the first chunk on all', () => {
    const others = { ...delta({ content: 'b' }), id: 'other', created: 1_750_000_009, model: '' }
    const got = completed([delta({ role: 'assistant', content: 'a' }), others, last])
    expect(got.map(({ id, created, model }) => [id, created, model])).toEqual(Array(4).fill(['theirs', 1_750_000_000, 'their-model']))
  })

  it('creates names where the engine has none', () => {
    const [first] = completed([{ choices: [{ delta: { role: 'assistant', content: 'a' } }] }])
    expect(first).toMatchObject({ id: 'chatcmpl-made', object: 'chat.completion.chunk', created: 1_795_000_000, model: 'our-model' })
  })

  it('delays nameless empty chunks until the name arrives', () => {
    const filtered = { id: '', object: '', created: 0, model: '', choices: [], prompt_filter_results: [1] }
    expect(completed([filtered, opening, last]).slice(0, 2)).toEqual([{ ...head, choices: [], prompt_filter_results: [1] }, opening])
  })

  it('puts the role into the first chunk of each choice, once', () => {
    const two = (index: number, content: object) => ({ ...head, choices: [{ index, delta: content, finish_reason: null }] })
    const got = completed([
      two(0, { content: 'a' }),
      two(1, { role: 'assistant', content: 'b' }),
      two(1, { role: 'assistant', content: 'c' }),
    ])
    expect(got.slice(0, 4).map(({ choices }) => choices)).toMatchObject([
      [{ index: 0, delta: { role: 'assistant', content: '', refusal: null } }],
      [{ index: 0, delta: { content: 'a' } }],
      [{ index: 1, delta: { role: 'assistant', content: 'b' } }],
      [{ index: 1, delta: { content: 'c' } }],
    ])
    expect(got[3]).toEqual(two(1, { content: 'c' }))
  })

  it('sets a finish reason for each choice, tool_calls where there were any', () => {
    const called = { index: 1, delta: { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }] } }
    const got = completed([opening, { ...head, choices: [{ ...called, finish_reason: '' }] }])
    expect(got.slice(-3).map(({ choices }) => choices)).toMatchObject([
      [{ index: 0, finish_reason: 'stop' }],
      [{ index: 1, finish_reason: 'tool_calls' }],
      [],
    ])
    expect(got[2]).toMatchObject({ choices: [{ index: 1, finish_reason: null }] })
  })

  it.each<[string, readonly ProtocolObject[]]>([
    ['once, in a last chunk without choices', [opening, last, end()]],
    ['once, if it comes with a choice', [opening, { ...last, usage }]],
    ['once, if every chunk has it', [{ ...opening, usage: { ...usage, completion_tokens: 0 } }, { ...last, usage }, end()]],
    ['once, if it comes first', [end({ ...usage, prompt_tokens: 1 }), opening, last, end()]],
  ])('reports the usage %s', (_name, chunks) => {
    const got = completed(chunks)
    expect(got.filter((chunk) => chunk.usage)).toEqual([end()])
    expect(got.at(-1)).toEqual(end())
  })

  it('reports the counted usage if the engine reports none', () => {
    const counted = end({ prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 })
    expect(completed([opening, { ...last, usage: {} }]).at(-1)).toEqual(counted)
    expect(completed([opening, last, { ...head, choices: [], usage: null }]).at(-1)).toEqual(counted)
  })

  it('yields nothing for an empty stream', () => expect(completed([])).toEqual([]))
})

interface AnyChoice {
  readonly index: number
  readonly delta: Readonly<Record<string, unknown>>
  readonly finish_reason: unknown
}
const readChoices = ({ choices }: ProtocolObject) => choices as readonly AnyChoice[]

describe('Chunk completion of any stream', () => {
  const piece = fc.record(
    {
      index: fc.constantFrom<unknown>(0, 1, 2, null),
      id: fc.constantFrom('a', 'b', 'c', ''),
      type: fc.constant('function'),
      function: fc.record({ name: fc.constantFrom('f', 'g'), arguments: fc.string({ maxLength: 3 }) }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  )
  const choice = fc.record(
    {
      index: fc.constantFrom(0, 1),
      delta: fc.oneof(
        fc.record(
          { role: fc.constant('assistant'), content: fc.string({ maxLength: 3 }), tool_calls: fc.array(piece, { maxLength: 3 }) },
          { requiredKeys: [] },
        ),
        fc.constant(null),
      ),
      finish_reason: fc.constantFrom<unknown>(null, '', 'stop', 'length'),
    },
    { requiredKeys: ['index'] },
  )
  const chunk = fc.record(
    {
      id: fc.constantFrom('x', 'y', ''),
      created: fc.constantFrom<unknown>(1, 2, 0, 'now'),
      model: fc.constantFrom('m', 'n', ''),
      choices: fc.array(choice, { maxLength: 2 }),
      usage: fc.constantFrom<unknown>(null, {}, usage, { ...usage, completion_tokens: 6 }),
    },
    { requiredKeys: [] },
  )

  it('yields one name, the role first, every word, an end of every choice, and the usage once at the end', () => {
    fc.assert(
      fc.property(fc.array(chunk, { minLength: 1, maxLength: 12 }), (chunks) => {
        const got = completed(chunks as readonly ProtocolObject[])
        if (got.length === 0) return
        expect(new Set(got.map(({ id, created, model, object }) => JSON.stringify([id, created, model, object]))).size).toBe(1)
        expect(got.filter((each) => each.usage)).toEqual([got.at(-1)])
        expect(got.at(-1)?.choices).toEqual([])
        for (const index of [0, 1]) {
          const own = got.flatMap(readChoices).filter((each) => each.index === index)
          if (own.length === 0) continue
          expect(
            own.map(({ delta: { role } }) => role).map((role, at) => (at === 0 ? role === 'assistant' : role === undefined)),
          ).not.toContain(false)
          expect(own.some((each) => each.finish_reason)).toBe(true)
          const said = (received: readonly ProtocolObject[]) =>
            received
              .flatMap((each) => (each.choices ?? []) as readonly { index: number; delta?: { content?: string } | null }[])
              .filter((each) => each.index === index)
              .map((each) => each.delta?.content ?? '')
              .join('')
          expect(said(got)).toBe(said(chunks as readonly ProtocolObject[]))
        }
      }),
    )
  })

  it('yields the ID and type of each tool call in its first chunk only, and all arguments', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const got = listCalls(calls(...pieces)) as readonly {
          index: number
          id?: string
          type?: string
          function?: { name?: string; arguments?: string }
        }[]
        for (const index of new Set(got.map((each) => each.index))) {
          const [first, ...rest] = got.filter((each) => each.index === index)
          expect([typeof first?.id, first?.type]).toEqual(['string', 'function'])
          for (const each of rest) expect([each.id, each.type]).toEqual([undefined, undefined])
          expect([first, ...rest].filter((each) => each?.function?.name !== undefined).length).toBeLessThanOrEqual(1)
        }
        const written = (all: readonly { function?: { arguments?: string } }[]) =>
          all.map((each) => each.function?.arguments ?? '').join('')
        expect(written(got)).toBe(written(pieces))
      }),
    )
  })

  it('reads the stream to the end', () => {
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.constantFrom('id', 'choices', 'usage', 'model'), fc.jsonValue()), { maxLength: 5 }),
        (chunks) => {
          completed(chunks)
        },
      ),
    )
  })
})

describe('Tool calls in chunks', () => {
  const first = (index: number, id = `call_${index}`) => ({ index, id, type: 'function', function: { name: `f${index}`, arguments: '' } })
  const more = (index: number, text: string) => ({ index, function: { arguments: text } })

  it('remain unchanged when they are whole and interleaved', () => {
    const pieces = [first(0), first(1), more(0, '{'), more(1, '['), more(1, ']'), more(0, '}')]
    expect(listCalls(calls(...pieces))).toEqual(pieces)
  })

  it('that all have index 0 get their own indices', () => {
    const got = listCalls(calls(first(0, 'a'), more(0, '{}'), { ...first(0, 'b') }, more(0, '[]')))
    expect(got).toEqual([first(0, 'a'), more(0, '{}'), { ...first(0, 'b'), index: 1 }, more(1, '[]')])
  })

  it('without an index are distinguished by ID and name', () => {
    const { index: _, ...a } = first(0, 'a')
    const { index: __, ...b } = first(0, 'b')
    const got = listCalls(calls(a, { function: { arguments: '{}' } }, b, { id: 'a', function: { arguments: '!' } }))
    expect(got).toEqual([first(0, 'a'), more(0, '{}'), { ...first(0, 'b'), index: 1 }, more(0, '!')])
  })

  it('have ID, type and name once, whatever the engine repeats', () => {
    const got = listCalls(
      calls(first(0), { ...first(0), function: { name: 'f0', arguments: '{' } }, { ...more(0, '}'), id: 'another', type: 'function' }),
    )
    expect(got).toEqual([first(0), more(0, '{'), more(0, '}')])
  })

  it('get the fields that the engine left out', () => {
    expect(listCalls(calls({ index: 0, function: { name: 'f' } }, { index: 0, function: { arguments: '{}' } }))).toEqual([
      { index: 0, id: 'call-made', type: 'function', function: { name: 'f', arguments: '' } },
      more(0, '{}'),
    ])
  })
})
